"""The series of a snapshot that the settings choose, up to their limits."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from pipelines.metrics.catalogue import METRICS
from pipelines.metrics.job_rows import JOB_LEVELS, job_rows
from pipelines.metrics.level_rows import LevelRows, level_rows
from pipelines.metrics.metric import Family, Level, Metric, Source
from pipelines.metrics.metric_series import MetricSeries, SeriesLabels, one_chunk
from pipelines.metrics.series_limit import Mask, SeriesLimit, has_values, limited
from pipelines.metrics.settings import MetricsSettings
from pipelines.query.snapshots.memory_snapshot import MemorySnapshot

_MEMBER_COLUMNS = ("member_host", "consumer_id", "client_id")
#: Label of the cluster on series of exporters that have none; only where one text has several clusters.
CLUSTER_LABEL = "cluster_name"
_DROPPED = Metric(
    "grouplake_metrics_series_dropped",
    "Series that metrics.max_series leaves out",
    Family.OWN,
    Level.CLUSTER,
    "dropped",
    {CLUSTER_LABEL: "cluster", "level": "level"},
    Source.JOB,
)


def chosen_series(
    snapshot: MemorySnapshot, settings: MetricsSettings, *, has_cluster_label: bool = False
) -> tuple[MetricSeries, ...]:
    """All metrics of a cluster, those without series left out.

    `has_cluster_label` adds the name of the cluster to the series of exporters that know one cluster only.
    """
    metrics = [metric for metric in METRICS if metric.family in settings.families and metric.level in JOB_LEVELS]
    about_groups = [metric for metric in METRICS if metric.family in settings.families and metric.level in settings.levels]
    fixed = job_rows(snapshot)
    kept = {metric.name: has_values(fixed[metric.level], metric) for metric in metrics}
    used = sum(int(mask.sum()) for mask in kept.values())
    rows = level_rows(snapshot, settings.levels, _matching(snapshot, settings))
    # the series about the limit itself count too
    limit = limited(about_groups, rows, max(0, settings.max_series - used - len(SeriesLimit().dropped)))
    rows = {**rows, **fixed}
    kept |= limit.kept
    if not _has_member_labels(settings, about_groups, limit):
        rows = _without_members(rows)
    choice = _Choice(snapshot.cluster, rows, has_cluster_label)
    found = [choice.series(metric, kept[metric.name]) for metric in METRICS if metric.name in kept and kept[metric.name].any()]
    return (*found, _dropped(snapshot.cluster, limit))


def _matching(snapshot: MemorySnapshot, settings: MetricsSettings) -> Sequence[str] | None:
    """The groups with rows per partition; None for all."""
    pattern = settings.partition_groups
    if pattern.pattern == ".*":
        return None
    return [group for group in snapshot.group_names if pattern.fullmatch(group)]


def _has_member_labels(settings: MetricsSettings, metrics: Sequence[Metric], limit: SeriesLimit) -> bool:
    with_members = (limit.kept[metric.name] for metric in metrics if "consumer_id" in metric.labels)
    return settings.member_labels and sum(int(mask.sum()) for mask in with_members) <= settings.member_labels_max_series


def _without_members(rows: Mapping[Level, LevelRows]) -> dict[Level, LevelRows]:
    """The same rows with empty labels of members: the names of the labels remain."""
    found = dict(rows)
    if Level.GROUP_PARTITION in rows:
        old = rows[Level.GROUP_PARTITION]
        table = old.rows
        for name in _MEMBER_COLUMNS:
            table = table.set_column(table.column_names.index(name), name, pa.repeat("", table.num_rows))
        found[Level.GROUP_PARTITION] = LevelRows(table, old.lag)
    return found


def _dropped(cluster: str, limit: SeriesLimit) -> MetricSeries:
    labels = {CLUSTER_LABEL: cluster, "level": tuple(limit.dropped)}
    return MetricSeries.of(_DROPPED, labels, tuple(limit.dropped.values()))


class _Choice:
    """Takes the rows that remain of the metrics of one cluster. Metrics with the same labels and rows share their labels."""

    def __init__(self, cluster: str, rows: Mapping[Level, LevelRows], has_cluster_label: bool) -> None:
        self._cluster = cluster
        self._rows = rows
        self._has_cluster_label = has_cluster_label
        self._labels: dict[tuple[object, ...], SeriesLabels] = {}

    def series(self, metric: Metric, kept: Mask) -> MetricSeries:
        """The series of a metric for the rows that remain."""
        chosen = pa.array(np.flatnonzero(kept))
        values = one_chunk(self._rows[metric.level].rows[metric.value]).take(chosen)
        return MetricSeries(metric, self._labels_of(metric, kept, chosen), values)

    def _labels_of(self, metric: Metric, kept: Mask, chosen: pa.Array) -> SeriesLabels:
        labels = dict(metric.labels)
        if self._has_cluster_label and "cluster" not in labels.values():
            labels = {CLUSTER_LABEL: "cluster", **labels}
        key = (metric.level, tuple(labels.items()), kept.tobytes())
        if key not in self._labels:
            rows = self._rows[metric.level].rows
            columns = {
                label: self._cluster if column == "cluster" else one_chunk(rows[column].take(chosen))
                for label, column in labels.items()
            }
            self._labels[key] = SeriesLabels(columns, len(chosen))
        return self._labels[key]
