"""The tables that benchmarks make equal those of the job, and small runs of the benchmarks succeed."""

from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest

from benchmarks import bench_query
from benchmarks.bench_micro_batch import apply_batches
from benchmarks.large_tables import BULK_ROWS, ERA, TablesShape, change_rows, copied, large_tables
from benchmarks.offset_changes import Changes, as_change_rows
from pipelines.batch import apply
from pipelines.batch.apply import BatchApplier
from pipelines.query.check import check
from pipelines.query.engine import Snapshot
from pipelines.runtime.configuration import load_configuration
from pipelines.source.changes import SCHEMA
from pipelines.tables import definitions
from pipelines.tables.store import TableStore

SIZE = 1_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("benchmarks")


def contents(store: TableStore, table: str) -> list[dict[str, Any]]:
    found = Snapshot.open(store.root).query(f"SELECT * FROM {table}").to_pylist()
    return sorted(found, key=repr)


def test_the_limit_of_a_batch_in_the_driver_is_the_job_s() -> None:
    assert load_configuration(None).job["bulk_rows"] == BULK_ROWS


def test_they_are_those_of_the_job(folder: Path) -> None:
    made = large_tables(SIZE, folder)
    store = TableStore(str(folder / "job"))
    store.create()
    applier = BatchApplier(store, ERA, ERA.default_retention_ms, dict, bulk_rows=BULK_ROWS)
    applier.apply_rows(pa.Table.from_batches(change_rows(TablesShape(SIZE)), SCHEMA))
    assert check(made.root) == []
    for table in definitions.WRITE_ORDER[:-1]:
        assert contents(made, table) == contents(store, table)


def test_small_batches_leave_few_files(folder: Path, tmp_path: Path) -> None:
    store = copied(large_tables(SIZE, folder), tmp_path / "copy")
    with mock.patch.object(apply, "COMPACT_EVERY", 5):
        apply_batches(store, TablesShape(SIZE), 12, groups=2, offsets=20)
    assert check(store.root) == []
    assert len(store.table("offset_history").file_uris()) <= 5
    assert len(store.table("batches").file_uris()) <= 5
    assert Snapshot.open(store.root).query("SELECT count(*) AS n FROM batches").to_pylist() == [{"n": 13}]
    assert check(large_tables(SIZE, folder).root) == []


def test_a_round_makes_the_changes_that_it_reports(folder: Path, tmp_path: Path) -> None:
    shape = TablesShape(SIZE)
    store = copied(large_tables(SIZE, folder), tmp_path / "copy")
    changes = Changes(shape)
    applier = BatchApplier(store, ERA, ERA.default_retention_ms, dict, bulk_rows=BULK_ROWS)
    applier.apply_rows(as_change_rows(changes.round(4, 100, 1_800_000_000_000), shape.next_offsets))
    sql = "SELECT count(*) AS offsets, count(DISTINCT group_id) AS groups FROM offsets WHERE batch_id = 1"
    assert Snapshot.open(store.root).query(sql).to_pylist() == [{"offsets": 100, "groups": 4}]


def test_queries_of_the_benchmark_find_something(folder: Path) -> None:
    store = large_tables(SIZE, folder)
    for question, sql in bench_query.QUERIES.items():
        found = Snapshot.open(store.root).query(sql.format(group=bench_query.queried_group(TablesShape(SIZE))))
        assert found.num_rows > 0, question
