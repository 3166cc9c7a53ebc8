"""Change data feeds of the tables of state: applied to the table at their begin, they give the table of now."""

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from created_tables import created_tables
from cut_off_batches import dying_before
from deltalake import DeltaTable
from log_builder import NOW_MS, Log, member
from pyspark.sql import SparkSession
from table_logs import change_table
from three_batches import ERA

from pipelines.batch.apply import BatchApplier
from pipelines.query.check import check
from pipelines.runtime.errors import UsageError
from pipelines.tables import definitions
from pipelines.tables.change_data_feed import FEED_TABLES, feed_tables
from pipelines.tables.sorted_files.change_files import has_change_data_feed
from pipelines.tables.store import TableStore
from pipelines.upkeep.maintain import Maintenance, maintain

Rows = dict[tuple[Any, ...], Mapping[str, Any]]
#: Whether a change adds its row, or takes it away.
ADDS = {"delete": False, "update_preimage": False, "insert": True, "update_postimage": True}
#: Unchanged rows of the group whose rows share their file with those that change.
OTHERS = 40


def applier(root: Path) -> BatchApplier:
    fed = frozenset(FEED_TABLES)
    return BatchApplier(TableStore(str(root)), ERA, ERA.default_retention_ms, dict, bulk_rows=1_000_000, feed_tables=fed)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Batches that insert, change and remove rows, one of them interrupted and repeated, and maintenance."""
    folder = tmp_path_factory.mktemp("fed")
    created_tables(folder)
    log, writing, applied = Log(partition=3), applier(folder), 0

    def batch() -> None:
        nonlocal applied
        writing.apply_rows(change_table(log, ERA, applied, log.end))
        applied = log.end

    for partition in range(OTHERS):
        log.commit(partition, 5, group="still")
    log.commit(0, 1, group="a")
    log.group([member()], group="c")
    batch()
    log.commit(0, 2, group="a")
    log.commit(1, 7, group="a")
    log.group([member(), member("m2")], group="c", generation=6)
    batch()
    log.commit(0, 3, group="a")
    log.offset_tombstone(1, group="a")
    log.group([], group="c", generation=7)
    with dying_before("batches"):
        writing.apply_rows(change_table(log, ERA, applied, log.end))
    writing = applier(folder)
    batch()
    maintain(str(folder), Maintenance(10_000, 168, 16), datetime.fromtimestamp(NOW_MS / 1000, UTC) + timedelta(days=1), print)
    writing = applier(folder)
    log.commit(0, 4, group="a")
    log.group_tombstone("c")
    batch()
    assert check(str(folder)) == []
    return folder


def table_at(root: Path, name: str, version: int | None = None) -> DeltaTable:
    return DeltaTable(str(root / name), version=version)


def rows_of(table: DeltaTable, name: str) -> Rows:
    return {key_of(name, row): row for row in pa.table(table.to_pyarrow_table()).to_pylist()}


def key_of(name: str, row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[column] for column in definitions.table(name).key)


def begin_of(root: Path, name: str) -> int:
    newest = table_at(root, name).version()
    return next(version for version in range(newest + 1) if has_change_data_feed(table_at(root, name, version)))


def changes_of(root: Path, name: str) -> list[dict[str, Any]]:
    """The feed after its begin, rows that a commit takes away before those that it adds."""
    feed = pa.table(table_at(root, name).load_cdf(starting_version=begin_of(root, name) + 1).read_all()).to_pylist()
    return sorted(feed, key=lambda row: (row["_commit_version"], ADDS[row["_change_type"]]))


@pytest.mark.parametrize("name", FEED_TABLES)
def test_the_feed_makes_the_table(root: Path, name: str) -> None:
    rows = rows_of(table_at(root, name, begin_of(root, name)), name)
    for change in changes_of(root, name):
        row = {column: value for column, value in change.items() if not column.startswith("_")}
        if ADDS[change["_change_type"]]:
            rows[key_of(name, row)] = row
        else:
            assert rows.pop(key_of(name, row)) == row
    assert rows == rows_of(table_at(root, name), name)


def test_batches_have_the_changed_rows_only(root: Path) -> None:
    """Of the rows that a batch leaves alone there is nothing, except where an interrupted batch was rolled back."""
    unchanged = Counter(row["_commit_version"] for row in changes_of(root, "offsets") if row["group_id"] == "still")
    operations = {entry["version"]: entry["operation"] for entry in table_at(root, "offsets").history()}
    assert {operations[version] for version in unchanged} <= {"RESTORE"}
    changed = [
        (row["_change_type"], row["partition"], row["committed_offset"])
        for row in changes_of(root, "offsets")
        if operations[row["_commit_version"]] == "MERGE" and row["group_id"] == "a"
    ]
    assert sorted(changed[:3]) == [("insert", 1, 7), ("update_postimage", 0, 2), ("update_preimage", 0, 1)]


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.parametrize("name", FEED_TABLES)
def test_spark_reads_the_same_feed(root: Path, name: str, spark: SparkSession) -> None:
    """Row by row, as delta-rs reads it."""
    reader = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", begin_of(root, name) + 1)
    rows = reader.load(str(root / name)).toArrow()
    names = [*definitions.table(name).key, "batch_id", "log_offset", "_change_type", "_commit_version"]
    assert set(names) <= set(rows.column_names)
    ours = Counter(tuple(row[each] for each in names) for row in changes_of(root, name))
    assert Counter(tuple(row[each] for each in names) for row in rows.to_pylist()) == ours
    assert ours


def test_the_first_batch_has_no_feed(root: Path) -> None:
    assert begin_of(root, "offsets") > 1
    assert len(rows_of(table_at(root, "offsets", begin_of(root, "offsets")), "offsets")) == OTHERS + 1


def test_names_of_tables_are_checked() -> None:
    assert feed_tables(["offsets"]) == {"offsets"}
    with pytest.raises(UsageError, match=r"job\.change_data_feed has 'batches': use names of groups, members, offsets"):
        feed_tables(["batches"])
