"""The groups and transactional ids of the tables before the first poll of a run: the next poll is compared with them."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from coordinator_core.group_polls.group_poll import PolledOffset, TopicPartitionKey
from coordinator_core.group_polls.poll_fold import NotedAnswer, PollFold, PollNote, StoredGroup
from coordinator_core.group_polls.transaction_poll import PolledTransaction
from coordinator_core.group_polls.transaction_poll_fold import PolledTransactions
from coordinator_core.state.era import Era
from coordinator_core.state.transaction_state import STATES_BY_LABEL
from pipelines.batch.changed_source import SOURCE_CHANGED
from pipelines.query.engine import Snapshot
from pipelines.runtime.timestamps import to_ms
from pipelines.tables.store import Batch, TableStore

_NO_EPOCH = -1

_GROUPS = "SELECT group_id FROM groups"
_RECORDS = "SELECT group_id, key, value FROM group_records ORDER BY group_id, log_offset"
_TRANSACTIONS = (
    "SELECT transactional_id, state, producer_id, producer_epoch, timeout_ms, start_timestamp, partitions FROM transactions"
)
_OFFSETS = "SELECT group_id, topic, partition, committed_offset, leader_epoch, metadata FROM offsets"

#: The last note about each group. Rows that maintenance has removed are forgotten: a missing group is then noted again.
_NOTES = f"""
SELECT group_id, change, detail FROM (
  SELECT group_id, change, detail, row_number() OVER (PARTITION BY group_id ORDER BY batch_id DESC, log_offset DESC) AS age
  FROM group_history WHERE change IN ({", ".join(f"'{note}'" for note in PollNote)}, 'group_deleted', '{SOURCE_CHANGED}')
) h WHERE age = 1 AND change IN ('{PollNote.MISSING}', '{PollNote.FAILED}')
"""


def polled_state(store: TableStore, last: Batch | None, era: Era) -> PollFold:
    """The fold of the next poll, from the tables of batch `last`; None for new tables."""
    if last is None:
        return PollFold(era)
    snapshot = Snapshot(store, last)
    records: dict[str, dict[bytes, bytes]] = {}
    for group_id, key, value in _rows(snapshot.query(_RECORDS)):
        records.setdefault(group_id, {})[key] = value
    offsets: dict[str, dict[TopicPartitionKey, PolledOffset]] = {}
    for group_id, topic, partition, offset, epoch, metadata in _rows(snapshot.query(_OFFSETS)):
        found = PolledOffset(offset, _NO_EPOCH if epoch is None else epoch, metadata)
        offsets.setdefault(group_id, {})[TopicPartitionKey(topic, partition)] = found
    names = {group_id for (group_id,) in _rows(snapshot.query(_GROUPS))} | offsets.keys()
    groups = {name: StoredGroup(records.get(name, {}), offsets.get(name, {})) for name in names}
    notes = {group_id: NotedAnswer(PollNote(note), detail) for group_id, note, detail in _rows(snapshot.query(_NOTES))}
    return PollFold(era, groups, notes)


def polled_transactions(store: TableStore, last: Batch | None) -> PolledTransactions:
    """The transactional ids of the tables of batch `last`; none if it has not polled them."""
    if last is None or last.transaction_offsets is None:
        return {}
    found: dict[str, PolledTransaction] = {}
    for name, label, producer_id, epoch, timeout_ms, start, parts in _rows(Snapshot(store, last).query(_TRANSACTIONS)):
        partitions = tuple((part["topic"], tuple(part["partitions"])) for part in parts)
        found[name] = PolledTransaction(STATES_BY_LABEL[label], producer_id, epoch, timeout_ms, to_ms(start), partitions)
    return found


def _rows(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in table.columns), strict=True)
