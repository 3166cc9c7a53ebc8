"""State of the node for /health and /metrics: partitions of all logs, groups, transactions, topics with data."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from coordinator_core.coordinator_common.results import ShardStatus
from coordinator_core.group_coordinator.group_counts import GroupCounts, count_groups
from coordinator_core.protocol.internal_topics import OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from coordinator_core.segment_log.data_partition import DataPartition
from coordinator_core.segment_log.topic_store import DataTopic, TopicStore
from coordinator_core.service.node.services import Services
from coordinator_core.service.topics.fetch_sessions import FetchSessions
from coordinator_core.transaction_coordinator.transaction_counts import TransactionCounts, count_transactions

_ACTIVE, _FAILED = "active", "failed"


@dataclass(frozen=True, slots=True)
class DataPartitionReport:
    """A partition of a topic with data. `dirty_bytes` is None unless the topic is compacted."""

    topic: str
    partition: int
    size_bytes: int
    segments: int
    start_offset: int
    end_offset: int
    last_stable_offset_lag: int
    producer_ids: int
    dirty_bytes: int | None = None

    @classmethod
    def of(cls, topic: str, number: int, partition: DataPartition) -> "DataPartitionReport":
        """Report the present state of a partition."""
        log = partition.log
        segments = log.segments
        return cls(
            topic,
            number,
            sum(segment.size for segment in segments),
            len(segments),
            partition.log_start_offset,
            log.end_offset,
            partition.high_watermark - partition.last_stable_offset,
            len(partition.producers.entries),
            log.dirty_bytes if partition.config.is_compacted else None,
        )


@dataclass(frozen=True, slots=True)
class FetchSessionCounts:
    """Fetch sessions of consumers: present ones, the partitions in them, and those that were replaced since the start."""

    sessions: int = 0
    partitions: int = 0
    evictions: int = 0

    @classmethod
    def of(cls, sessions: FetchSessions) -> "FetchSessionCounts":
        """Return the present counts."""
        return cls(len(sessions), sessions.total_partitions, sessions.evictions)


@dataclass(frozen=True, slots=True)
class NodeReport:
    """State of the node at one moment.

    Attributes:
        partitions: topic → status → number of partitions
        oldest_transaction_seconds: age of the oldest transaction that is not complete, 0 without one
        late_transaction_partitions: partitions whose oldest open transaction is above the longest transaction timeout
        failing_tasks: background task → error of its last run, None if it succeeded
    """

    groups: GroupCounts = field(default_factory=GroupCounts)
    partitions: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    transactions: TransactionCounts = field(default_factory=TransactionCounts)
    oldest_transaction_seconds: float = 0.0
    late_transaction_partitions: int = 0
    data_partitions: tuple[DataPartitionReport, ...] = ()
    fetch_sessions: FetchSessionCounts = field(default_factory=FetchSessionCounts)
    failing_tasks: Mapping[str, str | None] = field(default_factory=dict)


class NodeState:
    """The parts of the node from which reports are made.

    `background` returns the tasks, with the error of the last run of each. `refused_appends` has the partitions whose log refuses
    appends, with the reasons, by TOPIC-NUMBER.
    """

    def __init__(
        self,
        services: Services,
        store: TopicStore | None,
        background: Callable[[], Mapping[str, str | None]],
        refused_appends: Mapping[str, str],
        now_ms: Callable[[], int],
    ) -> None:
        self._groups = services.groups
        self._transactions = services.transactions
        self._fetch_sessions = services.topics.fetching.sessions
        self._store = store
        #: Whether partitions that are not loaded here have another owner.
        self.shares_log = not services.groups.log.owned_at_start
        self._background = background
        self.refused_appends = refused_appends
        self._now_ms = now_ms

    def _topics(self) -> Collection[DataTopic]:
        return () if self._store is None else self._store.topics.values()

    def partitions(self) -> Mapping[str, Mapping[str, int]]:
        """Return the number of partitions by topic and status; of topics with data: active or failed."""
        found: dict[str, Mapping[str, int]] = {OFFSETS_TOPIC: self._groups.partitions_by_status}
        if self._transactions is not None:
            found[TRANSACTION_STATE_TOPIC] = self._transactions.partitions_by_status
        for topic in self._topics():
            found[topic.name] = Counter(_ACTIVE if each.log.failure is None else _FAILED for each in topic.partitions)
        return found

    def failures(self) -> Mapping[str, str]:
        """Return the reasons of failed partitions by TOPIC-NUMBER."""
        loops = {OFFSETS_TOPIC: self._groups.failures}
        if self._transactions is not None:
            loops[TRANSACTION_STATE_TOPIC] = self._transactions.failures
        for topic in self._topics():
            loops[topic.name] = {
                number: each.log.failure for number, each in enumerate(topic.partitions) if each.log.failure is not None
            }
        return {f"{topic}-{number}": reason for topic, failures in loops.items() for number, reason in failures.items()}

    def failing_tasks(self) -> Mapping[str, str | None]:
        """Return the background tasks, with the error of the last run of each."""
        return self._background()

    def report(self) -> NodeReport:
        """Report the present state."""
        now_ms = self._now_ms()
        transactions, late = TransactionCounts(), 0
        if self._transactions is not None:
            shards = self._transactions.shards.values()
            transactions = count_transactions(shard.context for shard in shards if shard.status is ShardStatus.ACTIVE)
            longest_ms = self._transactions.config.transaction_max_timeout_ms
            offsets_log = self._groups.log
            states = [offsets_log.partition(number).producers for number in range(offsets_log.partitions)]
            if self._store is not None:
                states += [partition.producers for partition in self._store.partitions()]
            late = sum(each.has_late_transaction(now_ms, longest_ms) for each in states)
        oldest = transactions.oldest_start_ms
        return NodeReport(
            self._group_counts(),
            self.partitions(),
            transactions,
            0.0 if oldest is None else max(now_ms - oldest, 0) / 1000,
            late,
            tuple(
                DataPartitionReport.of(topic.name, number, partition)
                for topic in self._topics()
                for number, partition in enumerate(topic.partitions)
            ),
            FetchSessionCounts.of(self._fetch_sessions),
            self._background(),
        )

    def _group_counts(self) -> GroupCounts:
        total: Counter[tuple[str, str]] = Counter()
        members = 0
        for shard in self._groups.shards.values():
            if shard.status is ShardStatus.ACTIVE:
                counted = count_groups(shard.context)
                total.update(counted.groups)
                members += counted.members
        return GroupCounts(total, members)
