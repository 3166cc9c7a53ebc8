"""A run of a source that is polled: each poll is a batch, which the driver reads and applies without Spark."""

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field

from coordinator_core.group_polls.group_poll import POLLED_PARTITION, GroupPoll
from coordinator_core.group_polls.group_poller import GroupPoller
from coordinator_core.group_polls.poll_fold import PollFold
from coordinator_core.group_polls.topic_selection import of_topics
from coordinator_core.log.errors import LogError, LogUnreachable
from coordinator_core.sources.kafka_connection import borrowed_connection
from coordinator_core.sources.kafka_options import parse_address
from coordinator_core.sources.kafka_topic import ANSWERING, WAITING
from coordinator_core.state.garbage_collection import no_garbage_collection
from pipelines.batch.apply import BatchApplier
from pipelines.job.between_batches import BetweenBatches
from pipelines.job.polled_state import polled_state
from pipelines.job.prepared_run import Outcome, PreparedRun
from pipelines.job.run_options import AVAILABLE_NOW, RunOptions, batch_ms
from pipelines.runtime.cache.kernels import compile_kernels
from pipelines.runtime.errors import TablesError, UsageError
from pipelines.runtime.phases import Phases
from pipelines.runtime.progress import Progress
from pipelines.runtime.stop_request import StopRequest, stop_on_signals
from pipelines.source.partition_sets import changed_partitions
from pipelines.source.polled_rows import polled_rows

#: Between two looks at what is due, and at stop requests.
_STEP_SECONDS = 0.5


def run_polls(run: PreparedRun) -> Outcome:
    """Poll once, or at an interval until a stop is requested.

    Raises:
        UsageError: the brokers refuse the user, or are too old; or the patterns leave out groups of the tables.
        GrouplakeError: no broker answers a run that polls once, or the first poll of one that follows.
        AnotherWriter: another job took over the tables.
    """
    compile_kernels(run.progress)
    applier, between = run.parts(BatchApplier)
    polling = _Polling(run, applier, polled_state(run.store, run.last, run.options.era))
    expect_selected(run.options, polling.fold)
    with nullcontext(run.stop) if run.stop is not None else stop_on_signals() as stop:
        polling.poll_once()
        if run.options.trigger == AVAILABLE_NOW:
            run.ready()
        else:
            run.progress(f"ready: following {run.options.address}")
            run.ready()
            _follow(polling, between, batch_ms(run.options), stop)
        is_done = not stop.is_requested
    return applier.writer, lambda: between.query_ended(is_done, polling.catch_up)


def expect_selected(options: RunOptions, fold: PollFold) -> None:
    """Refuse patterns that leave out groups or topics of the tables: no later poll would update their rows.

    Raises:
        UsageError: the tables have such a group, or an offset of such a topic.
    """
    topics = {key.topic for group in fold.groups.values() for key in group.offsets}
    for section, patterns, names in (("groups", options.groups, fold.groups), ("topics", options.topics, topics)):
        if left_out := sorted(name for name in names if not patterns.reads(name)):
            raise UsageError(
                f"[{section}] leaves out {len(left_out)} of the {section} in the tables, such as {left_out[0]!r}: "
                "include them, or use another folder of tables"
            )


def _follow(polling: "_Polling", between: BetweenBatches, interval_ms: int, stop: StopRequest) -> None:
    outage = _PollOutage(polling.run.progress)
    interval = interval_ms / 1_000
    due = time.monotonic() + interval
    try:
        while not stop.is_requested:
            between.every_second()
            if time.monotonic() >= due:
                # the next poll keeps its distance, also from one that took longer than the interval
                outage.during(polling.poll_once)
                due = time.monotonic() + interval
            stop.wait(_STEP_SECONDS)
        polling.run.progress("stopping")
    finally:
        between.stop()


@dataclass
class _Polling:
    """The polls of a run, each applied to the tables. For one thread at a time."""

    run: PreparedRun
    applier: BatchApplier
    fold: PollFold
    _silent: set[str] = field(default_factory=set)
    _failed: set[str] = field(default_factory=set)
    _hidden: set[str] = field(default_factory=set)
    _unread: set[str] = field(default_factory=set)

    def poll_once(self) -> None:
        """Poll, and write the batch.

        Raises:
            GrouplakeError: no broker answers; a later attempt may succeed.
            UsageError: the brokers reject the user or a request.
        """
        options, applier = self.run.options, self.applier
        phases = Phases(applier.clock())
        with phases.timed("read"):
            poll = self._poll()
        last = applier.writer.last if applier.writer is not None else self.run.store.last_batch()
        start = 0 if last is None else last.next_offsets.get(POLLED_PARTITION, 0)
        with applier.lock:
            with phases.timed("fold"), no_garbage_collection():
                rows = polled_rows(self.fold.apply(poll, start), options.era, options.retention_ms)
            # log ends that are requested after the answers are of the time of the poll
            applier.begin(changed_partitions(rows))
            applier.apply_rows(rows, phases)
        self._report(poll)

    def catch_up(self) -> bool:
        """Poll again, for a sample of log ends at the same time."""
        self.poll_once()
        return True

    def _poll(self) -> GroupPoll:
        options = self.run.options
        known = {group_id: tuple(group.offsets) for group_id, group in self.fold.groups.items()}
        # such as a group that has never been answered, but with an error
        noted = filter(options.groups.reads, self.fold.notes)
        known |= {group_id: () for group_id in noted if group_id not in known}
        try:
            with borrowed_connection(parse_address(options.address.kafka_address).servers, options.kafka) as connection:
                poller = GroupPoller(connection, self.run.clock_ms, options.groups.reads)
                poll = of_topics(poller.poll(known), options.topics.reads)
        except LogUnreachable as error:
            raise PollUnanswered(str(error)) from error
        except LogError as error:
            raise UsageError(f"{options.address}: {error}") from error
        for kind in poller.unread_types.keys() - self._unread:
            self.run.progress(
                f"groups of type {kind!r} are not read from {options.address}, such as {poller.unread_types[kind]!r}"
            )
        self._unread |= poller.unread_types.keys()
        return poll

    def _report(self, poll: GroupPoll) -> None:
        """A line about each broker that begins to be silent, and one about groups that begin to be answered with an error."""
        for name, reason in sorted(poll.silent.items()):
            if name not in self._silent:
                self.run.progress(f"broker {name} does not answer ({reason}): its groups stay as they are, and lag is unknown")
        self._silent = set(poll.silent)
        new = sorted(poll.failures.keys() - self._failed)
        if new:
            # the name of a group is text of anyone who may join one
            first = f"{new[0]!r}: {poll.failures[new[0]]}"
            self.run.progress(f"{len(new)} groups are answered with an error, such as {first}; they stay as they are")
        self._failed = set(poll.failures)
        if hidden := sorted(poll.hidden_topics - self._hidden):
            self.run.progress(
                f"{len(hidden)} topics may not be described, such as {hidden[0]!r}: the offsets of groups there stay as they are"
            )
        self._hidden |= poll.hidden_topics


class PollUnanswered(TablesError):
    """No broker answered a poll."""


class _PollOutage:
    """One line when no broker answers any more, and one when they answer again; polls go on meanwhile."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._since: float | None = None

    def during(self, poll: Callable[[], None]) -> None:
        """Run a poll. An outage of the brokers is not its end."""
        try:
            poll()
        except PollUnanswered as error:
            if self._since is None:
                self._since = time.monotonic()
                self._progress(f"{WAITING}: {error}")
        else:
            if self._since is not None:
                self._progress(f"{ANSWERING}, after {time.monotonic() - self._since:.0f} s")
                self._since = None
