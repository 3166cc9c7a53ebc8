"""Start offsets and lag of share groups, as `kafka-share-groups --describe` of Kafka 4.3 prints them."""

from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from pipelines.query.engine import Snapshot
from pipelines.query.kafka_layout import cell, write_block
from pipelines.runtime.terminal_text import mask_of

_ROWS = "SELECT group_id, topic, partition, leader_epoch, start_offset, lag, reason FROM share_offsets"
_COLUMNS = {
    "GROUP": "group_id",
    "TOPIC": "topic",
    "PARTITION": "partition",
    "LEADER-EPOCH": "leader_epoch",
    "START-OFFSET": "start_offset",
    "LAG": "lag",
}

_Row = Mapping[str, Any]


def share_offsets(snapshot: Snapshot, named: str) -> dict[str, list[_Row]]:
    """The rows of share groups by name, at the newest batch. `named` is a condition about `group_id`, or empty.

    Earlier versions of the table are removed after a while, and no other table has what they had: earlier batches have none.
    """
    is_newest = snapshot.newest().batch.batch_id == snapshot.batch.batch_id
    if not is_newest or "share_offsets" not in snapshot.batch.versions:
        return {}
    found: dict[str, list[_Row]] = {}
    for row in snapshot.query(f"{_ROWS} {named} ORDER BY group_id, topic, partition").to_pylist():
        found.setdefault(row["group_id"], []).append(row)
    return found


def write_share_block(out: TextIO, messages: TextIO, rows: Sequence[_Row], *, verbose: bool) -> None:
    """Write the block of a group, and a remark to `messages` for each error in place of an offset."""
    mask = mask_of(messages)
    for row in rows:
        if row["reason"] is not None:
            of = "" if row["topic"] is None else f" of {row['topic']}-{row['partition']}"
            text = f"Share group '{row['group_id']}': the start offset{of} is unknown ({row['reason']})."
            messages.write(f"\n{mask(text)}\n")
    columns = [name for name in _COLUMNS if verbose or name != "LEADER-EPOCH"]
    shown = [row for row in rows if row["topic"] is not None]
    write_block(out, [{name: cell(row[column]) for name, column in _COLUMNS.items()} for row in shown], columns)
