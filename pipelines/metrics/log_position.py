"""Offsets of the logs that the tables do not have yet."""

import threading
from collections.abc import Callable, Mapping

from pipelines.metrics.metric import Family, Level, Metric, Source
from pipelines.metrics.metric_series import MetricSeries


def _behind(name: str, text: str, level: Level) -> Metric:
    labels = {"cluster_name": "cluster", "log_partition": "log_partition"}
    return Metric(name, text, Family.OWN, level, "behind", labels, Source.JOB)


LOG_BEHIND = _behind(
    "grouplake_log_behind_offsets", "Offsets of the log partition that are not in the tables", Level.LOG_PARTITION
)
TRANSACTION_LOG_BEHIND = _behind(
    "grouplake_transaction_log_behind_offsets",
    "Offsets of the partition of __transaction_state that are not in the tables",
    Level.TRANSACTION_LOG_PARTITION,
)


class LogPosition:
    """Looks up the ends of a log in a thread of its own, so that no scrape waits for brokers that do not answer."""

    def __init__(self, metric: Metric, end_offsets: Callable[[], Mapping[int, int]], interval_seconds: float) -> None:
        self._metric = metric
        self._end_offsets = end_offsets
        self._interval = interval_seconds
        self._ends: Mapping[int, int] = {}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="log position", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """Ask the thread to end. It may be waiting for a broker, so this does not wait for it."""
        self._stopped.set()

    def series(self, cluster: str, next_offsets: Mapping[int, int]) -> MetricSeries:
        """The metric; without series while the ends are unknown."""
        ends = self._ends
        values = {partition: max(0, end - next_offsets.get(partition, 0)) for partition, end in sorted(ends.items())}
        labels = {"cluster_name": cluster, "log_partition": tuple(map(str, values))}
        return MetricSeries.of(self._metric, labels, tuple(values.values()))

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._ends = self._end_offsets()
            except Exception:  # the job reports why its source cannot be read; an unknown position has no series
                self._ends = {}
            self._stopped.wait(self._interval)
