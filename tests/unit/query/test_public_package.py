"""The public package `grouplake`: one batch of the tables in Python, without Spark."""

import inspect
import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from log_builder import Log, member
from patience import PATIENCE_SECONDS
from table_logs import applied

import grouplake
from coordinator_core.state.era import Era
from pipelines.alerts.alert_store import AlertStore
from pipelines.tables import definitions
from pipelines.tables.store import TableStore

ERA = Era.named("4")
LARGE = 2**53 + 1


def written(root: Path, cuts: list[int]) -> TableStore:
    log = Log(partition=3)
    log.commit(0, LARGE, group="g")
    log.group([member()], group="g")
    log.commit(0, 6, group="h")
    return applied(log, ERA, cuts, str(root))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    written(folder, [1, 2])
    return folder


def test_a_folder_is_open_at_its_last_batch(root: Path) -> None:
    tables = grouplake.open(root)
    assert tables.batch_id == 2
    assert timedelta() < datetime.now(UTC) - tables.finished_at < timedelta(hours=1)
    assert tables.tables == definitions.WRITE_ORDER
    assert tables.views == definitions.VIEWS
    assert repr(tables).startswith(f"<grouplake.Tables '{root}' at batch 2 of 20")
    assert sorted(row["batch_id"] for row in tables.table("batches")) == [0, 1, 2]


def test_as_of_takes_an_id_a_time_and_their_texts(root: Path) -> None:
    first = grouplake.open(root, as_of=0)
    at = first.finished_at
    for as_of in (0, "0", at, at.isoformat(), at.replace(tzinfo=None)):
        tables = grouplake.open(str(root), as_of=as_of)
        assert tables.batch_id == 0
        assert list(tables.sql("SELECT group_id, state FROM groups")) == [{"group_id": "g", "state": "Empty"}]


def test_further_batches_change_nothing(tmp_path: Path) -> None:
    log = Log()
    log.commit(0, 5, group="g")
    applied(log, ERA, [], str(tmp_path), again=False)
    tables = grouplake.open(tmp_path)
    assert len(tables.table("offsets")) == 1
    log.commit(1, 5, group="g")
    applied(log, ERA, [1], str(tmp_path))
    assert len(grouplake.open(tmp_path).table("offsets")) == 2
    assert (len(tables.table("offsets")), len(tables.table("offset_history"))) == (1, 1)


def test_alerts_are_tables_where_the_folder_has_them(tmp_path: Path) -> None:
    written(tmp_path, [1])
    assert grouplake.open(tmp_path).tables == definitions.WRITE_ORDER
    store = AlertStore(str(tmp_path))
    store.commit({}, [{"at": datetime(2026, 3, 1, tzinfo=UTC), "change": "firing", "rule": "Lag", "labels": []}], 0)
    for as_of in (None, 0):
        tables = grouplake.open(tmp_path, as_of=as_of)
        assert tables.tables == (*definitions.WRITE_ORDER, *definitions.ALERTS)
        assert [row["rule"] for row in tables.table("alert_history")] == ["Lag"]
    for name in definitions.ALERTS:
        assert tables.table(name).to_arrow().schema == definitions.table(name).schema


@pytest.mark.parametrize("name", definitions.WRITE_ORDER)
def test_results_have_the_types_of_the_tables(name: str, root: Path) -> None:
    assert grouplake.open(root).table(name).to_arrow().schema == definitions.table(name).schema


