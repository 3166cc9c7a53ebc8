"""Metrics for Prometheus. What changes with every request is counted as it happens; groups are counted when somebody asks."""

from collections.abc import Callable, Iterable, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from coordinator_core.coordinator.group_counts import GroupCounts
from coordinator_core.coordinator.group_events import GroupEvent, GroupRemoved, MemberRemoved, OffsetsExpired, RebalanceBegan
from coordinator_core.service.observer import Observer

_PREFIX = "grouplake_coordinator"
_LATENCY = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_SHORT = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1)

#: Counted events: metric, and by how much one event raises it.
_COUNTED: dict[type, tuple[str, Callable[[GroupEvent], int]]] = {
    RebalanceBegan: ("rebalances", lambda _: 1),
    MemberRemoved: ("members_removed", lambda _: 1),
    GroupRemoved: ("groups_removed", lambda _: 1),
    OffsetsExpired: ("offsets_expired", lambda event: event.offsets if isinstance(event, OffsetsExpired) else 0),
}


class Metrics(Observer):
    """Counts what it hears. `bind` names what is asked at the time of `text`."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        of = self._registry
        self._requests = Histogram(
            f"{_PREFIX}_request_seconds", "Requests until their answer", ("api",), buckets=_LATENCY, registry=of
        )
        self._queue = Histogram(f"{_PREFIX}_queue_seconds", "Wait for the partition's turn", buckets=_SHORT, registry=of)
        self._appends = Histogram(f"{_PREFIX}_append_seconds", "Writes to the log", buckets=_SHORT, registry=of)
        self._flushes = Histogram(f"{_PREFIX}_fsync_seconds", "Forced to the disk", buckets=_SHORT, registry=of)
        self._load = Gauge(f"{_PREFIX}_load_seconds", "How long the last load of a partition took", ("partition",), registry=of)
        self._loaded = Counter(f"{_PREFIX}_loaded_records", "Records read by loads", registry=of)
        self._errors = Counter(f"{_PREFIX}_errors", "Errors in answers", ("error",), registry=of)
        self._batches = Counter(f"{_PREFIX}_batches", "Batches the log took", registry=of)
        self._refused = Counter(f"{_PREFIX}_batches_refused", "Batches the log did not take", registry=of)
        self._open = Gauge(f"{_PREFIX}_connections", "Open connections", registry=of)
        self._hung_up = Counter(f"{_PREFIX}_connections_ended", "Connections ended or refused by the coordinator", registry=of)
        self._bugs = Counter(f"{_PREFIX}_unexpected_errors", "Errors that should not be", registry=of)
        self._event_counters = {
            kind: Counter(f"{_PREFIX}_{name}", name.replace("_", " "), registry=of) for kind, (name, _) in _COUNTED.items()
        }
        self._apis: dict[str, Histogram] = {}

    def bind(
        self,
        count_groups: Callable[[], GroupCounts],
        partitions: Callable[[], Mapping[str, int]],
        background: Callable[[], Mapping[str, str | None]],
    ) -> None:
        """Where groups, partitions and failing background tasks are counted."""
        self._registry.register(_Asked(count_groups, partitions, background))

    def text(self) -> bytes:
        """All of it, in the text format of Prometheus."""
        return bytes(generate_latest(self._registry))

    # ---- what is heard

    def group_events(self, partition: int, group_events: Iterable[GroupEvent]) -> None:  # noqa: ARG002 - one number for all partitions
        for event in group_events:
            counter = self._event_counters.get(type(event))
            if counter is not None:
                counter.inc(_COUNTED[type(event)][1](event))

    def load_finished(self, partition: int, epoch: int, records: int, anomalies: int, seconds: float) -> None:  # noqa: ARG002
        self._load.labels(partition).set(seconds)
        self._loaded.inc(records)

    def queued(self, seconds: float) -> None:
        self._queue.observe(seconds)

    def appended(self, batches: int, seconds: float) -> None:
        self._appends.observe(seconds)
        self._batches.inc(batches)

    def append_refused(self, partition: int, batches: int, reason: str) -> None:  # noqa: ARG002
        self._refused.inc(batches)

    def flushed(self, seconds: float) -> None:
        self._flushes.observe(seconds)

    def answered(self, api: str, seconds: float) -> None:
        histogram = self._apis.get(api)
        if histogram is None:
            histogram = self._apis[api] = self._requests.labels(api)
        histogram.observe(seconds)

    def errors(self, names: Iterable[str]) -> None:
        for name in names:
            self._errors.labels(name).inc()

    def connected(self) -> None:
        self._open.inc()

    def disconnected(self, client: str, reason: str | None) -> None:  # noqa: ARG002
        self._open.dec()
        if reason is not None:
            self._hung_up.inc()

    def connection_refused(self, client: str, reason: str) -> None:  # noqa: ARG002
        self._hung_up.inc()

    def bug(self, where: str, error: BaseException) -> None:  # noqa: ARG002
        self._bugs.inc()


class _Asked(Collector):
    def __init__(
        self,
        count_groups: Callable[[], GroupCounts],
        partitions: Callable[[], Mapping[str, int]],
        background: Callable[[], Mapping[str, str | None]],
    ) -> None:
        self._census = count_groups
        self._partitions = partitions
        self._background = background

    def collect(self) -> Iterable[Metric]:
        """Groups by type and state, members, partitions by status, background tasks that fail."""
        counted = self._census()
        groups = GaugeMetricFamily(f"{_PREFIX}_groups", "Groups", labels=("type", "state"))
        for (group_type, state), count in sorted(counted.groups.items()):
            groups.add_metric((group_type, state), count)
        yield groups
        yield GaugeMetricFamily(f"{_PREFIX}_members", "Members of classic groups", value=counted.members)
        partitions = GaugeMetricFamily(f"{_PREFIX}_partitions", "Log partitions", labels=("status",))
        for status, count in sorted(self._partitions().items()):
            partitions.add_metric((status,), count)
        yield partitions
        failing = GaugeMetricFamily(
            f"{_PREFIX}_background_task_failing", "Whether the last run of the background task failed, 0 or 1", labels=("task",)
        )
        for task, error in sorted(self._background().items()):
            failing.add_metric((task,), error is not None)
        yield failing
