"""The site that a server answers from: the snapshots of its clusters, and the series of `/metrics` with their text."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Any

from pipelines.metrics.chosen_series import chosen_series
from pipelines.metrics.cluster_currency import Currency, state_series
from pipelines.metrics.exposition import lines_of
from pipelines.metrics.metric_series import MetricSeries
from pipelines.metrics.metrics_text import ClusterMetrics, MetricsBody, MetricsText
from pipelines.metrics.settings import MetricsSettings
from pipelines.query.snapshots.loading import SnapshotLoader
from pipelines.query.snapshots.memory_snapshot import MemorySnapshot
from pipelines.query.snapshots.snapshot_cache import ClusterState, SnapshotCache
from pipelines.query.snapshots.tables_ages import TablesAges
from pipelines.runtime.progress import Progress
from pipelines.tables.data_age import DataAge


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
        self._settings = settings
        self._text = MetricsText(settings)
        self._has_cluster_label = len(roots) > 1
        self._process_series: list[tuple[str | None, Callable[[], Iterable[MetricSeries]]]] = []

        def render(snapshot: MemorySnapshot) -> ClusterMetrics:
            return ClusterMetrics.of(snapshot, settings, has_cluster_label=self._has_cluster_label)

        loaders = {name: SnapshotLoader(name, root) for name, root in roots.items()}
        self._listeners: list[Callable[[Mapping[str, MemorySnapshot]], object]] = []
        self._age_listeners: list[Callable[[Mapping[str, DataAge]], object]] = []
        self._ages = TablesAges(self.roots, clock)
        self._age_keys: dict[str, tuple[object, ...]] = {}
        self._cache = SnapshotCache(loaders, render, poll_seconds, progress, self._changed, self._looked)

    def _changed(self, states: Mapping[str, ClusterState[ClusterMetrics]]) -> None:
        # the body is compressed with the snapshot, so that a scrape does not wait for it
        self._text.body(states, self._clock())
        snapshots = {name: state.value.snapshot for name, state in states.items() if state.value}
        for listener in self._listeners:
            listener(snapshots)

    def _looked(self) -> None:
        """Call the listeners if data became old, became older by a minute, or is no longer old."""
        ages = self.ages()
        keys = {name: age.key for name, age in ages.items()}
        if keys != self._age_keys:
            self._age_keys = keys
            for listener in self._age_listeners:
                listener(ages)

    def on_age(self, listener: Callable[[Mapping[str, DataAge]], object]) -> None:
        """Call `listener` with the ages after each change of one, in a loading thread; to be added before `start`."""
        self._age_listeners.append(listener)

    def age(self, cluster: str) -> DataAge | None:
        """The age of the newest batch of a cluster; None without one, and for an unknown cluster."""
        snapshot = self.snapshot(cluster)
        return None if snapshot is None else self._ages.age(snapshot)

    def age_of(self, snapshot: MemorySnapshot, at: datetime | None = None) -> DataAge:
        """The age of a snapshot now, or at an earlier time."""
        return self._ages.age(snapshot, at)

    def ages(self) -> dict[str, DataAge]:
        """The ages of the clusters that are loaded."""
        return {name: age for name in self.roots if (age := self.age(name)) is not None}

    def on_change(self, listener: Callable[[Mapping[str, MemorySnapshot]], object]) -> None:
        """Call `listener` with the newest snapshots after each change, in a loading thread; to be added before `start`."""
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

    def add_series(self, series: Callable[[], Iterable[MetricSeries]], cluster: str | None = None) -> None:
        """Add series of this process to `/metrics`, about a cluster or about none. `series` is called for each answer."""
        self._process_series.append((cluster, series))

    def metrics(self) -> MetricsBody:
        """The body of `/metrics`."""
        more = (lines_of(each) for _, series in self._process_series for each in series())
        return self._text.body(self._cache.states(), self._clock(), *more)

    def series(self) -> Iterator[tuple[str | None, tuple[MetricSeries, ...]]]:
        """The series that `/metrics` has now, by cluster; None for those of this process that are about no cluster."""
        yield None, self._added(None)
        now = self._clock()
        for name, state in self._cache.states().items():
            yield name, (*self._added(name), *self._cluster_series(name, state, now))

    def _added(self, cluster: str | None) -> tuple[MetricSeries, ...]:
        return tuple(each for of, series in self._process_series if of == cluster for each in series())

    def _cluster_series(self, name: str, state: ClusterState[ClusterMetrics], now: datetime) -> Iterator[MetricSeries]:
        if state.value is None:
            yield from state_series({name: state}, {})
            return
        snapshot = state.value.snapshot
        currency = Currency.of(snapshot, now, self._settings.stale_seconds)
        yield from state_series({name: state}, {name: currency})
        for each in chosen_series(snapshot, self._settings, has_cluster_label=self._has_cluster_label):
            if each.metric.source in currency.fresh:
                yield each

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

    @property
    def unready(self) -> str | None:
        """Why answers would not be those of the present: a cluster is not loaded, or its data is old; None if they would be."""
        if not self.is_ready:
            return "a cluster is not loaded yet"
        old = [f"{name}: {age.headline}" for name, age in self.ages().items() if age.is_old]
        return "; ".join(old) or None

    def description(self) -> dict[str, Any]:
        """Batch, times, age and error of each cluster."""
        ages = self.ages()
        return {name: _description(state, ages.get(name)) for name, state in self._cache.states().items()}


#: Exports the series of a site meanwhile.
Export = Callable[[Site], AbstractContextManager[None]]


def _description(state: ClusterState[ClusterMetrics], age: DataAge | None) -> dict[str, Any]:
    snapshot = state.value.snapshot if state.value else None
    return {
        "batch_id": snapshot.batch.batch_id if snapshot else None,
        "finished_at": snapshot.batch.finished_at.isoformat() if snapshot else None,
        "sampled_at": snapshot.sampled_at.isoformat() if snapshot and snapshot.sampled_at else None,
        "age": None if age is None else {**age.as_json(), "since": age.since.isoformat()},
        "error": state.error,
    }
