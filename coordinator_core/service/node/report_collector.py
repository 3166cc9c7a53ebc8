"""Metrics of the state of the node, computed at each scrape from a report."""

from collections.abc import Callable, Iterable

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from coordinator_core.service.node.node_report import DataPartitionReport, FetchSessionCounts, NodeReport

#: Metrics of a partition with data, after the MBeans of brokers (`kafka.log:type=Log`, `LastStableOffsetLag`, `ProducerIdCount`).
_DATA_PARTITION: tuple[tuple[str, str, Callable[[DataPartitionReport], int | None]], ...] = (
    ("log_size_bytes", "Size of a partition with data", lambda each: each.size_bytes),
    ("log_segments", "Segments of a partition with data", lambda each: each.segments),
    ("log_start_offset", "First offset of a partition with data", lambda each: each.start_offset),
    ("log_end_offset", "Offset after the last record of a partition with data", lambda each: each.end_offset),
    (
        "last_stable_offset_lag",
        "Offsets of a partition with data that wait for the end of a transaction",
        lambda each: each.last_stable_offset_lag,
    ),
    ("producer_ids", "Producers whose state a partition with data has", lambda each: each.producer_ids),
    (
        "log_dirty_bytes",
        "Bytes of closed segments that were not compacted yet; of compacted topics only",
        lambda each: each.dirty_bytes,
    ),
)


class ReportCollector(Collector):
    """Gauges and counters of `report`; names begin with `prefix`."""

    def __init__(self, prefix: str, report: Callable[[], NodeReport]) -> None:
        self._prefix = prefix
        self._report = report

    def collect(self) -> Iterable[Metric]:
        """Yield groups, members, partitions, transactions, partitions with data, fetch sessions, failing background tasks."""
        report = self._report()
        groups = self._gauge("groups", "Groups by type and state", "type", "state")
        for (group_type, state), count in sorted(report.groups.groups.items()):
            groups.add_metric((group_type, state), count)
        yield groups
        yield self._value("members", "Members of classic groups", report.groups.members)
        partitions = self._gauge("partitions", "Partitions by topic and status", "topic", "status")
        for topic, by_status in sorted(report.partitions.items()):
            for status, count in sorted(by_status.items()):
                partitions.add_metric((topic, status), count)
        yield partitions
        failing = self._gauge("background_task_failing", "Failure of the background task's last run: 0 or 1", "task")
        for task, error in sorted(report.failing_tasks.items()):
            failing.add_metric((task,), error is not None)
        yield failing
        yield from self._transactions(report)
        yield from self._data_partitions(report.data_partitions)
        yield from self._fetch_sessions(report.fetch_sessions)

    def _transactions(self, report: NodeReport) -> Iterable[Metric]:
        transactions = self._gauge("transactions", "Transactional ids by state", "state")
        for state, count in sorted(report.transactions.states.items()):
            transactions.add_metric((state,), count)
        yield transactions
        yield self._value(
            "oldest_transaction_seconds",
            "Age of the oldest transaction that is not complete, 0 without one",
            report.oldest_transaction_seconds,
        )
        yield self._value(
            "pending_markers", "Partitions without the marker of a decided transaction", report.transactions.pending_markers
        )
        yield self._value(
            "late_transaction_partitions",
            "Partitions whose oldest open transaction is above transaction.max.timeout.ms",
            report.late_transaction_partitions,
        )

    def _data_partitions(self, reports: tuple[DataPartitionReport, ...]) -> Iterable[Metric]:
        for name, text, value_of in _DATA_PARTITION:
            gauge = self._gauge(name, text, "topic", "partition")
            for each in reports:
                value = value_of(each)
                if value is not None:
                    gauge.add_metric((each.topic, str(each.partition)), value)
            yield gauge

    def _fetch_sessions(self, counts: FetchSessionCounts) -> Iterable[Metric]:
        """Yield the metrics of `kafka.server:type=FetchSessionCache`."""
        yield self._value("incremental_fetch_sessions", "Fetch sessions of consumers", counts.sessions)
        yield self._value("incremental_fetch_partitions_cached", "Partitions in all fetch sessions", counts.partitions)
        yield CounterMetricFamily(
            f"{self._prefix}_incremental_fetch_session_evictions",
            "Fetch sessions that new ones have replaced",
            value=counts.evictions,
        )

    def _gauge(self, name: str, text: str, *labels: str) -> GaugeMetricFamily:
        return GaugeMetricFamily(f"{self._prefix}_{name}", text, labels=labels)

    def _value(self, name: str, text: str, value: float) -> GaugeMetricFamily:
        return GaugeMetricFamily(f"{self._prefix}_{name}", text, value=value)
