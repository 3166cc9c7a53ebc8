"""`grouplake show --transactions`: records of `__transaction_state` and the ids that they load to, as Kafka prints them.

The classic line is that of the Scala brokers' `TransactionLogMessageFormatter`. The tables are those of
`kafka-transactions.sh list` and `describe`; a log does not contain the id of the coordinator's broker: that column is `None`.
"""

import json
from collections.abc import Iterable, Iterator, Sequence

from coordinator_core.codec.text import transaction_json_form
from coordinator_core.codec.transactions import TransactionRecord
from coordinator_core.log.entries import LogRecord
from coordinator_core.reduction.transaction_load import loaded_transactions
from coordinator_core.reduction.transaction_reduction import TransactionReducer
from coordinator_core.sources.source import LogSource
from coordinator_core.state.transaction_metadata import TransactionMetadata, loaded_metadata
from pipelines.source.show import LogProblem

_TOMBSTONE = "NULL"
#: `mutable.Set.toString` of Scala 2.13; earlier releases are built with 2.11 and 2.12.
_SET_NAMES = {"1": "Set", "2": "Set", "3": "HashSet", "4": "HashSet"}
_UNKNOWN = "None"
_LIST = ("TransactionalId", "Coordinator", "ProducerId", "TransactionState")
_DESCRIBE = (
    *("CoordinatorId", "TransactionalId", "ProducerId", "ProducerEpoch", "TransactionState", "TransactionTimeoutMs"),
    *("CurrentTransactionStartTimeMs", "TransactionDurationMs", "TopicPartitions"),
)


def transaction_json_line(logged: LogRecord, record: TransactionRecord, *, with_position: bool) -> str:
    """The line of the console consumer's formatter of 4.x; optionally with partition and offset."""
    position = {"partition": logged.partition, "offset": logged.offset} if with_position else {}
    return json.dumps({**position, **transaction_json_form(record)}, ensure_ascii=False, separators=(",", ":"))


def classic_transaction_line(logged: LogRecord, record: TransactionRecord, *, era: str, with_position: bool) -> str | LogProblem:
    """The line of the Scala formatter; optionally after partition-offset. A value that no broker loads is a problem."""
    transactional_id = record.key.transactional_id
    try:
        text = _TOMBSTONE if record.value is None else _classic_text(loaded_metadata(transactional_id, record.value), era)
    except ValueError as error:
        return LogProblem(logged.partition, logged.offset, str(error))
    line = f"{transactional_id}::{text}"
    return f"{logged.partition}-{logged.offset} {line}" if with_position else line


def _classic_text(metadata: TransactionMetadata, era: str) -> str:
    partitions = ", ".join(f"{topic}-{number}" for topic, number in sorted(metadata.partitions))
    return (
        f"TransactionMetadata(transactionalId={metadata.transactional_id}, producerId={metadata.producer_id}, "
        f"producerEpoch={metadata.producer_epoch}, txnTimeoutMs={metadata.timeout_ms}, state={metadata.state.label}, "
        f"pendingState=None, topicPartitions={_SET_NAMES[era]}({partitions}), txnStartTimestamp={metadata.start_ms}, "
        f"txnLastUpdateTimestamp={metadata.last_update_ms})"
    )


def transactions_of(source: LogSource, era: str) -> tuple[list[TransactionMetadata], list[LogProblem]]:
    """Every transactional id as a coordinator of the era loads it, by name, and the records that it does not load."""
    earliest, ends = source.earliest_offsets(), source.end_offsets()
    found: list[TransactionMetadata] = []
    problems: list[LogProblem] = []
    for partition in source.partitions():
        reducer = TransactionReducer(era, partition)
        for columns in source.read_columns(partition, earliest[partition], ends[partition]):
            reducer.add(columns)
        reduction = reducer.finish()
        found += (logged.metadata for logged in loaded_transactions(reduction))
        problems += (LogProblem(partition, unread.record.offset, unread.anomaly.detail) for unread in reduction.unread)
        problems += (LogProblem(partition, damage.offset, damage.reason) for damage in reduction.damages)
    return sorted(found, key=lambda metadata: metadata.transactional_id), problems


def list_table(transactions: Iterable[TransactionMetadata]) -> Iterator[str]:
    """The lines of `kafka-transactions.sh list`."""
    rows = [(each.transactional_id, _UNKNOWN, str(each.producer_id), each.state.label) for each in transactions]
    return _table(_LIST, rows)


def describe_table(transactions: Iterable[TransactionMetadata], now_ms: int) -> Iterator[str]:
    """The lines of `kafka-transactions.sh describe`, for all ids."""
    return _table(_DESCRIBE, [_described(each, now_ms) for each in transactions])


def _described(metadata: TransactionMetadata, now_ms: int) -> tuple[str, ...]:
    start, duration = _UNKNOWN, _UNKNOWN
    if metadata.start_ms >= 0:
        start, duration = str(metadata.start_ms), str(now_ms - metadata.start_ms)
    return (
        *(_UNKNOWN, metadata.transactional_id, str(metadata.producer_id), str(metadata.producer_epoch), metadata.state.label),
        *(str(metadata.timeout_ms), start, duration),
        ",".join(f"{topic}-{number}" for topic, number in sorted(metadata.partitions)),
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """`ToolsUtils.prettyPrintTable`: columns are padded, and every one of them ends with a tab."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, *rows):
        yield "".join(f"{value:{width}}\t" for value, width in zip(row, widths, strict=True))
