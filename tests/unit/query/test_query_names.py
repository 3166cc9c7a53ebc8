"""A query opens only the tables that it names."""

import re
from pathlib import Path

import pyarrow as pa
import pytest
from created_tables import created_tables
from deltalake.table import DeltaTable

from coordinator_core.state.era import Era
from pipelines.batch.apply import BatchApplier
from pipelines.query.engine import Snapshot
from pipelines.runtime.errors import UsageError
from pipelines.source.changes import SCHEMA, ChangeKind, rows
from pipelines.tables import definitions
from pipelines.tables.store import TableStore

ERA = Era.named("4")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables after a batch that read nothing."""
    folder = tmp_path_factory.mktemp("tables")
    store = created_tables(folder)
    extent = {"start_offset": 0, "next_offset": 5, "records_read": 0, "commits": 0}
    read = rows(ChangeKind.RANGE, 0, {name: pa.array([value]) for name, value in extent.items()})
    applier = BatchApplier(store, ERA, ERA.default_retention_ms, dict, bulk_rows=10)
    applier.apply_rows(pa.Table.from_batches([read], SCHEMA))
    return folder


class Recorder(TableStore):
    """Tables that record which of them were opened."""

    def __init__(self, root: Path) -> None:
        super().__init__(str(root))
        self.opened: set[str] = set()

    def at(self, name: str, version: int) -> DeltaTable:
        self.opened.add(name)
        return super().at(name, version)

    def table(self, name: str, *, look_now: bool = False) -> DeltaTable:
        self.opened.add(name)
        return super().table(name, look_now=look_now)


@pytest.mark.parametrize(
    ("sql", "opened"),
    [
        ("SELECT 1", set()),
        ("SELECT count(*) FROM offsets", {"offsets"}),
        ('SELECT count(*) FROM "offsets" AS x', {"offsets"}),
        ("SELECT count(*) FROM committed_offsets", {"offsets", "groups"}),
        ("WITH m AS (SELECT * FROM group_members) SELECT count(*) FROM m", {"groups", "members"}),
        ("SELECT count(*) FROM assignments", {"members", "topic_ids"}),
        ("SELECT count(*) FROM expiring_offsets", {"offsets", "groups", "pending_offsets"}),
        ("SELECT count(*) FROM rebalances", {"membership_history", "ownership_history"}),
        ("SELECT count(*) FROM resets", {"membership_history", "offset_history", "groups"}),
        ("SELECT count(*) FROM consumption_edges", {"ownership_history", "members", "topic_ids"}),
        ("SELECT count(*) FROM unused_groups", {"offsets", "groups", "pending_offsets", "lag"}),
        ("SELECT count(*) FROM batches b JOIN quarantine q ON q.batch_id = b.batch_id", {"batches", "quarantine"}),
        ("DESCRIBE group_history", {"group_history"}),
    ],
)
def test_a_query_opens_the_tables_that_it_names(root: Path, sql: str, opened: set[str]) -> None:
    store = Recorder(root)
    batch = store.last_batch()
    assert batch is not None
    store.opened.clear()
    Snapshot(store, batch).query(sql)
    assert store.opened == opened


def test_one_snapshot_answers_any_number_of_queries(root: Path) -> None:
    snapshot = Snapshot.open(str(root))
    for _ in range(2):
        for name in (*definitions.WRITE_ORDER, *definitions.VIEWS):
            assert snapshot.query(f"SELECT count(*) AS n FROM {name}").num_rows == 1


def test_missing_tables_are_refused(root: Path) -> None:
    with pytest.raises(UsageError, match="alerts"):
        Snapshot.open(str(root)).query("SELECT * FROM alerts")


def test_views_need_of_the_batches_only_what_is_known() -> None:
    named = {name: set(re.findall(r"\{.*?\}", definitions.view_text(name))) for name in definitions.VIEWS}
    assert {name: placeholders for name, placeholders in named.items() if placeholders} == {
        "committed_offsets": {"{batch.era}"},
        "expiring_offsets": {"{batch.era}", "{batch.retention_ms}"},
        "hanging_transactions": {"{batch.finished_at}", "{batch.transaction_offsets}", "{batch.transaction_ms}"},
        "unused_groups": {"{batch.finished_at}"},
    }
    for name in definitions.VIEWS:
        code = [line for line in definitions.view_text(name).splitlines() if not line.startswith("--")]
        assert "batches" not in "\n".join(code)


def test_the_placeholders_of_a_new_view_are_filled_wherever_its_author_puts_them(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "SELECT {batch.era} AS era, count(*) + {batch.retention_ms} AS n\nFROM offsets WHERE {batch.era} <> 'batch.era'"
    views = {**{name: definitions.view_text(name) for name in definitions.VIEWS}, "eras": text}
    monkeypatch.setattr(definitions, "VIEWS", tuple(views))
    monkeypatch.setattr(definitions, "view_text", views.__getitem__)
    snapshot = Snapshot.open(str(root))
    count = snapshot.query("SELECT count(*) AS n FROM offsets").to_pylist()[0]["n"]
    assert snapshot.query("SELECT * FROM eras").to_pylist() == [{"era": "4", "n": count + snapshot.batch.retention_ms}]
    assert definitions.spark_view_sql("eras").count("(SELECT era FROM batches ORDER BY batch_id DESC LIMIT 1)") == 2


@pytest.mark.parametrize("placeholder", ["{batch.generation}", "{era}", "{}"])
def test_an_unknown_placeholder_is_named(placeholder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(definitions, "view_text", lambda _: f"SELECT {placeholder} AS x")
    with pytest.raises(ValueError, match=r"view groups_of: unknown placeholder \{.*\}: use one of \{batch.era\}, \{batch.ret"):
        definitions.spark_view_sql("groups_of")
