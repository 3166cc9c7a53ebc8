"""Load of a partition of `__transaction_state` from its beginning, by reduction.

The result is that of `TransactionMetadataCache.apply` for every record. Only the last record of an id becomes an object.
"""

from collections.abc import Iterable, Iterator

import pyarrow.compute as pc

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.log.columns import RecordColumns
from coordinator_core.reduction.reduced_transactions import TransactionReduction
from coordinator_core.reduction.transaction_reduction import TransactionReducer
from coordinator_core.state.anomaly import Anomaly
from coordinator_core.state.garbage_collection import no_garbage_collection
from coordinator_core.state.transaction_cache import LoggedTransaction, TransactionMetadataCache
from coordinator_core.state.transaction_metadata import NO_PRODUCER_EPOCH, TransactionMetadata
from coordinator_core.state.transaction_state import TransactionState

_STATES = tuple(TransactionState)
_NO_PARTITIONS: frozenset[TopicPartition] = frozenset()
_COLUMNS = (
    *("transactional_id", "producer_id", "producer_epoch", "timeout_ms", "state", "partitions", "start_ms", "last_update_ms"),
    *("previous_producer_id", "next_producer_id", "client_transaction_version", "log_offset", "record_timestamp"),
)


def load_transaction_columns(
    cache: TransactionMetadataCache, partition: int, pieces: Iterable[RecordColumns]
) -> tuple[Anomaly, ...]:
    """Load a whole log partition, in pieces in log order, into a cache without it. Return the anomalies that `apply` reports."""
    reducer = TransactionReducer(cache.era, partition)
    for columns in pieces:
        reducer.add(columns)
    reduction = reducer.finish()
    with no_garbage_collection():
        cache.add(loaded_transactions(reduction))
    return tuple(unread.anomaly for unread in reduction.unread)


def loaded_transactions(reduction: TransactionReduction) -> Iterator[LoggedTransaction]:
    """Yield the transactional ids that have a state after the range."""
    rows = reduction.transactions.filter(pc.is_valid(reduction.transactions["state"]))
    columns = (rows[name].to_pylist() for name in _COLUMNS)
    for name, producer_id, epoch, timeout_ms, state, topics, start_ms, at, previous, next_id, version, offset, timestamp in zip(
        *columns, strict=True
    ):
        partitions = _NO_PARTITIONS
        if topics:
            partitions = frozenset(TopicPartition(each["topic"], number) for each in topics for number in each["partitions"])
        metadata = TransactionMetadata(
            name,
            producer_id,
            epoch,
            timeout_ms,
            _STATES[state],
            partitions,
            start_ms,
            at,
            previous,
            next_id,
            NO_PRODUCER_EPOCH,
            version,
        )
        yield LoggedTransaction(metadata, reduction.partition, offset, timestamp)
