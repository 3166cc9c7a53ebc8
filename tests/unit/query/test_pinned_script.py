"""Scripts of `grouplake catalog` for one batch: the views in DuckDB, the script for Trino parsed as its SQL, and options."""

import re
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
import sqlglot
from log_builder import Log
from shop_day import day_tables
from sqlglot import exp
from transaction_logs import NOW_MS, TransactionLog
from transaction_tables import TransactionTables
from two_clusters import two_clusters

from coordinator_core.state.transaction_state import ONGOING, PREPARE_COMMIT
from pipelines.alerts.alert_store import AlertStore
from pipelines.query.engine import Snapshot
from pipelines.query.pinned_script import NEWEST, pinned_script
from pipelines.query.script import split
from pipelines.runtime.errors import UsageError
from pipelines.runtime.timestamps import TIMESTAMP, at_ms
from pipelines.tables import definitions

OF_TRANSACTIONS = ("hanging_transactions", "transactional_groups")
TABLES = (*definitions.WRITE_ORDER, *definitions.ALERTS)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    east = two_clusters(tmp_path_factory.mktemp("clusters"))["east"]
    AlertStore(east)
    return east


def with_transactions(folder: Path) -> str:
    """Tables with hanging transactions of each reason."""
    log, written = Log(3), TransactionLog()
    for partition, producer in enumerate((7, 8, 9)):
        log.commit(partition, 6, group="ledger", producer=producer)
    written.state("ledger-writer", ONGOING, producer_id=7, topics={"__consumer_offsets": (3,), "out": (0, 4)}, start_ms=NOW_MS)
    written.state("decided", PREPARE_COMMIT, producer_id=8, topics={"__consumer_offsets": (3,)}, start_ms=NOW_MS)
    TransactionTables(folder, written, at=at_ms(NOW_MS) + timedelta(hours=1)).apply(log)
    return str(folder)


def statements(root: str, dialect: str, schema: str | None = None, as_of: str = NEWEST) -> list[str]:
    steps = split(pinned_script(root, dialect, schema, as_of))
    assert steps.rest == ""
    return [step.text for step in steps.steps]


def types(table: pa.Table) -> list[str]:
    """Types of the columns. DuckDB's times have the zone of the session, and its elements of lists another name."""
    return [re.sub(r"tz=[\w/]+", "tz=UTC", re.sub(r"list<\w+: ", "list<", str(column.type))) for column in table.schema]


def texts(table: pa.Table) -> Iterable[str]:
    times = [number for number, column in enumerate(table.schema) if pa.types.is_timestamp(column.type)]
    for number in times:
        table = table.set_column(number, table.schema.names[number], table.column(number).cast(TIMESTAMP))
    return sorted(str(row) for row in table.to_pylist())


def expect_views_of_duckdb(root: str, names: Iterable[str]) -> None:
    """The views of the script have our rows in DuckDB, which has the rows of the tables from Arrow: it has no delta extension."""
    snapshot = Snapshot.open(root)
    script = {found[1]: text for text in statements(root, "duckdb") if (found := re.match(r"CREATE .* VIEW (\w+) AS", text))}
    assert tuple(script) == (*snapshot.tables, *snapshot.views)
    with duckdb.connect() as connection:
        for name in snapshot.tables:
            connection.register(name, snapshot.query(f"SELECT * FROM {name}"))
        for name in snapshot.views:
            connection.execute(script[name])
        for name in names:
            ours, theirs = snapshot.query(f"SELECT * FROM {name}"), connection.sql(f"SELECT * FROM {name}").to_arrow_table()
            assert ours.num_rows > 0, name
            assert ours.schema.names == theirs.schema.names
            assert types(theirs) == types(ours), name
            assert texts(theirs) == texts(ours), name


@pytest.mark.long
def test_the_views_have_our_rows_in_duckdb() -> None:
    expect_views_of_duckdb(day_tables(), [name for name in definitions.VIEWS if name not in OF_TRANSACTIONS])


