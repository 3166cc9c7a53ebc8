"""Series as data points of OpenTelemetry: gauges under their own names, whose attributes are the labels."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from opentelemetry.sdk.metrics.export import Gauge, Metric, MetricsData, NumberDataPoint, ResourceMetrics, ScopeMetrics
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from pipelines.metrics.metric_series import MetricSeries

#: Limits of a request: points, and characters of names and labels. A collector refuses messages above 4 MiB by default.
_POINTS, _CHARACTERS = 2_000, 500_000


def metrics_requests(
    clusters: Sequence[tuple[Resource, Sequence[MetricSeries]]], scope: InstrumentationScope, now_ns: int
) -> Iterator[tuple[MetricsData, int]]:
    """The series of the resources as requests of bounded size, with their numbers of points, of the time `now_ns`."""
    request: list[ResourceMetrics] = []
    count = characters = 0
    for resource, series in clusters:
        for part in _parts(series, now_ns):
            if request and (count + part.points > _POINTS or characters + part.characters > _CHARACTERS):
                yield MetricsData(request), count
                request, count, characters = [], 0, 0
            request.append(ResourceMetrics(resource, [ScopeMetrics(scope, part.metrics, "")], ""))
            count += part.points
            characters += part.characters
    if request:
        yield MetricsData(request), count


class _Part(NamedTuple):
    """Metrics of one resource, up to the limits of a request, with their numbers of points and of characters."""

    metrics: list[Metric]
    points: int
    characters: int


def _parts(series: Sequence[MetricSeries], now_ns: int) -> Iterator[_Part]:
    metrics: list[Metric] = []
    points: list[NumberDataPoint] = []
    count = characters = 0
    for each in series:
        for attributes, value in _rows(each):
            points.append(NumberDataPoint(attributes, 0, now_ns, value))
            count += 1
            characters += sum(map(len, attributes.values()))
            if count >= _POINTS or characters >= _CHARACTERS:
                yield _Part([*metrics, _gauge(each, points)], count, characters)
                metrics, points = [], []
                count = characters = 0
        if points:
            metrics.append(_gauge(each, points))
            points = []
    if metrics:
        yield _Part(metrics, count, characters)


def _gauge(series: MetricSeries, points: list[NumberDataPoint]) -> Metric:
    # a unit would make a collector for Prometheus add a suffix to the name
    return Metric(series.metric.name, series.metric.help, "", Gauge(points))


def _rows(series: MetricSeries) -> Iterator[tuple[dict[str, str], int | float]]:
    """Labels and value of each series."""
    names = tuple(series.labels.columns)
    same = [[value] * len(series) if isinstance(value, str) else value.to_pylist() for value in series.labels.columns.values()]
    values = series.values.to_pylist()
    if not names:
        yield from (({}, value) for value in values)
        return
    for labels, value in zip(zip(*same, strict=True), values, strict=True):
        yield dict(zip(names, labels, strict=True)), value
