"""The tabs of the page of a group: rows that are read only when the tab is shown."""

import shlex
from collections.abc import Callable, Sequence
from typing import Any

from coordinator_core.codec import Record, decode
from coordinator_core.codec.text import json_form
from pipelines.dashboard.formatting.times import comes
from pipelines.dashboard.state.moment import Moment
from pipelines.lag.tables.blocking_transactions import OPEN_PARTITIONS, pending_offsets
from pipelines.tables.store import literal

Row = dict[str, Any]

_EXPIRY = """
SELECT topic, partition, committed_offset, commit_timestamp, expire_timestamp, expires_at FROM expiring_offsets
WHERE group_id = {group} ORDER BY expires_at NULLS LAST, topic, partition
"""
_RESETS = """
SELECT reset_at, topic, partition, from_offset, to_offset, from_is_least, direction, reset_by FROM resets
WHERE group_id = {group} ORDER BY reset_at DESC, topic, partition LIMIT 1000
"""
_PENDING = """
SELECT producer_id, topic, partition, committed_offset, commit_timestamp, record_timestamp, transactional_id, state
FROM ({pending_offsets}) p
WHERE group_id = {group} ORDER BY producer_id, topic, partition
"""
_OPEN = f"""
SELECT topic, partition, transactional_id, state, producer_id, start_timestamp
FROM ({OPEN_PARTITIONS}) o
ORDER BY start_timestamp, transactional_id, topic, partition
"""
_RECORDS = """
SELECT key, value, log_partition, log_offset, record_timestamp FROM group_records
WHERE group_id = {group} ORDER BY log_partition, log_offset
"""


def read_command(topic: str, partition: int, offset: int) -> str:
    """A command that prints the record at which a position stands: the first one that a consumer has not committed."""
    return shlex.join(
        [
            *("kafka-console-consumer.sh", "--bootstrap-server", "BROKER:9092", f"--topic={topic}"),
            *("--partition", str(partition), "--offset", str(offset), "--max-messages", "1"),
        ]
    )


def undo_command(group: str, reset: Row) -> str:
    """The command of Kafka's tool that moves an offset back to where it was; empty if that is unknown.

    The group has to be without members.
    """
    if reset["from_offset"] is None:
        return ""
    return shlex.join(
        [
            *("kafka-consumer-groups.sh", "--bootstrap-server", "BROKER:9092", "--group", group),
            *("--topic", f"{reset['topic']}:{reset['partition']}", "--reset-offsets"),
            *("--to-offset", str(reset["from_offset"]), "--execute"),
        ]
    )


def _expiry(moment: Moment, group: str) -> list[Row]:
    """Rows with the time of expiry; `is_endless` if it is null since the commit is for ever, whatever the group does."""
    return [{**row, "is_endless": row["expires_at"] is None and _is_endless(row)} for row in _rows(moment, _EXPIRY, group)]


def _is_endless(row: Row) -> bool:
    base = row["expire_timestamp"] or row["commit_timestamp"]
    return base is not None and not comes(base)


def _resets(moment: Moment, group: str) -> list[Row]:
    return [{**row, "undo": undo_command(group, row)} for row in _rows(moment, _RESETS, group)]


def transactions_of(moment: Moment, group: str) -> list[Row]:
    """Pending offsets, and without an offset the open transactions that hide the next records of positions, where known."""
    rows = _rows(moment, _PENDING.format(pending_offsets=pending_offsets(moment.batch), group="{group}"), group)
    blocked = {(row["topic"], row["partition"]): row for row in moment.lag(group) if row.get("blocked_by_transaction")}
    open_rows = moment.query(_OPEN).to_pylist() if blocked and moment.batch.has_transactions else []
    for key, row in sorted(blocked.items()):
        of_partition = [each for each in open_rows if (each["topic"], each["partition"]) == key]
        producer = row.get("blocked_by_producer_id")
        if producer is not None:
            state = next((each["state"] for each in of_partition if each["producer_id"] == producer), None)
            of_partition = [
                {
                    "topic": row["topic"],
                    "partition": row["partition"],
                    "transactional_id": row["blocked_by_transactional_id"],
                    "state": state,
                    "producer_id": producer,
                    "start_timestamp": row["blocked_since"],
                }
            ]
        rows += [{**each, "committed_offset": None} for each in of_partition]
    return rows


def _records(moment: Moment, group: str) -> list[Row]:
    """Group records in the form of Kafka's formatters, as `grouplake show` prints them."""
    found = []
    for row in _rows(moment, _RECORDS, group):
        decoded = decode(row.pop("key"), row.pop("value"))
        found.append({**row, "record": json_form(decoded) if isinstance(decoded, Record) else {"undecodable": decoded.reason}})
    return found


def _members(moment: Moment, group: str) -> list[Row]:
    return [_plain(row) for row in moment.members(group)]


def _plain(row: Row) -> Row:
    """JSON has no bytes; user data is in the raw records."""
    user_data = row.pop("user_data", None)
    return {**row, "user_data_bytes": None if user_data is None else len(user_data)}


def _rows(moment: Moment, sql: str, group: str) -> list[Row]:
    rows: list[Row] = moment.query(sql.format(group=literal(group))).to_pylist()
    return rows


#: Name in the URL, title, and the rows. The offsets are on every tab's page, so their tab adds none.
TABS: Sequence[tuple[str, str, Callable[[Moment, str], list[Row]] | None]] = (
    ("offsets", "Offsets", None),
    ("members", "Members", _members),
    ("expiry", "Expiry", _expiry),
    ("resets", "Resets", _resets),
    ("transactions", "Transactions", transactions_of),
    ("records", "Raw records", _records),
)
