"""Loading of the compiled functions for `__transaction_state`."""

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.codec.transactions import encode_transaction
from coordinator_core.log.columns import parse_columns
from coordinator_core.log.record_batch import BatchRecord, write_batch
from coordinator_core.reduction.transaction_reduction import TransactionReducer
from coordinator_core.state.transaction_metadata import TransactionMetadata, transaction_record
from coordinator_core.state.transaction_state import ONGOING


def load_transaction_kernels() -> None:
    """Reduce a log of one record, which loads the functions or compiles them."""
    metadata = TransactionMetadata("id", 0, 0, 1, ONGOING, frozenset({TopicPartition("topic", 0)}), 0, 0)
    batch = write_batch([BatchRecord(0, 0, *encode_transaction(transaction_record(metadata, 1)))])
    reducer = TransactionReducer("4", 0)
    reducer.add(parse_columns(batch))
    reducer.finish()
