"""What the server answers from: the snapshots of its clusters, and the text of `/metrics`."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from pipelines.metrics.exposition import MetricLines
from pipelines.metrics.metrics_text import ClusterMetrics, MetricsBody, MetricsText
from pipelines.metrics.settings import MetricsSettings
from pipelines.progress import Progress
from pipelines.snapshots.loading import SnapshotLoader
from pipelines.snapshots.memory_snapshot import MemorySnapshot
from pipelines.snapshots.snapshot_cache import ClusterState, SnapshotCache


def utc_now() -> datetime:
    """The current time."""
    return datetime.now(UTC)


class Site:
    """Snapshots and metrics of clusters, kept up to date by one thread between `start` and `close`."""

    def __init__(
        self,
        roots: Mapping[str, str],
        settings: MetricsSettings,
        poll_seconds: float,
        progress: Progress,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self.roots = dict(roots)
        self._clock = clock
        self._text = MetricsText(settings)
        several = len(roots) > 1

        def render(snapshot: MemorySnapshot) -> ClusterMetrics:
            return ClusterMetrics.of(snapshot, settings, has_cluster_label=several)

        loaders = {name: SnapshotLoader(name, root) for name, root in roots.items()}
        self._listeners: list[Callable[[Mapping[str, MemorySnapshot]], object]] = []
        self._cache = SnapshotCache(loaders, render, poll_seconds, progress, self._changed)

    def _changed(self, states: Mapping[str, ClusterState[ClusterMetrics]]) -> None:
        # the body is compressed with the snapshot, so that a scrape does not wait for it
        self._text.body(states, self._clock())
        snapshots = {name: state.value.snapshot for name, state in states.items() if state.value}
        for listener in self._listeners:
            listener(snapshots)

    def on_change(self, listener: Callable[[Mapping[str, MemorySnapshot]], object]) -> None:
        """Call `listener` with the newest snapshots after each change, in the loading thread; to be added before `start`."""
        self._listeners.append(listener)

    def start(self) -> None:
        """Start the thread."""
        self._cache.start()

    def close(self) -> None:
        """Stop the thread."""
        self._cache.close()

    def refresh(self) -> None:
        """Load what is new, in this thread."""
        self._cache.refresh()

    def metrics(self, *more: MetricLines) -> MetricsBody:
        """The body of `/metrics`, with `more` metrics of this process."""
        return self._text.body(self._cache.states(), self._clock(), *more)

    def states(self) -> Mapping[str, ClusterState[ClusterMetrics]]:
        """The states of the clusters at one moment."""
        return self._cache.states()

    def snapshot(self, cluster: str) -> MemorySnapshot | None:
        """The snapshot of a cluster; None for an unknown one, and before the first batch."""
        state = self._cache.states().get(cluster)
        return state.value.snapshot if state and state.value else None

    @property
    def is_ready(self) -> bool:
        """True once every cluster has a snapshot."""
        return all(state.value for state in self._cache.states().values())

    def description(self) -> dict[str, Any]:
        """Batch, times and error of each cluster."""
        return {name: _description(state) for name, state in self._cache.states().items()}


def _description(state: ClusterState[ClusterMetrics]) -> dict[str, Any]:
    snapshot = state.value.snapshot if state.value else None
    return {
        "batch_id": snapshot.batch.batch_id if snapshot else None,
        "finished_at": snapshot.batch.finished_at.isoformat() if snapshot else None,
        "sampled_at": snapshot.sampled_at.isoformat() if snapshot and snapshot.sampled_at else None,
        "error": state.error,
    }
