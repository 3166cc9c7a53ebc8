"""The metrics of a job: the series of its tables, and its position in the log, served at `/metrics` or exported."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from coordinator_core.service.net.addresses import ListenAddress
from pipelines.metrics.settings import metrics_settings
from pipelines.runtime.listen_address import expect_loopback, listen_address
from pipelines.runtime.progress import Progress
from pipelines.source.address import SourceAddress, open_source
from pipelines.tables.location import cluster_name

if TYPE_CHECKING:
    from pipelines.metrics.log_position import LogPosition
    from pipelines.metrics.metric_series import MetricSeries
    from pipelines.metrics.site import Export, Site

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
    listen: ListenAddress | None,
    job: JobLogs,
    section: Mapping[str, Any],
    progress: Progress,
    loaded: "Site | None" = None,
    export: "Export | None" = None,
) -> Iterator[ListenAddress | None]:
    """Serve `/metrics` and export its series meanwhile; nothing without an address and an export.

    `loaded` has the snapshots if something else loads them.

    Raises:
        UsageError: invalid settings.
        MetricsServerError: the address cannot be used.
    """
    settings = metrics_settings(section)
    if listen is None and export is None:
        yield None
        return
    # a run that neither serves nor exports series does not load what renders them
    from pipelines.metrics.metrics_server import MetricsServer
    from pipelines.metrics.site import Site

    cluster = cluster_name(job.tables)
    # before the first batch there are no tables, which is not an error of the job
    site = loaded or Site({cluster: job.tables}, settings, _POLL_SECONDS, lambda _: None)
    with ExitStack() as parts:
        server = None if listen is None else MetricsServer(listen, site.metrics, lambda: site.unready)
        for position in _positions(site, cluster, job):
            parts.enter_context(closing(position)).start()
        if server is not None:
            if loaded is None:
                parts.enter_context(closing(site)).start()
            parts.enter_context(closing(server)).start()
            progress(f"metrics: http://{server.address}/metrics")
        if export is not None:
            parts.enter_context(export(site))
        yield None if server is None else server.address


def _positions(site: "Site", cluster: str, job: JobLogs) -> Iterator["LogPosition"]:
    """The positions in the logs of the job, as series of the site."""
    from pipelines.metrics.log_position import LOG_BEHIND, TRANSACTION_LOG_BEHIND, LogPosition

    offsets = LogPosition(LOG_BEHIND, _end_offsets(job.offsets, job.kafka), _LOG_SECONDS)

    def offsets_behind() -> Iterator["MetricSeries"]:
        snapshot = site.snapshot(cluster)
        yield offsets.series(cluster, snapshot.batch.next_offsets if snapshot else {})

    site.add_series(offsets_behind, cluster)
    yield offsets
    if job.transactions is None:
        return
    transactions = LogPosition(TRANSACTION_LOG_BEHIND, _end_offsets(job.transactions, job.kafka), _LOG_SECONDS)

    def transactions_behind() -> Iterator["MetricSeries"]:
        snapshot = site.snapshot(cluster)
        yield transactions.series(cluster, (snapshot.batch.transaction_offsets if snapshot else None) or {})

    site.add_series(transactions_behind, cluster)
    yield transactions


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
