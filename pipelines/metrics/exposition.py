"""Lines of the text format 0.0.4, built by column: a Python loop over 50,000 series would take ten times as long."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.metrics.catalogue import METRICS
from pipelines.metrics.job_rows import JOB_LEVELS, job_rows
from pipelines.metrics.level_rows import LevelRows, level_rows
from pipelines.metrics.metric import Family, Level, Metric, Source
from pipelines.metrics.series_limit import Mask, SeriesLimit, has_values, limited
from pipelines.metrics.settings import MetricsSettings
from pipelines.query.snapshots.memory_snapshot import MemorySnapshot

_MEMBER_COLUMNS = ("member_host", "consumer_id", "client_id")
#: Label of the cluster on series of exporters that have none; only where one text has several clusters.
_CLUSTER_LABEL = "cluster_name"
_DROPPED = Metric(
    "grouplake_metrics_series_dropped",
    "Series that metrics.max_series leaves out",
    Family.OWN,
    Level.CLUSTER,
    "dropped",
    {_CLUSTER_LABEL: "cluster", "level": "level"},
    Source.JOB,
)


@dataclass(frozen=True)
class MetricLines:
    """The series of one metric and one cluster."""

    metric: Metric
    lines: bytes
    series: int


def header(metric: Metric) -> bytes:
    """The lines before the series of a metric."""
    return f"# HELP {metric.name} {metric.help}\n# TYPE {metric.name} gauge\n".encode()


def metric_lines(
    snapshot: MemorySnapshot, settings: MetricsSettings, *, has_cluster_label: bool = False
) -> tuple[MetricLines, ...]:
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
    render = _Renderer(snapshot.cluster, rows, has_cluster_label)
    found = [render.lines(metric, kept[metric.name]) for metric in METRICS if metric.name in kept and kept[metric.name].any()]
    return (*found, _dropped(snapshot.cluster, limit))


def _matching(snapshot: MemorySnapshot, settings: MetricsSettings) -> Sequence[str] | None:
    """The groups with rows per partition; None for all."""
    pattern = settings.partition_groups
    if pattern.pattern == ".*":
        return None
    return [group for group in snapshot.lag if pattern.fullmatch(group)]


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


def _dropped(cluster: str, limit: SeriesLimit) -> MetricLines:
    lines = "".join(
        f'{_DROPPED.name}{{{_CLUSTER_LABEL}="{escaped(cluster)}",level="{level}"}} {count}\n'
        for level, count in limit.dropped.items()
    )
    return MetricLines(_DROPPED, lines.encode(), len(limit.dropped))


class _Renderer:
    """Renders the series of one cluster. Metrics with the same labels and rows share the text of their labels."""

    def __init__(self, cluster: str, rows: Mapping[Level, LevelRows], has_cluster_label: bool) -> None:
        self._cluster = escaped(cluster)
        self._rows = rows
        self._has_cluster_label = has_cluster_label
        self._labels: dict[tuple[object, ...], pa.Array] = {}

    def lines(self, metric: Metric, kept: Mask) -> MetricLines:
        """The series of a metric for the rows that remain."""
        chosen = pa.array(np.flatnonzero(kept))
        values = _one_chunk(self._rows[metric.level].rows[metric.value]).take(chosen).cast(pa.string())
        labels = self._label_text(metric, kept, chosen)
        lines = pc.binary_join_element_wise(metric.name, labels, " ", values, "\n", "")
        return MetricLines(metric, _content(lines), len(lines))

    def _label_text(self, metric: Metric, kept: Mask, chosen: pa.Array) -> pa.Array:
        labels = dict(metric.labels)
        if self._has_cluster_label and "cluster" not in labels.values():
            labels = {_CLUSTER_LABEL: "cluster", **labels}
        key = (metric.level, tuple(labels.items()), kept.tobytes())
        if key not in self._labels:
            self._labels[key] = self._joined(metric.level, labels, chosen)
        return self._labels[key]

    def _joined(self, level: Level, labels: Mapping[str, str], chosen: pa.Array) -> pa.Array:
        if not labels:
            return pa.repeat("", len(chosen))
        parts: list[object] = []
        text = "{"
        for label, column in labels.items():
            text += f'{label}="'
            if column == "cluster":
                text += self._cluster
            else:
                parts += [text, self._rows[level].rows[column].take(chosen)]
                text = ""
            text += '",'
        parts.append(text[:-1] + "}")
        if len(parts) == 1:
            return pa.repeat(parts[0], len(chosen))
        columns = [part if isinstance(part, str) else _escaped_column(_one_chunk(part)) for part in parts]
        return _one_chunk(pc.binary_join_element_wise(*columns, ""))


def escaped(text: str) -> str:
    """A value of a label, as it is between the quotation marks."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _escaped_column(column: pa.Array) -> pa.Array:
    for character, replacement in (("\\", "\\\\"), ("\n", "\\n"), ('"', '\\"')):
        column = pc.replace_substring(column, character, replacement)
    return column


def _one_chunk(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _content(lines: pa.Array) -> bytes:
    """All strings of a column without nulls, one after the other: they are so in memory."""
    _, offsets, content = lines.buffers()
    ends = np.frombuffer(offsets, np.int32)[lines.offset : lines.offset + len(lines) + 1]
    return bytes(memoryview(content)[ends[0] : ends[-1]])
