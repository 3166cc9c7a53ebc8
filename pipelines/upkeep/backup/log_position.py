"""Comparison of the logs with the positions of restored tables: whether the job can continue there."""

from collections.abc import Iterator, Mapping

from pipelines.runtime.errors import GrouplakeError, TablesError, UsageError
from pipelines.source.address import SourceAddress
from pipelines.source.log_probe import probe_log
from pipelines.source.ranges import Offsets, new_offsets
from pipelines.source.transaction_log import transaction_address
from pipelines.tables.store import TRANSACTIONS_TOPIC_ID, TableStore


def expect_logs_from(
    address: SourceAddress, transactions: str | None, kafka: Mapping[str, str], store: TableStore
) -> Iterator[str]:
    """Yield a line about the records that the job will read, for each topic that the tables have a position in.

    `transactions` is the address of `__transaction_state`, or `source`; None: the job does not read it.

    Raises:
        UsageError: a log can be read by Spark only, or the address of the transactions is invalid.
        TablesError: a log does not have the records from the position on, or cannot be read.
    """
    last = store.last_batch()
    assert last is not None, "the tables are restored"
    if address.is_spark_kafka:
        raise UsageError(f"{address} cannot be compared without Spark: use kafka:// for the same cluster, or leave --source out")
    yield _compared(address, kafka, last.next_offsets, store.topic_id())
    if last.transaction_offsets is None:
        return
    if transactions is None:
        yield "the position in __transaction_state is not compared without --transactions"
    else:
        beside = transaction_address(address, transactions, last.era)
        yield _compared(beside, kafka, last.transaction_offsets, store.topic_id(TRANSACTIONS_TOPIC_ID))


def _compared(address: SourceAddress, kafka: Mapping[str, str], next_offsets: Offsets, topic_id: str | None) -> str:
    try:
        _, ends = probe_log(address, kafka, next_offsets, topic_id)
    except GrouplakeError as error:
        raise TablesError(f"the tables are restored, but `grouplake run` cannot continue them: {error}") from error
    new = new_offsets(next_offsets, ends)
    return f"{address} has all records from the position of the tables on: `grouplake run` will read {new:,} offsets"
