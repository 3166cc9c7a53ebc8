"""Steady commits of an administrator, such as MirrorMaker 2, among the resets of a group: one event instead of one per commit."""

from collections.abc import Mapping, Sequence
from typing import Any

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.health import JumpedBy, OffsetJump, without_syncs
from coordinator_core.health.timed_text import timed_text
from pipelines.dashboard.formatting.names import visible
from pipelines.dashboard.formatting.quantities import duration, plural
from pipelines.dashboard.formatting.times import marked_clock
from pipelines.runtime.timestamps import at_ms, to_ms

Row = dict[str, Any]


def without_sync_rows(resets: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Rows of the view `resets` that are no part of a steady sync, and the event of the sync, if there is one.

    The rows are in the order of time.
    """
    jumps = [_jump(row) for row in resets]
    rest, sync = without_syncs(jumps)
    if sync is None or sync.since_ms is None:
        return list(resets), []
    kept = {id(jump) for jump in rest}
    steady = len(resets) - len(rest)
    topics = sorted({partition.topic for partition in sync.partitions})
    place = visible(topics[0]) if len(topics) == 1 else plural(len(topics), "topic")
    words = timed_text(
        f"An admin client began to set offsets of {place} every {duration(sync.interval_ms / 1000)}: "
        f"{plural(steady, 'commit')} until {marked_clock(at_ms(sync.last_ms))}"
    )
    event = {"at": at_ms(sync.since_ms), "kind": "sync", "words": words}
    return [row for row, jump in zip(resets, jumps, strict=True) if id(jump) in kept], [event]


def _jump(row: Mapping[str, Any]) -> OffsetJump:
    """`from_offset` is null where only the batch of the commit knew it."""
    to_offset, from_offset = row["to_offset"], row["from_offset"]
    return OffsetJump(
        to_ms(row["reset_at"]),
        TopicPartition(row["topic"], row["partition"]),
        to_offset + 1 if from_offset is None else from_offset,
        to_offset,
        JumpedBy(row["reset_by"]),
    )
