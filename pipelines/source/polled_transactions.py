"""Polls of the transaction coordinators in the place of reading `__transaction_state`, for a source that is polled."""

from collections.abc import Callable, Mapping

from coordinator_core.group_polls.group_poll import POLLED_PARTITION
from coordinator_core.group_polls.transaction_poll_fold import PolledTransactions, apply_transaction_poll
from coordinator_core.group_polls.transaction_poller import TransactionPoller
from coordinator_core.log.errors import LogError, LogUnreachable
from coordinator_core.sources.kafka_connection import borrowed_connection
from coordinator_core.sources.kafka_options import parse_address
from pipelines.runtime.errors import GrouplakeError, TablesError
from pipelines.runtime.progress import Progress
from pipelines.source.address import SourceAddress
from pipelines.source.ranges import Offsets
from pipelines.source.transaction_log import OutageTolerantReader, TransactionRange


class PolledTransactionReader(OutageTolerantReader):
    """Polls, and returns the differences to the tables. For one thread at a time.

    `before` is the state of the tables at the position `start_offset`.
    """

    def __init__(
        self,
        address: SourceAddress,
        kafka: Mapping[str, str],
        before: PolledTransactions,
        start_offset: int,
        progress: Progress,
        now_ms: Callable[[], int],
    ) -> None:
        super().__init__(progress)
        self._address = address
        self._kafka = kafka
        self._now_ms = now_ms
        #: The states at the positions before and after the last poll: the batch of it may not have been written.
        self._states: dict[int, PolledTransactions] = {start_offset: before}
        self._failed: set[str] = set()

    def read(self, after: Offsets | None) -> TransactionRange | None:
        """The differences to the state at a position, None: to no state. Returns None if there are none.

        Raises:
            GrouplakeError: no broker answers.
            TablesError: the brokers reject the user or a request.
        """
        start = (after or {}).get(POLLED_PARTITION, 0)
        before = self._states[start]
        servers = parse_address(self._address.kafka_address).servers
        try:
            with borrowed_connection(servers, self._kafka) as connection:
                poll = TransactionPoller(connection, self._now_ms).poll(before.keys())
        except LogUnreachable as error:
            raise GrouplakeError(f"transactions cannot be read: {error}") from error
        except LogError as error:
            raise TablesError(f"transactions cannot be polled, which needs Kafka 3.0 or later: {error}") from error
        self._report_recovery()
        self._report(poll.failures)
        reduction, now = apply_transaction_poll(before, poll, start)
        end = start + reduction.records_read
        self._states = {start: before, end: now}
        if end == start and after is not None:
            return None
        return TransactionRange({POLLED_PARTITION: end}, (reduction,))

    def _report(self, failures: Mapping[str, str]) -> None:
        """A line about ids that begin to be answered with an error."""
        new = sorted(failures.keys() - self._failed)
        if new:
            # an id is hostile text: every producer chooses its own
            first = f"{new[0]!r}: {failures[new[0]]}"
            self._progress(f"{len(new)} transactional ids are answered with an error, such as {first}; they stay as they are")
        self._failed = set(failures)
