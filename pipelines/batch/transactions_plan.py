"""Plan of the writes of `transactions` and `transaction_history`, from new records of `__transaction_state`.

Only the last record of an id in the batch decides its state, so the work is bounded by the ids, and the history has a row per id
and batch with counts of the records that were replaced.
"""

from collections import defaultdict
from typing import Any

from coordinator_core.protocol.internal_topics import TRANSACTION_STATE_TOPIC
from coordinator_core.reduction.transaction_reduction import ReducedTransaction
from coordinator_core.state.transaction_cache import LoggedTransaction
from coordinator_core.state.transaction_state import DEAD
from pipelines.batch.context import BatchContext
from pipelines.batch.groups_plan import as_table, delete, upsert
from pipelines.source.transaction_log import TransactionRange
from pipelines.timestamps import to_time
from pipelines.writers.table_write import TableWrite

_PREVIOUS = ("state", "producer_id", "producer_epoch")
_Row = dict[str, Any]


def plan_transactions(found: TransactionRange, context: BatchContext) -> tuple[TableWrite, ...]:
    """Writes of both tables, and of the quarantine."""
    rows: dict[str, list[_Row]] = {"transactions": [], "transaction_history": [], "quarantine": []}
    ids = [each.transactional_id for reduction in found.reductions for each in reduction.transactions]
    previous = {
        row["transactional_id"]: row
        for row in context.previous.rows("transactions", ["transactional_id", *_PREVIOUS], transactional_id=ids).to_pylist()
    }
    for reduction in found.reductions:
        for each in reduction.transactions:
            position = _position(reduction.partition, each.log_offset, each.record_timestamp, context)
            rows["transactions"].append(_state_row(each, position))
            rows["transaction_history"].append(_history_row(each, previous.get(each.transactional_id, {}), position))
        for record, reason in reduction.unread:
            position = _position(record.partition, record.offset, record.timestamp, context)
            rows["quarantine"].append(_unread_row(reason, position) | {"key": record.key, "value": record.value})
        for damage in reduction.damages:
            rows["quarantine"].append(_unread_row(damage.reason, _position(reduction.partition, damage.offset, -1, context)))
    return tuple(TableWrite(name, as_table(name, found_rows)) for name, found_rows in rows.items())


def _position(partition: int, offset: int, timestamp_ms: int, context: BatchContext) -> _Row:
    return {
        "log_partition": partition,
        "log_offset": offset,
        "record_timestamp": to_time(timestamp_ms),
        "batch_id": context.batch_id,
    }


def _unread_row(reason: str, position: _Row) -> _Row:
    return {**position, "reason": reason, "log_topic": TRANSACTION_STATE_TOPIC}


def _state_row(each: ReducedTransaction, position: _Row) -> _Row:
    if each.after is None:
        return delete({"transactional_id": each.transactional_id}, each.log_offset)
    metadata = each.after.metadata
    return upsert(
        {
            **position,
            "transactional_id": each.transactional_id,
            "state": metadata.state.label,
            "producer_id": metadata.producer_id,
            "producer_epoch": metadata.producer_epoch,
            "previous_producer_id": _known(metadata.previous_producer_id),
            "next_producer_id": _known(metadata.next_producer_id),
            "timeout_ms": metadata.timeout_ms,
            "partitions": _partitions(each.after),
            "start_timestamp": to_time(metadata.start_ms),
            "last_update_timestamp": to_time(metadata.last_update_ms),
            "client_transaction_version": metadata.client_transaction_version,
        }
    )


def _history_row(each: ReducedTransaction, previous: _Row, position: _Row) -> _Row:
    metadata = each.after.metadata if each.after else None
    return {
        **position,
        "transactional_id": each.transactional_id,
        "state": metadata.state.label if metadata else DEAD.label,
        "producer_id": metadata.producer_id if metadata else None,
        "producer_epoch": metadata.producer_epoch if metadata else None,
        **{f"previous_{name}": previous.get(name) for name in _PREVIOUS},
        **each.counts._asdict(),
        "start_timestamp": to_time(metadata.start_ms) if metadata else None,
    }


def _known(producer_id: int) -> int | None:
    return None if producer_id == -1 else producer_id


def _partitions(logged: LoggedTransaction) -> list[_Row]:
    """By topic and number: brokers write them in hash order."""
    topics: dict[str, list[int]] = defaultdict(list)
    for topic, partition in sorted(logged.metadata.partitions):
        topics[topic].append(partition)
    return [{"topic": topic, "partitions": numbers} for topic, numbers in topics.items()]
