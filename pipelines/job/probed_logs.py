"""Ids and ends of the logs that a run reads, as they were before it opens the tables."""

from collections.abc import Mapping
from typing import NamedTuple, Self

from pipelines.job.run_options import AVAILABLE_NOW, RunOptions
from pipelines.source.log_probe import probe_brokers, probe_log, probe_transactions
from pipelines.source.ranges import new_offsets
from pipelines.tables.store import TRANSACTIONS_TOPIC_ID, Batch, TableStore


class ProbedLogs(NamedTuple):
    """The log of groups, and that of transactions.

    Ids are None if they are unknown. `ends` is None for polls, and for a source that only Spark reads; `transaction_ends` is
    empty for a run without transactions, or with polls of them.
    """

    topic_id: str | None
    ends: Mapping[int, int] | None
    transaction_topic_id: str | None
    transaction_ends: Mapping[int, int]

    @classmethod
    def of(cls, options: RunOptions, store: TableStore, last: Batch | None, *, is_new_source: bool = False) -> Self:
        """Probe the logs of a run. `last` is the newest batch of the tables; `is_new_source` if it is of another source.

        Raises:
            UsageError: a log cannot be read, or lacks an offset that the tables have read.
            GrouplakeError: no broker answers.
        """
        topic_id, ends = (store.topic_id() if last else None), None
        known_id = store.topic_id(TRANSACTIONS_TOPIC_ID) if last else None
        if is_new_source:
            last = None
        if options.address.is_polled:
            probe_brokers(options.address, options.kafka)
        elif not options.address.is_spark_kafka:
            topic_id, ends = probe_log(options.address, options.kafka, last.next_offsets if last else {}, topic_id)
        if options.transactions is None or options.address.is_polled:
            return cls(topic_id, ends, None, {})
        next_offsets = (last.transaction_offsets if last else None) or {}
        return cls(topic_id, ends, *probe_transactions(options.transactions, options.kafka, next_offsets, known_id))

    def remember(self, store: TableStore) -> None:
        """Store the ids in the tables, which are compared with them in the next run."""
        if self.topic_id is not None:
            store.remember_topic_id(self.topic_id)
        if self.transaction_topic_id is not None:
            store.remember_topic_id(self.transaction_topic_id, TRANSACTIONS_TOPIC_ID)

    def are_read(self, options: RunOptions, last: Batch | None) -> bool:
        """True for a run that would find nothing to read, so that it need not start Spark, which takes 20 s.

        Spark's checkpoint has leader epochs, and the first run that reads compares them with the log, as every run did.
        """
        if last is None or options.trigger != AVAILABLE_NOW or self.ends is None:
            return False
        is_new = new_offsets(last.next_offsets, self.ends) or new_offsets(last.transaction_offsets or {}, self.transaction_ends)
        return not is_new
