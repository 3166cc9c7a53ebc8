"""`/metrics` of a job: the series of its tables, and its position in the log."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from coordinator_core.service.net.addresses import ListenAddress
from pipelines.metrics.settings import metrics_settings
from pipelines.runtime.listen_address import expect_loopback, listen_address
from pipelines.runtime.progress import Progress
from pipelines.source.address import SourceAddress, open_source
from pipelines.tables.location import cluster_name

if TYPE_CHECKING:
    from pipelines.metrics.log_position import LogPosition
    from pipelines.metrics.metrics_text import MetricsBody
    from pipelines.metrics.site import Site

#: Rendering many groups takes a third of a second, which a batch per second should not cause.
_POLL_SECONDS = 5
#: Interval between two looks at the ends of the log.
_LOG_SECONDS = 15


def metrics_endpoint(listen: str | None, section: Mapping[str, Any]) -> ListenAddress | None:
    """Address from `--metrics` or `metrics.listen`; None if both are empty. Raises UsageError for an invalid one."""
    text, given_by = (listen, "--metrics") if listen else (section["listen"], "metrics.listen")
    if not text:
        return None
    endpoint = listen_address(text, given_by)
    if not section["allow_remote"]:
        expect_loopback(endpoint, "metrics.allow_remote")
    return endpoint


class JobLogs(NamedTuple):
    """The tables of a job, the logs that it reads, and the options of their connections. `transactions` may be None."""

    tables: str
    offsets: SourceAddress
    transactions: SourceAddress | None
    kafka: Mapping[str, str]


@contextmanager
def job_metrics(
    listen: ListenAddress | None, job: JobLogs, section: Mapping[str, Any], progress: Progress, loaded: "Site | None" = None
) -> Iterator[ListenAddress | None]:
    """Serve `/metrics` meanwhile; nothing without an address. `loaded` has the snapshots if something else loads them.

    Raises:
        UsageError: invalid settings.
        MetricsServerError: the address cannot be used.
    """
    settings = metrics_settings(section)
    if listen is None:
        yield None
        return
    # a run without the address does not load what renders series
    from pipelines.metrics.log_position import LOG_BEHIND, TRANSACTION_LOG_BEHIND, LogPosition
    from pipelines.metrics.metrics_server import MetricsServer
    from pipelines.metrics.site import Site

    cluster = cluster_name(job.tables)
    # before the first batch there are no tables, which is not an error of the job
    site = loaded or Site({cluster: job.tables}, settings, _POLL_SECONDS, lambda _: None)
    offsets = LogPosition(LOG_BEHIND, _end_offsets(job.offsets, job.kafka), _LOG_SECONDS)
    transactions = None
    if job.transactions is not None:
        transactions = LogPosition(TRANSACTION_LOG_BEHIND, _end_offsets(job.transactions, job.kafka), _LOG_SECONDS)
    server = MetricsServer(listen, lambda: _body(site, cluster, offsets, transactions), lambda: site.unready)
    positions = (offsets,) if transactions is None else (offsets, transactions)
    parts = (*positions, server) if loaded else (site, *positions, server)
    for each in parts:
        each.start()
    progress(f"metrics: http://{server.address}/metrics")
    try:
        yield server.address
    finally:
        for each in reversed(parts):
            each.close()


def _body(site: "Site", cluster: str, offsets: "LogPosition", transactions: "LogPosition | None") -> "MetricsBody":
    snapshot = site.snapshot(cluster)
    lines = [offsets.lines(cluster, snapshot.batch.next_offsets if snapshot else {})]
    if transactions is not None:
        lines.append(transactions.lines(cluster, (snapshot.batch.transaction_offsets if snapshot else None) or {}))
    return site.metrics(*lines)


def _end_offsets(address: SourceAddress, kafka: Mapping[str, str]) -> Callable[[], Mapping[int, int]]:
    def look() -> Mapping[int, int]:
        if address.is_spark_kafka or address.is_polled:
            # read by Kafka's Java client, with its settings; or no log at all
            return {}
        source = open_source(address, kafka, seen_before=True)
        try:
            return source.end_offsets()
        finally:
            source.close()

    return look