def test_a_result_is_rows_arrow_pandas_and_polars(root: Path) -> None:
    query = "SELECT group_id, committed_offset, producer_id, commit_timestamp FROM offsets ORDER BY group_id"
    result = grouplake.open(root).sql(query)
    at = datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
    rows = [
        {"group_id": "g", "committed_offset": LARGE, "producer_id": None, "commit_timestamp": at},
        {"group_id": "h", "committed_offset": 6, "producer_id": None, "commit_timestamp": at},
    ]
    assert list(result) == rows
    assert len(result) == 2
    assert result.columns == ("group_id", "committed_offset", "producer_id", "commit_timestamp")
    assert result.to_arrow().to_pylist() == rows
    assert result.to_polars().to_dicts() == rows
    frame = result.to_pandas()
    assert frame["committed_offset"].tolist() == [LARGE, 6]
    assert frame["commit_timestamp"].tolist() == [pd.Timestamp(at)] * 2
    assert frame["producer_id"].dtype == pd.Int64Dtype()
    assert frame["producer_id"].isna().all()
    assert repr(result) == "<grouplake.QueryResult of 2 rows: group_id, committed_offset, producer_id, commit_timestamp>"
    # libraries read the result through Arrow's C stream
    assert pa.table(result).to_pylist() == rows
    assert pl.DataFrame(result).to_dicts() == rows


def test_offsets_beside_nulls_keep_their_digits_in_pandas(root: Path) -> None:
    frame = grouplake.open(root).sql(f"SELECT * FROM (VALUES ({LARGE}), (NULL)) t (n) ORDER BY n").to_pandas()
    assert frame["n"].tolist() == [LARGE, pd.NA]


def test_equal_names_of_a_join_stay_apart(root: Path) -> None:
    result = grouplake.open(root).sql("SELECT o.group_id, g.group_id FROM offsets o JOIN groups g USING (group_id)")
    assert result.columns == ("group_id", "group_id_2")
    assert len(result.to_pandas().columns) == 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda root: grouplake.open(root / "nowhere"), "no table batches under"),
        (lambda _: grouplake.open(""), "the name of the folder is empty"),
        (lambda root: grouplake.open(root, as_of=17), "no batch as of 17"),
        (lambda root: grouplake.open(root, as_of="yesterday"), "'yesterday': use a batch id or an ISO 8601 time"),
        (lambda root: grouplake.open(root).sql("SELECT * FROM alerts_of_mine"), "alerts_of_mine"),
        (lambda root: grouplake.open(root).sql("DROP TABLE offsets"), "only queries are allowed here"),
        (lambda root: grouplake.open(root).table("nothing"), "no table or view 'nothing' in batch 2: use one of"),
    ],
)
def test_errors_have_one_type(call: object, message: str, root: Path) -> None:
    assert callable(call)
    with pytest.raises(grouplake.GrouplakeError, match=message):
        call(root)


def loaded(program: str) -> set[str]:
    """Top-level modules after a program."""
    program += "\nimport json, sys; print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True)
    return set(json.loads(found.stdout.splitlines()[-1]))


def test_the_import_loads_nothing_but_itself() -> None:
    beyond = loaded("import grouplake") - loaded("")
    assert {name for name in beyond if not name.startswith("__editable__")} <= {"grouplake", "collections", "typing"} | set(
        sys.stdlib_module_names
    )


def test_a_query_loads_no_spark(root: Path) -> None:
    program = f"import grouplake\ngrouplake.open({str(root)!r}).sql('SELECT * FROM expiring_offsets').to_arrow()"
    assert loaded(program) & {"pyspark", "delta", "sqlglot", "numba", "kafka", "polars"} == set()


def test_the_public_names_are_typed_and_documented() -> None:
    assert grouplake.__all__ == ["GrouplakeError", "OffsetCommits", "QueryResult", "Tables", "commit_offsets", "open", "register"]
    assert set(grouplake.__all__) <= set(dir(grouplake))
    assert (Path(grouplake.__file__).parent / "py.typed").exists()
    for name in grouplake.__all__:
        found = getattr(grouplake, name)
        public = {name: found, **{at: value for at, value in vars(found).items() if not at.startswith("_")}}
        assert [at for at, value in public.items() if callable(value) and not inspect.getdoc(value)] == []
    with pytest.raises(AttributeError, match="no attribute 'Snapshot'"):
        _ = grouplake.Snapshot  # type: ignore[attr-defined]  # the error is the test
