"""Tables of a log that Redpanda wrote: its groups are in other partitions than Kafka's, and era 4 says so."""

from pathlib import Path

import pyarrow as pa
import pytest
from created_tables import created_tables
from log_builder import NOW_MS, Log
from redpanda_records import (
    GroupMember,
    group_metadata_key,
    group_metadata_value,
    offset_metadata_key,
    offset_metadata_value,
    wrapped,
)
from table_logs import change_table

from coordinator_core.log.redpanda_partitioner import redpanda_partition_for
from coordinator_core.state.era import Era
from pipelines.batch.apply import BatchApplier
from pipelines.query.check import check
from pipelines.query.engine import Snapshot

PARTITIONS = 16
GROUPS = [f"group-{number}" for number in range(12)]


def written(group: str, log: Log) -> None:
    """A group with a member, an offset, and an offset that a wrapped tombstone removes."""
    member = GroupMember(f"c1-of-{group}", f"instance-of-{group}")
    log.raw(group_metadata_key(group), group_metadata_value((member,), leader=member.id, state_timestamp=NOW_MS))
    for partition in (0, 1):
        log.raw(offset_metadata_key(group, "orders", partition), offset_metadata_value(7, commit_timestamp=NOW_MS))
    log.raw(wrapped(offset_metadata_key(group, "orders", 1)), None)


def applied_with(era_name: str, root: str) -> list[str]:
    """Apply the log in one batch; return the lines of the job."""
    logs: dict[int, Log] = {}
    for group in GROUPS:
        number = redpanda_partition_for(group, PARTITIONS)
        written(group, logs.setdefault(number, Log(number)))
    era, lines = Era.named(era_name), list[str]()
    changes = [change_table(log, era, 0, log.end, partitions=PARTITIONS) for log in logs.values()]
    store = created_tables(root)
    applier = BatchApplier(store, era, era.default_retention_ms, dict, bulk_rows=1_000_000, progress=lines.append)
    applier.apply_rows(pa.concat_tables(changes))
    return lines


def test_groups_members_and_offsets(tmp_path: Path) -> None:
    lines = applied_with("redpanda", str(tmp_path))
    snapshot = Snapshot.open(str(tmp_path))
    members = snapshot.query("SELECT group_id, group_instance_id FROM members ORDER BY group_id").to_pylist()
    assert members == [{"group_id": each, "group_instance_id": f"instance-of-{each}"} for each in sorted(GROUPS)]
    offsets = snapshot.query("SELECT group_id, partition, committed_offset FROM offsets ORDER BY group_id").to_pylist()
    assert offsets == [{"group_id": each, "partition": 0, "committed_offset": 7} for each in sorted(GROUPS)]
    assert snapshot.query("SELECT count(*) AS n FROM quarantine").to_pylist() == [{"n": 0}]
    assert check(str(tmp_path)) == []
    assert not [line for line in lines if "decide nothing" in line]


def test_kafkas_era_names_the_other_one(tmp_path: Path) -> None:
    (line,) = [line for line in applied_with("4", str(tmp_path)) if "decide nothing" in line]
    assert line.endswith("Redpanda selects these partitions: if its brokers wrote the log, use --era redpanda and another folder")


@pytest.mark.parametrize("era", ["redpanda", "3"])
def test_undecodable_members_are_quarantined(era: str, tmp_path: Path) -> None:
    log = Log(0)
    log.raw(group_metadata_key("g"), group_metadata_value((GroupMember("m-1", version=4),)))
    store = created_tables(str(tmp_path))
    rules = Era.named(era)
    BatchApplier(store, rules, rules.default_retention_ms, dict, bulk_rows=1_000_000).apply_rows(
        change_table(log, rules, 0, log.end)
    )
    rows = Snapshot.open(str(tmp_path)).query("SELECT log_offset, reason FROM quarantine").to_pylist()
    assert [row["log_offset"] for row in rows] == [0]
