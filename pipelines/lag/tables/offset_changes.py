"""Changes of committed offsets: the rows of `offset_history` that changed one, with the time of the commit."""

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.query.engine import Snapshot
from pipelines.query.histories import ELSEWHERE, IS_CHANGE
from pipelines.runtime.timestamps import TIMESTAMP

#: Time of a commit on the coordinator.
COMMITTED_AT = "COALESCE(commit_timestamp, record_timestamp, to_timestamp_micros(0))"

#: The rows of `offset_history` that changed an offset.
OFFSET_CHANGES = f"""
SELECT group_id, topic, partition, change, committed_offset, previous_offset, commits, min_offset, leader_epoch, metadata,
       producer_id, {COMMITTED_AT} AS committed_at, log_partition, log_offset, batch_id
FROM (SELECT * FROM offset_history WHERE {IS_CHANGE}) h
"""

#: True for a commit that may be a jump: a rewind, or a commit as Kafka's tools make them.
MAY_BE_JUMP = """
(change = 'rewind' OR (previous_offset <> committed_offset AND leader_epoch IS NULL AND producer_id IS NULL
                       AND COALESCE(metadata, '') = ''))
"""

#: The rows of OFFSET_CHANGES of the batches after one, until that of a snapshot, in any order.
ChangesAfter = Callable[[Snapshot, int], pa.Table]


def offset_changes(history: pa.Table) -> pa.Table:
    """As OFFSET_CHANGES, for rows of `offset_history` that are in memory; with all of its columns."""
    changes = history.filter(pc.not_equal(history["change"], ELSEWHERE))
    committed_at = pc.coalesce(changes["commit_timestamp"], changes["record_timestamp"], pa.scalar(0, TIMESTAMP))
    return changes.append_column("committed_at", committed_at)


def possible_jumps(changes: pa.Table) -> pa.Table:
    """The rows for which MAY_BE_JUMP is true."""
    is_tool = pc.and_(
        pc.and_(changes["leader_epoch"].is_null(), changes["producer_id"].is_null()),
        pc.equal(pc.fill_null(changes["metadata"], ""), ""),
    )
    # a comparison with null is null, which selects nothing
    is_moved = pc.and_kleene(pc.not_equal(changes["previous_offset"], changes["committed_offset"]), is_tool)
    return changes.filter(pc.or_kleene(pc.equal(changes["change"], "rewind"), is_moved))
