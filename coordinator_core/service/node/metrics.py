"""Metrics for Prometheus: counters and histograms of events; the state of the node is computed at each scrape."""

from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from coordinator_core.group_coordinator.group_events import (
    GroupEvent,
    GroupRemoved,
    MemberJoined,
    MemberRemoved,
    OffsetsExpired,
    RebalanceBegan,
)
from coordinator_core.service.node.node_report import NodeReport
from coordinator_core.service.node.report_collector import ReportCollector
from coordinator_core.service.runtime.observer import Observer
from coordinator_core.transaction_coordinator.events import (
    MarkersAbandoned,
    ProducerFenced,
    TransactionalIdExpired,
    TransactionEvent,
    TransactionTimedOut,
)

_PREFIX = "grouplake_coordinator"
_LATENCY = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_SHORT = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1)

#: Counted events: name and help of the metric, and the increment for one event.
_COUNTED: dict[type, tuple[str, str, Callable[[GroupEvent | TransactionEvent], int]]] = {
    RebalanceBegan: ("rebalances", "Rebalances started", lambda _: 1),
    MemberJoined: ("members_joined", "Members that joined groups", lambda _: 1),
    MemberRemoved: ("members_removed", "Members removed from groups", lambda _: 1),
    GroupRemoved: ("groups_removed", "Groups removed", lambda _: 1),
    OffsetsExpired: (
        "offsets_expired",
        "Committed offsets removed after their retention",
        lambda event: event.offsets if isinstance(event, OffsetsExpired) else 0,
    ),
    TransactionTimedOut: ("transactions_timed_out", "Transactions aborted after their timeout", lambda _: 1),
    ProducerFenced: ("producers_fenced", "Producers whose open transaction was aborted by the start of another one", lambda _: 1),
    MarkersAbandoned: ("markers_abandoned", "Markers that partitions have refused for good", lambda _: 1),
    TransactionalIdExpired: ("transactional_ids_expired", "Transactional ids removed after their expiration", lambda _: 1),
}


class Metrics(Observer):
    """An observer that updates metrics. `bind` sets the source of the metrics that `text` computes."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        of = self._registry
        self._requests = Histogram(
            f"{_PREFIX}_request_seconds",
            "Request latency by API, including time parked in purgatory",
            ("api",),
            buckets=_LATENCY,
            registry=of,
        )
        self._queue = Histogram(
            f"{_PREFIX}_queue_seconds", "Time of requests in the queue of their partition", buckets=_SHORT, registry=of
        )
        self._appends = Histogram(f"{_PREFIX}_append_seconds", "Duration of log appends", buckets=_SHORT, registry=of)
        self._flushes = Histogram(f"{_PREFIX}_fsync_seconds", "Duration of log fsyncs", buckets=_SHORT, registry=of)
        self._load = Gauge(f"{_PREFIX}_load_seconds", "Duration of a partition's last load", ("partition",), registry=of)
        self._loaded = Counter(f"{_PREFIX}_loaded_records", "Records read by loads", registry=of)
        self._errors = Counter(
            f"{_PREFIX}_errors", "Errors in responses, by API and Kafka's error name", ("api", "error"), registry=of
        )
        self._batches = Counter(f"{_PREFIX}_batches", "Batches appended to the log", registry=of)
        self._refused = Counter(f"{_PREFIX}_batches_refused", "Batches rejected by the log", registry=of)
        self._open = Gauge(f"{_PREFIX}_connections", "Open client connections", registry=of)
        self._closed = Counter(f"{_PREFIX}_connections_ended", "Connections closed or refused by the coordinator", registry=of)
        self._bugs = Counter(f"{_PREFIX}_unexpected_errors", "Unexpected errors", registry=of)
        self._event_counters = {
            kind: Counter(f"{_PREFIX}_{name}", text, registry=of) for kind, (name, text, _) in _COUNTED.items()
        }
        self._apis: dict[str, Histogram] = {}

    def bind(self, report: Callable[[], NodeReport]) -> None:
        """Set the source of the state of the node."""
        self._registry.register(ReportCollector(_PREFIX, report))

    def text(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        return bytes(generate_latest(self._registry))

    # ---- `Observer`

    def group_events(self, partition: int | str, group_events: Iterable[GroupEvent]) -> None:  # noqa: ARG002 - for all partitions
        self._count(group_events)

    def transaction_events(self, partition: int | str, events: Iterable[TransactionEvent]) -> None:  # noqa: ARG002
        self._count(events)

    def _count(self, events: Iterable[GroupEvent | TransactionEvent]) -> None:
        for event in events:
            counter = self._event_counters.get(type(event))
            if counter is not None:
                counter.inc(_COUNTED[type(event)][2](event))

    def load_finished(self, partition: int | str, epoch: int, records: int, anomalies: int, seconds: float) -> None:  # noqa: ARG002
        self._load.labels(partition).set(seconds)
        self._loaded.inc(records)

    def queued(self, seconds: float) -> None:
        self._queue.observe(seconds)

    def appended(self, batches: int, seconds: float) -> None:
        self._appends.observe(seconds)
        self._batches.inc(batches)

    def append_refused(self, partition: int | str, batches: int, reason: str) -> None:  # noqa: ARG002
        self._refused.inc(batches)

    def flushed(self, seconds: float) -> None:
        self._flushes.observe(seconds)

    def answered(self, api: str, seconds: float) -> None:
        histogram = self._apis.get(api)
        if histogram is None:
            histogram = self._apis[api] = self._requests.labels(api)
        histogram.observe(seconds)

    def errors(self, api: str, names: Iterable[str]) -> None:
        for name in names:
            self._errors.labels(api, name).inc()

    def connected(self) -> None:
        self._open.inc()

    def disconnected(self, client: str, reason: str | None) -> None:  # noqa: ARG002
        self._open.dec()
        if reason is not None:
            self._closed.inc()

    def connection_refused(self, client: str, reason: str) -> None:  # noqa: ARG002
        self._closed.inc()

    def bug(self, where: str, error: BaseException) -> None:  # noqa: ARG002
        self._bugs.inc()
