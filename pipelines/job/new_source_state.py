"""The state of a cluster by a source that is new to the tables, in tables of its own: the log up to its end, or one poll."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from coordinator_core.group_polls.group_poll import POLLED_PARTITION, GroupPoll
from coordinator_core.group_polls.group_poller import GroupPoller
from coordinator_core.group_polls.poll_fold import PollFold, StoredGroup
from coordinator_core.group_polls.polled_records import is_rebalancing, last_generation
from coordinator_core.group_polls.topic_selection import of_topics
from coordinator_core.group_polls.transaction_poll import TransactionPoll
from coordinator_core.group_polls.transaction_poll_fold import apply_transaction_poll
from coordinator_core.group_polls.transaction_poller import TransactionPoller
from coordinator_core.log.errors import LogError
from coordinator_core.sources.kafka_connection import borrowed_connection
from coordinator_core.sources.kafka_options import parse_address
from pipelines.batch.apply import BatchApplier
from pipelines.job.polled_state import polled_state, polled_transactions
from pipelines.job.prepared_run import names_of
from pipelines.job.probed_logs import ProbedLogs
from pipelines.job.run_options import RunOptions
from pipelines.job.run_polls import expect_selected
from pipelines.query.engine import Snapshot
from pipelines.runtime.errors import TablesError
from pipelines.runtime.progress import Progress, no_progress
from pipelines.source.polled_rows import polled_rows
from pipelines.source.ranges import Offsets
from pipelines.source.transaction_log import TransactionRange
from pipelines.tables import definitions
from pipelines.tables.store import Batch, TableStore
from pipelines.upkeep.rebuild.log_state import LogState


@dataclass(frozen=True)
class NewState:
    """Tables, and the batch with their positions. The source was asked after `asked_at_ms`."""

    store: TableStore
    batch: Batch
    asked_at_ms: int


def log_state(folder: str, options: RunOptions, tables: TableStore, last: Batch, logs: ProbedLogs, asked_at_ms: int) -> NewState:
    """Read the state before the ends of the logs, which were requested after `asked_at_ms`.

    Raises:
        TablesError: the log cannot be read, or does not begin at its first record.
    """
    assert logs.ends is not None, "the source has a client of its own"
    transactions = None if options.transactions is None else str(options.transactions)
    end = replace(
        last,
        next_offsets=logs.ends,
        transaction_offsets=logs.transaction_ends if transactions else None,
        log_partition_count=None,
        transaction_partition_count=None,
    )
    loader = LogState(options.address, dict(options.kafka), no_progress, transactions)
    try:
        store = loader.read(folder, end, tables, names_of(options))
    except (LogError, ValueError) as error:
        raise TablesError(f"the source cannot be changed: {error}") from error
    # a log without records has made no batch
    batch = store.last_batch() or replace(end, versions={})
    batch = replace(batch, next_offsets=end.next_offsets, transaction_offsets=end.transaction_offsets)
    return NewState(store, batch, asked_at_ms)


def first_poll(
    folder: str, options: RunOptions, tables: TableStore, last: Batch, progress: Progress, clock_ms: Callable[[], int]
) -> NewState:
    """Poll once, at offsets above those of all rows: rows of an earlier phase of polls may be in the histories.

    Raises:
        TablesError: a broker does not answer, or not about a group of the tables.
        UsageError: the patterns leave out groups or topics of the tables.
    """
    start = _above_all_rows(Snapshot(tables, last))
    fold = polled_state(tables, last, options.era)
    expect_selected(options, fold)
    known = {group_id: tuple(group.offsets) for group_id, group in fold.groups.items()}
    transactions: TransactionRange | None = None
    try:
        with borrowed_connection(parse_address(options.address.kafka_address).servers, options.kafka) as connection:
            poll = GroupPoller(connection, clock_ms, options.groups.reads).poll(known)
            _expect_answers(poll, known.keys())
            if options.transactions is not None:
                ids = polled_transactions(tables, last)
                transactions = first_transactions(TransactionPoller(connection, clock_ms).poll(ids.keys()), ids.keys(), start)
    except LogError as error:
        raise TablesError(f"the source cannot be changed: {error}") from error
    store = TableStore(folder)
    store.create()
    applier = BatchApplier(store, options.era, options.retention_ms, dict, bulk_rows=10**18, progress=progress)
    applier.transactions = None if transactions is None else _FirstTransactions(transactions)
    settled = of_topics(_with_rebalancing(poll, fold.groups), options.topics.reads)
    first = PollFold(options.era).apply(settled, start)
    applier.apply_rows(polled_rows(first, options.era, options.retention_ms))
    batch = store.last_batch()
    assert batch is not None, "a poll is a batch"
    return NewState(store, batch, poll.asked_at_ms)


def _with_rebalancing(poll: GroupPoll, known: Mapping[str, StoredGroup]) -> GroupPoll:
    """The poll, in which classic groups between two generations have the last one, as in the log."""
    groups = dict(poll.groups)
    for group_id, group in poll.groups.items():
        if group_id in known and group.description is not None and is_rebalancing(group.description):
            groups[group_id] = replace(group, description=last_generation(known[group_id].records) or group.description)
    return replace(poll, groups=groups)


def _above_all_rows(snapshot: Snapshot) -> int:
    """An offset above those of all rows."""
    highest = -1
    for name in snapshot.batch.versions:
        if "log_offset" in definitions.table(name).schema.names:
            (found,) = snapshot.query(f"SELECT max(log_offset) AS highest FROM {name}")["highest"].to_pylist()
            highest = max(highest, -1 if found is None else found)
    return highest + 1


def _expect_answers(poll: GroupPoll, known: Collection[str]) -> None:
    """Raise TablesError for a poll without answers about groups of the tables: silence is not absence."""
    problems = [
        *(f"broker {name} does not answer: {reason}" for name, reason in sorted(poll.silent.items())),
        *(f"group {name!r} is answered with {reason}" for name, reason in sorted(poll.failures.items()) if name in known),
        *(f"topic {name!r} may not be described, so that its offsets are unknown" for name in sorted(poll.hidden_topics)),
    ]
    if problems:
        raise TablesError(f"the source cannot be changed: {problems[0]}; the tables are as they were")


def first_transactions(poll: TransactionPoll, known: Collection[str], start: int) -> TransactionRange:
    """The transactional ids of a poll, at offsets from `start`. `known` are those of the tables.

    Raises:
        TablesError: there is no answer about one of them.
    """
    # an id that is in no answer has a silent coordinator: silence is not absence
    unanswered = sorted(set(known) - poll.transactions.keys() - poll.unknown)
    if unanswered:
        name = unanswered[0]
        reason = f"is answered with {poll.failures[name]}" if name in poll.failures else "has a coordinator that does not answer"
        raise TablesError(f"the source cannot be changed: transactional id {name!r} {reason}; the tables are as they were")
    reduction, _ = apply_transaction_poll({}, poll, start)
    return TransactionRange({POLLED_PARTITION: start + reduction.records_read}, (reduction,))


@dataclass(frozen=True)
class _FirstTransactions:
    """Transactions that were polled already (`TransactionReader`)."""

    found: TransactionRange

    def read(self, after: Offsets | None) -> TransactionRange | None:
        """All of them, unless they are in the tables."""
        return None if after else self.found

    def read_if_reachable(self, after: Offsets | None) -> TransactionRange | None:
        """As `read`."""
        return self.read(after)