def test_the_views_of_transactions_have_our_rows_in_duckdb(tmp_path: Path) -> None:
    expect_views_of_duckdb(with_transactions(tmp_path), OF_TRANSACTIONS)


@pytest.mark.parametrize(("as_of", "batch"), [(NEWEST, "(SELECT max(batch_id) FROM delta_scan("), ("0", "0;")])
def test_the_script_for_duckdb_reads_the_versions_of_its_variable(as_of: str, batch: str, root: str) -> None:
    script = pinned_script(root, "duckdb", None, as_of)
    assert f"\nSET VARIABLE grouplake_batch = {batch}" in script
    offsets = Path(root, "offsets").as_uri()
    assert f"\nSELECT * FROM delta_scan('{offsets}', version => coalesce(getvariable('grouplake_versions')['offsets'], " in script
    history = Path(root, "lag_history").as_uri()
    assert f"\nSELECT * FROM delta_scan('{history}') WHERE batch_id <= getvariable('grouplake_batch');" in script


def test_the_script_for_trino_has_every_table_and_view(root: str) -> None:
    snapshot = Snapshot.open(root, as_of=0)
    calls, views = [], {}
    for text in statements(root, "trino", "delta.kafka_groups", "0"):
        if text.startswith("CALL "):
            calls.append(text)
            continue
        (statement,) = sqlglot.parse(text, dialect="trino")
        assert isinstance(statement, exp.Create), text
        if statement.args["kind"] == "VIEW":
            views[statement.this.sql()] = statement
    registered = [re.search(r"table_name => '(\w+)', table_location => '(.*)'", call) for call in calls]
    assert [found and found.groups() for found in registered] == [(name, Path(root, name).as_uri()) for name in TABLES]
    assert list(views) == [f"delta.kafka_groups.{name}" for name in (*TABLES, *definitions.VIEWS)]
    offsets = views["delta.kafka_groups.offsets"].expression
    version = snapshot.batch.versions["offsets"]
    assert offsets.sql("trino") == f"SELECT * FROM delta.kafka_groups_tables.offsets FOR VERSION AS OF {version}"
    for name in definitions.VIEWS:
        query = views[f"delta.kafka_groups.{name}"].expression
        assert query.named_selects == snapshot.query(f"SELECT * FROM {name} LIMIT 0").schema.names
        named = {table.sql() for table in query.find_all(exp.Table)}
        read = {f"delta.kafka_groups.{table}" for table in definitions.read_by_view(name)}
        assert {re.sub(r" AS .*", "", each) for each in named} <= read, name
        # Trino has neither, and sqlglot would print both
        assert not list(query.find_all(exp.Explode)), name
        assert not [each for each in query.find_all(exp.Bracket) if each.expressions[0].is_string], name
        assert "MILLISECONDS" not in query.sql("trino").upper(), name


@pytest.mark.parametrize(
    ("dialect", "schema", "is_replacing", "message"),
    [
        ("duckdb", "kafka", False, "--schema and --replace are not for duckdb"),
        ("trino", "kafka", False, "invalid --schema 'kafka' for trino: use CATALOG.NAME"),
        ("trino", None, False, "trino needs --schema CATALOG.NAME"),
        ("spark", "a.b.c", False, "invalid --schema 'a.b.c'"),
        ("spark", None, True, "--replace is for tables"),
    ],
)
def test_options_that_a_dialect_does_not_have(
    dialect: str, schema: str | None, is_replacing: bool, message: str, root: str
) -> None:
    with pytest.raises(UsageError, match=message):
        pinned_script(root, dialect, schema, NEWEST, is_replacing=is_replacing)


def test_a_script_for_trino_that_replaces_unregisters_each_table(root: str) -> None:
    script = pinned_script(root, "trino", "delta.kafka_groups", NEWEST, is_replacing=True)
    calls = re.findall(r"^CALL delta\.system\.(\w+)\(schema_name => 'kafka_groups_tables', table_name => '(\w+)'", script, re.M)
    assert calls == [(kind, name) for name in TABLES for kind in ("unregister_table", "register_table")]
