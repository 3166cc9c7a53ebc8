"""/health and /metrics of several nodes as those of one coordinator."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

#: Statuses of /health; of several nodes the last one counts.
_STATUSES = ("ok", "degraded", "loading", "stopping", "failed")
_NOT_RUNNING = "not running"


def merged_health(reports: Mapping[int, Mapping[str, Any] | None]) -> dict[str, object]:
    """Merge the reports of nodes by node id; None is one that does not answer, which counts as loading.

    `nodes` has the status of each. The names of background tasks are followed by their node.
    """
    statuses = {node: _NOT_RUNNING if report is None else report["status"] for node, report in reports.items()}
    answered = {node: report for node, report in reports.items() if report is not None}
    worst = max(("loading" if status == _NOT_RUNNING else status for status in statuses.values()), key=_STATUSES.index)
    partitions: Counter[str] = Counter()
    found: dict[str, dict[str, str]] = {"failing_tasks": {}}
    for node, report in answered.items():
        partitions.update(report["partitions"])
        found["failing_tasks"] |= {f"{task} of node {node}": error for task, error in report.get("failing_tasks", {}).items()}
    for key in ("failed_partitions", "refused_appends"):
        found[key] = {name: reason for report in answered.values() for name, reason in report.get(key, {}).items()}
    return {
        "status": worst,
        "nodes": {str(node): status for node, status in statuses.items()},
        "partitions": partitions,
        **{key: value for key, value in found.items() if value},
    }


def merged_metrics(texts: Mapping[int, str | None], starts: Mapping[int, int]) -> bytes:
    """Merge the texts of nodes by node id, with the label `node` in every series; None is a node that does not answer.

    `starts` has the number of times that each process was started.
    """
    registry = CollectorRegistry()
    registry.register(_Merged(texts, starts))
    return bytes(generate_latest(registry))


class _Merged(Collector):
    def __init__(self, texts: Mapping[int, str | None], starts: Mapping[int, int]) -> None:
        self._texts = texts
        self._starts = starts

    def collect(self) -> Iterable[Metric]:
        up = GaugeMetricFamily("grouplake_coordinator_node_up", "Whether the node answers: 0 or 1", labels=("node",))
        started = CounterMetricFamily("grouplake_coordinator_node_starts", "Starts of the node's process", labels=("node",))
        families: dict[str, Metric] = {}
        for node, text in self._texts.items():
            up.add_metric((str(node),), text is not None)
            started.add_metric((str(node),), self._starts[node])
            for family in text_string_to_metric_families(text or ""):
                merged = families.setdefault(family.name, Metric(family.name, family.documentation, family.type))
                for sample in family.samples:
                    merged.add_sample(sample.name, {"node": str(node), **sample.labels}, sample.value)
        yield up
        yield started
        yield from families.values()
