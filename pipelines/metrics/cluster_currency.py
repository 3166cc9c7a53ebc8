"""Which values of a cluster are current at a time, and the series about that."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pipelines.metrics.metric import Family, Level, Metric, Source
from pipelines.metrics.metric_series import MetricSeries
from pipelines.metrics.settings import OF_INTERVAL
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

    @classmethod
    def of(cls, snapshot: MemorySnapshot, now: datetime, stale_seconds: int) -> "Currency":
        """Currency at `now`, by a limit in seconds, or by the interval of the job if that is OF_INTERVAL."""
        age = age_of(snapshot, now)
        if stale_seconds == OF_INTERVAL and age.state is not AgeState.NO_EXPECTATION:
            stale = {Source.GROUPS: age.is_batch_old, Source.LAG: age.is_old}
            return cls(frozenset(source for source in Source if not stale.get(source)), age.is_batch_old, age.is_old)
        limit = _STALE_SECONDS if stale_seconds == OF_INTERVAL else stale_seconds
        times = {Source.JOB: now, Source.GROUPS: snapshot.batch.finished_at, Source.LAG: snapshot.lag_at}
        fresh = (source for source, at in times.items() if not limit or (now - at).total_seconds() <= limit)
        return cls(frozenset(fresh), age.is_batch_old, age.is_old)


def state_series(states: Mapping[str, ClusterState[Any]], current: Mapping[str, Currency]) -> Iterator[MetricSeries]:
    """The series about the states of clusters, and about the age of those that are loaded."""
    yield _of_clusters(_UP, {name: state.error is None for name, state in states.items()})
    yield _of_clusters(_TABLES_OLD, {name: each.is_batch_old for name, each in current.items()})
    yield _of_clusters(_END_OFFSETS_OLD, {name: each.is_old for name, each in current.items()})


def _of_clusters(metric: Metric, values: Mapping[str, bool]) -> MetricSeries:
    return MetricSeries.of(metric, {"cluster_name": tuple(values)}, tuple(map(int, values.values())))
