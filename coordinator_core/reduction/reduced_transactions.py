"""Result of the reduction of a range of `__transaction_state`, for modules that need not load the compiled reducer."""

from typing import NamedTuple

import pyarrow as pa

from coordinator_core.log.damage import Damage
from coordinator_core.log.entries import LogRecord
from coordinator_core.state.anomaly import Anomaly

#: Partitions of a transaction, by topic.
_PARTITIONS = pa.list_(pa.struct([("topic", pa.string()), ("partitions", pa.list_(pa.int32()))]))

#: Columns of a state, null for a tombstone: fields of a value, under their names in `TransactionMetadata`.
STATE_FIELDS = {
    "state": pa.int8(),
    "producer_id": pa.int64(),
    "producer_epoch": pa.int16(),
    "timeout_ms": pa.int32(),
    "start_ms": pa.int64(),
    "last_update_ms": pa.int64(),
    "previous_producer_id": pa.int64(),
    "next_producer_id": pa.int64(),
    "client_transaction_version": pa.int16(),
}
#: Numbers of records up to the last one: of all, and of those with the states Empty, CompleteCommit and CompleteAbort.
COUNTS = ("records", "initializations", "commits", "aborts")

#: Columns of reduced transactions. Times in ms.
REDUCED_TRANSACTIONS = pa.schema(
    {
        "transactional_id": pa.string(),
        **STATE_FIELDS,
        "partitions": _PARTITIONS,
        "log_offset": pa.int64(),
        "record_timestamp": pa.int64(),
        **dict.fromkeys(COUNTS, pa.int64()),
    }
)


class UnreadRecord(NamedTuple):
    """A record that the era's coordinator does not load."""

    record: LogRecord
    anomaly: Anomaly


class TransactionReduction(NamedTuple):
    """Result for a range of one log partition.

    `transactions` has the last record of each transactional id that a coordinator loads (`REDUCED_TRANSACTIONS`).
    """

    partition: int
    records_read: int
    transactions: pa.Table
    unread: tuple[UnreadRecord, ...]
    damages: tuple[Damage, ...]
