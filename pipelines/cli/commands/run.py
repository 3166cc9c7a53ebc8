"""`grouplake run`, with or without a coordinator."""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from pipelines.cli.command import Command
from pipelines.cli.dashboard_extra import add_dashboard, dashboard_of_job
from pipelines.cli.options import ERAS, add_conf, add_source, add_tables, add_transactions, era_named, positive, seconds, time_ms
from pipelines.errors import UsageError

if TYPE_CHECKING:
    from pipelines.configuration import Configuration
    from pipelines.job.run_options import RunOptions
    from pipelines.progress import Progress

_MINUTE_MS = 60_000

#: Values of `--expiry` and of `job.expiry`.
EXPIRY = ("observe", "apply")

_EXAMPLES = """examples:
  grouplake run --source segments:/var/lib/kafka/data --tables /data/groups
  grouplake run --source kafka://broker1:9092,broker2:9092/__consumer_offsets --tables /data/groups --conf kafka --trigger 10s
  grouplake run --with-coordinator 0.0.0.0:9092 --source segments:/var/lib/grouplake --tables /data/groups --conf coordinator.toml
  grouplake run --source kafka://broker1:9092/__consumer_offsets --tables /data/groups --trigger 10s --dashboard 127.0.0.1:8080
  grouplake run --source kafka://broker1:9092/__consumer_offsets --tables /data/groups --trigger 10s --maintain-every 1h
  grouplake run --source kafka://broker1:9092/__consumer_offsets --tables /data/groups --trigger 10s --transactions
  grouplake run --source jsonl:dump.jsonl --tables out --era 0.10 --expiry apply --now 1795229230560
"""


def _add_arguments(parser: ArgumentParser) -> None:
    add_source(parser, "kafka://HOST:PORT[,…]/TOPIC, segments:DIR, jsonl:FILE or spark-kafka://HOST:PORT[,…]/TOPIC")
    add_tables(parser)
    parser.add_argument(
        "--trigger", help="available-now (default), continuous, or an interval such as 10s (1s with a coordinator)"
    )
    parser.add_argument(
        "--with-coordinator",
        nargs="?",
        const="127.0.0.1:9092",
        metavar="HOST:PORT",
        help="also run a coordinator on this address (default: 127.0.0.1:9092); it writes the log of --source segments:DIR",
    )
    parser.add_argument("--era", help=f"broker generation whose rules apply: {', '.join(ERAS)} (default 4)")
    parser.add_argument("--retention-minutes", type=positive, metavar="N", help="offsets.retention.minutes of the cluster")
    parser.add_argument(
        "--expiry",
        choices=EXPIRY,
        help="observe (default): only the broker expires offsets; apply: expire them in the tables",
    )
    parser.add_argument("--now", type=time_ms, metavar="MS", help="time of the sweep, ms since the epoch (default: now)")
    parser.add_argument(
        "--maintain-every",
        type=seconds,
        metavar="TIME",
        help="maintain the tables at this interval, such as 1h (default: maintain.every_seconds)",
    )
    add_transactions(parser, "also read __transaction_state")
    parser.add_argument("--metrics", metavar="HOST:PORT", help="serve /metrics for Prometheus (default: metrics.listen)")
    add_dashboard(parser, "serve the page of `grouplake dashboard` from this process")
    add_conf(parser)


def _run(options: Namespace) -> int:
    from pipelines.configuration import load_configuration
    from pipelines.metrics.job_metrics import job_metrics, metrics_endpoint
    from pipelines.progress import print_progress
    from pipelines.service_manager import notify_stopping, with_status

    configuration = load_configuration(options.conf)
    run_options = run_options_of(options, configuration)
    listen = metrics_endpoint(options.metrics, configuration.metrics)
    page = dashboard_of_job("grouplake run", options.dashboard, options.tables, configuration, print_progress)
    with page as site, job_metrics(listen, run_options, configuration.metrics, print_progress, site):
        try:
            _run_job(options, configuration, run_options, with_status(print_progress))
        finally:
            notify_stopping()
    return 0


def _run_job(options: Namespace, configuration: "Configuration", run_options: "RunOptions", progress: "Progress") -> None:
    from pipelines.job import job
    from pipelines.service_manager import notify_ready
    from pipelines.timestamps import now_ms

    if options.with_coordinator is None:
        job.run(run_options, progress, now_ms, on_ready=notify_ready)
        return

    from pipelines.coordinator import coordinator_options
    from pipelines.job.run_with_coordinator import following, run_with_coordinator

    serving = coordinator_options(options.with_coordinator, run_options.address.location, configuration.coordinator)
    run_with_coordinator(following(run_options, serving, options.trigger), serving, progress, now_ms)


def run_options_of(options: Namespace, configuration: "Configuration") -> "RunOptions":
    """Options of the job: arguments before configuration.

    Raises:
        UsageError: invalid values.
    """
    from pipelines.job.run_options import RunOptions
    from pipelines.lag.settings import status_settings
    from pipelines.maintain import Maintenance
    from pipelines.source.address import parse_address
    from pipelines.source.transaction_log import transaction_address

    section = configuration.job
    expiry = options.expiry or section["expiry"]
    if expiry not in EXPIRY:
        raise UsageError(f"job.expiry is {expiry!r}: must be one of {', '.join(EXPIRY)}")
    era = era_named(options.era or section["era"])
    minutes = options.retention_minutes or section["retention_minutes"]
    if not minutes and options.with_coordinator is not None:
        from pipelines.coordinator import coordinator_config

        minutes = coordinator_config(configuration.coordinator).offsets_retention_minutes
    every = configuration.maintain["every_seconds"] if options.maintain_every is None else options.maintain_every
    address = parse_address(options.source)
    transactions = options.transactions or section["transactions"]
    return RunOptions(
        address=address,
        tables=options.tables,
        era=era,
        retention_ms=minutes * _MINUTE_MS or era.default_retention_ms,
        trigger=options.trigger or section["trigger"],
        expiry=expiry,
        now_ms=options.now,
        bulk_rows=section["bulk_rows"],
        max_records=section["max_records_per_batch"],
        lag_interval_seconds=configuration.lag["interval_seconds"],
        status=status_settings(configuration.status),
        lag_counted_partitions=configuration.lag["counted_partitions"],
        lag_narrowed_partitions=configuration.lag["narrowed_partitions"],
        maintenance=Maintenance.of(configuration),
        maintain_every_seconds=every,
        transactions=transaction_address(address, transactions, era.name) if transactions else None,
        tasks=section["tasks"],
        driver_records=section["driver_records"],
        spark=configuration.spark,
        kafka=configuration.kafka_options,
        kafka_jvm=configuration.kafka["jvm"],
    )


COMMAND = Command("run", "load a __consumer_offsets log into tables, once or continuously", _EXAMPLES, _add_arguments, _run)
