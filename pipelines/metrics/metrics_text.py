"""The body of `/metrics`, kept until a series appears, changes or becomes stale."""

import gzip
import hashlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from pipelines.metrics.exposition import MetricLines, escaped, header, metric_lines
from pipelines.metrics.metric import Family, Level, Metric, Source
from pipelines.metrics.settings import OF_INTERVAL, MetricsSettings
from pipelines.query.snapshots.memory_snapshot import MemorySnapshot
from pipelines.query.snapshots.snapshot_cache import ClusterState
from pipelines.query.snapshots.tables_ages import age_of
from pipelines.tables.data_age import AgeState

_UP = Metric(
    "grouplake_tables_up",
    "Whether the newest batch of the tables could be read: 0 or 1",
    Family.OWN,
    Level.CLUSTER,
    "one",
    {"cluster_name": "cluster"},
    Source.JOB,
)


def _old(name: str, what: str) -> Metric:
    text = f"Whether a newer {what} was expected by now: 0 or 1"
    return Metric(f"grouplake_{name}_old", text, Family.OWN, Level.CLUSTER, "one", {"cluster_name": "cluster"}, Source.JOB)


_TABLES_OLD, _END_OFFSETS_OLD = _old("tables", "batch"), _old("end_offsets", "sample of end offsets")
#: Limit without an interval of the job.
_STALE_SECONDS = 300


@dataclass(frozen=True)
class Currency:
    """The sources of a cluster whose values are not stale at a time, and whether its data is older than the job lets expect."""

    fresh: frozenset[Source]
    is_batch_old: bool
    is_old: bool


@dataclass(frozen=True)
class ClusterMetrics:
    """A snapshot with its rendered metrics."""

    snapshot: MemorySnapshot
    metrics: tuple[MetricLines, ...]

    @classmethod
    def of(cls, snapshot: MemorySnapshot, settings: MetricsSettings, *, has_cluster_label: bool) -> "ClusterMetrics":
        """Render the metrics of a snapshot."""
        return cls(snapshot, metric_lines(snapshot, settings, has_cluster_label=has_cluster_label))

    def currency(self, now: datetime, stale_seconds: int) -> Currency:
        """Return what is current at `now`, by a limit in seconds, or by the interval of the job if that is OF_INTERVAL."""
        age = age_of(self.snapshot, now)
        if stale_seconds == OF_INTERVAL and age.state is not AgeState.NO_EXPECTATION:
            stale = {Source.GROUPS: age.is_batch_old, Source.LAG: age.is_old}
            return Currency(frozenset(source for source in Source if not stale.get(source)), age.is_batch_old, age.is_old)
        limit = _STALE_SECONDS if stale_seconds == OF_INTERVAL else stale_seconds
        times = {Source.JOB: now, Source.GROUPS: self.snapshot.batch.finished_at, Source.LAG: self.snapshot.lag_at}
        fresh = (source for source, at in times.items() if not limit or (now - at).total_seconds() <= limit)
        return Currency(frozenset(fresh), age.is_batch_old, age.is_old)


@dataclass(frozen=True)
class MetricsBody:
    """The text, the same compressed, and its entity tag."""

    text: bytes
    compressed: bytes
    etag: str

    @classmethod
    def of(cls, text: bytes) -> "MetricsBody":
        """The body with a text."""
        # the level of an HTTP server in front: a tenth of the size at a fifth of the time of the default
        return cls(text, gzip.compress(text, 1, mtime=0), f'"{hashlib.blake2b(text, digest_size=16).hexdigest()}"')

    @cached_property
    def openmetrics(self) -> "MetricsBody":
        """The same in OpenMetrics, which for gauges differs in its last line only."""
        return MetricsBody.of(self.text + b"# EOF\n")


class MetricsText:
    """Makes the body of `/metrics` from the rendered clusters. Repeated scrapes of one snapshot get the same object."""

    def __init__(self, settings: MetricsSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._key: _Key | None = None
        self._body: MetricsBody | None = None

    def body(self, states: Mapping[str, ClusterState[ClusterMetrics]], now: datetime, *more: MetricLines) -> MetricsBody:
        """The body at `now`, without the series of stale values, with `more` metrics of this process."""
        stale = self._settings.stale_seconds
        current = {name: state.value.currency(now, stale) for name, state in states.items() if state.value}
        key = _Key(tuple(states.values()), tuple(current.items()), more)
        with self._lock:
            if self._body is None or not key.is_of(self._key):
                self._body = _body(states, current, more)
                self._key = key
            return self._body


@dataclass(frozen=True)
class _Key:
    """The inputs of a body."""

    states: tuple[ClusterState[ClusterMetrics], ...]
    current: tuple[tuple[str, Currency], ...]
    more: tuple[MetricLines, ...]

    def is_of(self, other: "_Key | None") -> bool:
        """True if both have the same objects as states. They are kept here, so no new object has the same identity."""
        return (
            other is not None
            and all(a is b for a, b in zip(self.states, other.states, strict=True))
            and (self.current, self.more) == (other.current, other.more)
        )


def _body(
    states: Mapping[str, ClusterState[ClusterMetrics]], current: Mapping[str, Currency], more: Sequence[MetricLines]
) -> MetricsBody:
    by_metric = {each.metric.name: [each] for each in (_up(states), *_ages(current), *more) if each.series}
    for name, state in states.items():
        for lines in state.value.metrics if state.value else ():
            if lines.metric.source in current[name].fresh:
                by_metric.setdefault(lines.metric.name, []).append(lines)
    text = b"".join(_metric(each) for each in by_metric.values())
    return MetricsBody.of(text)


def _metric(clusters: Sequence[MetricLines]) -> bytes:
    return header(clusters[0].metric) + b"".join(each.lines for each in clusters)


def _up(states: Mapping[str, ClusterState[ClusterMetrics]]) -> MetricLines:
    lines = "".join(
        f'{_UP.name}{{cluster_name="{escaped(name)}"}} {int(state.error is None)}\n' for name, state in states.items()
    )
    return MetricLines(_UP, lines.encode(), len(states))


def _ages(current: Mapping[str, Currency]) -> Iterator[MetricLines]:
    for metric, old in (
        (_TABLES_OLD, {name: each.is_batch_old for name, each in current.items()}),
        (_END_OFFSETS_OLD, {name: each.is_old for name, each in current.items()}),
    ):
        lines = "".join(f'{metric.name}{{cluster_name="{escaped(name)}"}} {int(value)}\n' for name, value in old.items())
        yield MetricLines(metric, lines.encode(), len(old))
