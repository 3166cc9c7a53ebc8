"""A producer with transactions in several log partitions: a marker ends what it has pending in its own partition only."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from created_tables import created_tables
from loaded_logs import replay
from log_builder import Log
from table_logs import change_table

from coordinator_core.log.entries import ControlType
from coordinator_core.state.era import Era
from pipelines.batch.apply import BatchApplier
from pipelines.query.engine import Snapshot

PRODUCER = 7


def committed(logs: list[Log], cuts: list[int], root: Path, era: Era) -> tuple[set[tuple[Any, ...]], set[tuple[Any, ...]]]:
    """Committed and pending offsets in tables of the logs, batch by batch up to the cuts and then to the ends."""
    store = created_tables(root)
    applier = BatchApplier(store, era, era.default_retention_ms, dict, bulk_rows=1_000_000)
    starts = [0] * len(logs)
    for cut in [*cuts, max(log.end for log in logs)]:
        ends = [min(cut, log.end) for log in logs]
        changes = [change_table(log, era, start, end) for log, start, end in zip(logs, starts, ends, strict=True) if end > start]
        applier.apply_rows(pa.concat_tables(changes))
        starts = ends
    batch = store.last_batch()
    assert batch is not None
    snapshot = Snapshot(store, batch)
    columns = "group_id, topic, partition, committed_offset"
    return (
        {tuple(row.values()) for row in snapshot.query(f"SELECT {columns} FROM committed_offsets").to_pylist()},
        {tuple(row.values()) for row in snapshot.query(f"SELECT {columns} FROM pending_offsets").to_pylist()},
    )


@pytest.mark.parametrize("era_name", ["3", "4"])
@pytest.mark.parametrize("ended_by", [ControlType.COMMIT, ControlType.ABORT])
def test_a_marker_in_another_partition_ends_nothing_here(era_name: str, ended_by: ControlType, tmp_path: Path) -> None:
    here, there = Log(partition=3), Log(partition=4)
    here.commit(0, 5, group="here", producer=PRODUCER)
    there.commit(0, 6, group="there", producer=PRODUCER)
    there.marker(PRODUCER, ended_by)
    stands, waits = committed([here, there], [1], tmp_path, Era.named(era_name))
    assert stands == ({("there", "foo", 0, 6)} if ended_by is ControlType.COMMIT else set())
    assert waits == {("here", "foo", 0, 5)}


@pytest.mark.parametrize("era_name", ["3", "4"])
def test_markers_of_one_producer_decide_differently_in_two_partitions(era_name: str, tmp_path: Path) -> None:
    here, there = Log(partition=3), Log(partition=4)
    for log, group in ((here, "here"), (there, "there")):
        log.commit(0, 5, group=group, producer=PRODUCER)
    here.marker(PRODUCER, ControlType.COMMIT)
    there.marker(PRODUCER, ControlType.ABORT)
    stands, waits = committed([here, there], [1], tmp_path, Era.named(era_name))
    state, _ = replay([*here.records, *there.records], era_name)
    assert stands == {("here", "foo", 0, 5)}
    assert waits == set()
    assert dict(state.committed("there")) == {}
