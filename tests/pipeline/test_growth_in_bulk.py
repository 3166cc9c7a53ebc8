"""Records in other partitions than those of their groups, in batches whose commits stay with the executors."""

from pathlib import Path

import pytest
from jobs import run_job
from pyspark.sql import SparkSession
from segment_builder import LogBuilder

from coordinator_core.codec import Record, encode
from coordinator_core.codec.messages.offsets import OffsetCommitKey, OffsetCommitValue
from coordinator_core.log.partitioner import partition_for
from pipelines.query.check import check
from pipelines.query.engine import Snapshot

pytestmark = [pytest.mark.spark, pytest.mark.long]

OLD, NEW = 2, 5
GROUPS = tuple(map("group-{}".format, range(12)))
COMPARED = {
    "offsets": "group_id, partition, committed_offset, log_partition, log_offset, batch_id",
    "offset_history": "group_id, partition, change, committed_offset, previous_offset, commits, log_partition, log_offset",
    "groups": "group_id, group_type, log_partition, batch_id",
}


def commit(offset: int, *, group: str, partition: int = 0) -> tuple[bytes, bytes | None]:
    return encode(Record(1, OffsetCommitKey(group, "t", partition), OffsetCommitValue(offset, commit_timestamp=1), 3))


def tombstone(*, group: str, partition: int = 0) -> tuple[bytes, bytes | None]:
    return encode(Record(1, OffsetCommitKey(group, "t", partition), None, None))


@pytest.mark.parametrize("stated", [NEW, pytest.param(0, marks=pytest.mark.slow)])
def test_both_writers_write_the_same(tmp_path: Path, spark: SparkSession, stated: int) -> None:  # noqa: ARG001
    log = LogBuilder(tmp_path / "log")
    small, bulk = tmp_path / "small", tmp_path / "bulk"
    for number, count in enumerate((OLD, NEW)):
        for at, group in enumerate(GROUPS):
            log.append(
                partition_for(group, count), [commit(10 * number + at, group=group), commit(number, group=group, partition=1)]
            )
        if count == NEW:
            log.append(partition_for(GROUPS[0], OLD), [tombstone(group=GROUPS[0])])
        for tables, bulk_rows in ((small, 1_000_000), (bulk, 0)):
            run_job(f"segments:{log.directory}", tables, bulk_rows=bulk_rows, offsets_partitions=stated)
    few, many = Snapshot.open(str(small)), Snapshot.open(str(bulk))
    for name, columns in COMPARED.items():
        one, other = (snapshot.query(f"SELECT {columns} FROM {name} ORDER BY {columns}") for snapshot in (few, many))
        assert one.to_pylist() == other.to_pylist(), name
    if stated:
        rows = many.query("SELECT DISTINCT group_id, log_partition FROM offsets").to_pylist()
        assert {row["group_id"]: row["log_partition"] for row in rows} == {group: partition_for(group, NEW) for group in GROUPS}
    assert many.query("SELECT 1 FROM offset_history WHERE change = 'elsewhere'").num_rows
    for tables in (small, bulk):
        assert check(str(tables)) == []
