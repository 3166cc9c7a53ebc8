"""`grouplake run`, with or without a coordinator."""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from pipelines.cli.command import Command
from pipelines.cli.dashboard_option import add_dashboard, dashboard_of_job
from pipelines.cli.extras import COORDINATOR, JOB
from pipelines.cli.options import ERAS, add_conf, add_source, add_tables, add_transactions, era_named, positive, seconds, time_ms
from pipelines.cli.otlp_option import otlp_export_of
from pipelines.runtime.errors import UsageError

if TYPE_CHECKING:
    from pipelines.job.run_options import RunOptions
    from pipelines.runtime.configuration import Configuration
    from pipelines.runtime.progress import Progress

_MINUTE_MS = 60_000

#: Values of `--expiry` and of `job.expiry`.
EXPIRY = ("observe", "apply")

SOURCES = (
    "kafka://HOST:PORT[,…]/TOPIC, segments:DIR, jsonl:FILE, spark-kafka://HOST:PORT[,…]/TOPIC, or kafka-groups://HOST:PORT[,…] "
    "for clusters whose offsets topic cannot be read"
)

_EXAMPLES = """examples:
  grouplake run --source segments:/var/lib/kafka/data --tables /data/groups
  grouplake run --source kafka://broker1:9092,broker2:9092/__consumer_offsets --tables /data/groups --conf kafka --trigger 10s
  grouplake run --source kafka://broker1:9092/__consumer_offsets --tables /data/groups --schedule 15m
  grouplake run --with-coordinator 0.0.0.0:9092 --source segments:/var/lib/grouplake --tables /data/groups --conf coordinator.toml
  grouplake run --source kafka://broker1:9092/__consumer_offsets --tables /data/groups --trigger 10s --dashboard 127.0.0.1:8080
  grouplake run --source kafka://broker1:9092/__consumer_offsets --tables /data/groups --trigger 10s --maintain-every 1h
  grouplake run --source kafka://broker1:9092/__consumer_offsets --tables /data/groups --trigger 10s --transactions
  grouplake run --source kafka://broker1:9092/__consumer_offsets --tables /data/groups --trigger 10s --group-id grouplake-job
  grouplake run --source kafka-groups://broker1:9092 --tables /data/groups --conf kafka --trigger 30s
  grouplake run --source kafka-groups://broker1:9092 --tables /data/groups --source-change
  grouplake run --source jsonl:dump.jsonl --tables out --era 0.10 --expiry apply --now 1795229230560
"""


def _add_arguments(parser: ArgumentParser) -> None:
    add_source(parser, SOURCES)
    add_tables(parser)
    parser.add_argument(
        "--trigger", help="available-now (default), continuous, or an interval such as 10s (1s with a coordinator)"
    )
    parser.add_argument(
        "--schedule",
        type=seconds,
        metavar="TIME",
        help="interval at which a scheduler starts this run, such as 15m: readers then see when a run is missing "
        "(default: job.schedule_seconds)",
    )
    parser.add_argument(
        "--with-coordinator",
        nargs="?",
        const="127.0.0.1:9092",
        metavar="HOST:PORT",
        help="also run a coordinator on this address (default: 127.0.0.1:9092); it writes the log of --source segments:DIR",
    )
    parser.add_argument("--era", help=f"broker generation whose rules apply: {', '.join(ERAS)} (default 4)")
    parser.add_argument(
        "--retention-minutes",
        type=positive,
        metavar="N",
        help="offsets.retention.minutes of the cluster (default: job.retention_minutes, else as the brokers report it)",
    )
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
    parser.add_argument(
        "--offsets-partitions",
        type=positive,
        metavar="N",
        help="number of partitions of __consumer_offsets, for files and dumps, which may lack some (default: "
        "job.offsets_partitions)",
    )
    parser.add_argument(
        "--transactions-partitions",
        type=positive,
        metavar="N",
        help="the same for __transaction_state (default: job.transactions_partitions)",
    )
    parser.add_argument(
        "--group-id",
        metavar="NAME",
        help="commit the position in the log as this consumer group, so that tools of Kafka show the lag of the job (default: "
        "job.group_id, else no commits)",
    )
    parser.add_argument(
        "--source-change",
        action="store_true",
        help="continue tables that were made from the log of this cluster with polls (kafka-groups://), or the other way round",
    )
    parser.add_argument("--metrics", metavar="HOST:PORT", help="serve /metrics for Prometheus (default: metrics.listen)")
    add_dashboard(parser, "serve the page of `grouplake dashboard` from this process")
    add_conf(parser)


def _run(options: Namespace) -> int:
    from pipelines.metrics.job_metrics import JobLogs, job_metrics, metrics_endpoint
    from pipelines.runtime.configuration import load_configuration
    from pipelines.runtime.progress import RecentProgress, print_progress
    from pipelines.runtime.service_manager import notify_stopping, with_status

    if options.with_coordinator is not None:
        COORDINATOR.expect("grouplake run --with-coordinator")
    configuration = load_configuration(options.conf)
    run_options = run_options_of(options, configuration)
    progress = RecentProgress(print_progress)
    listen = metrics_endpoint(options.metrics, configuration.metrics)
    page = dashboard_of_job("grouplake run", options.dashboard, options.tables, configuration, print_progress, progress)
    export = otlp_export_of(configuration, print_progress, has_batches=True)
    logs = JobLogs(run_options.tables, run_options.address, run_options.transactions, run_options.kafka)
    with page as site, job_metrics(listen, logs, configuration.metrics, print_progress, site, export):
        try:
            _run_job(options, configuration, run_options, with_status(progress))
        finally:
            notify_stopping()
    return 0


def _run_job(options: Namespace, configuration: "Configuration", run_options: "RunOptions", progress: "Progress") -> None:
    from pipelines.job import job
    from pipelines.runtime.service_manager import notify_ready
    from pipelines.runtime.timestamps import now_ms

    if options.with_coordinator is None:
        from pipelines.job.hung_run import hung_run_watchdog

        with hung_run_watchdog(configuration.job["hung_seconds"], progress) as watchdog:
            job.run(run_options, watchdog.watching(progress), now_ms, on_ready=notify_ready, alive=watchdog.alive)
        return

    from pipelines.job.coordinator_process import coordinator_options
    from pipelines.job.run_with_coordinator import following, run_with_coordinator

    serving = coordinator_options(options.with_coordinator, run_options.address.location, configuration.coordinator)
    run_with_coordinator(following(run_options, serving, options.trigger), serving, progress, now_ms)


def run_options_of(options: Namespace, configuration: "Configuration") -> "RunOptions":
    """Options of the job: arguments before configuration.

    Raises:
        UsageError: invalid values.
    """
    from pipelines.job.run_options import AVAILABLE_NOW, RunOptions
    from pipelines.lag.settings import status_settings
    from pipelines.source.address import parse_address
    from pipelines.source.name_patterns import NamePatterns
    from pipelines.source.transaction_log import transaction_address
    from pipelines.tables.change_data_feed import feed_tables
    from pipelines.upkeep.maintain import Maintenance

    section = configuration.job
    expiry = options.expiry or section["expiry"]
    if expiry not in EXPIRY:
        raise UsageError(f"job.expiry is {expiry!r}: must be one of {', '.join(EXPIRY)}")
    era = era_named(options.era or section["era"])
    trigger = options.trigger or section["trigger"]
    if options.schedule and (trigger != AVAILABLE_NOW or options.with_coordinator is not None):
        raise UsageError(
            f"--schedule is the interval of runs with --trigger {AVAILABLE_NOW}: a job that follows the log has none"
        )
    minutes, setting = _retention_setting(options, configuration)
    every = configuration.maintain["every_seconds"] if options.maintain_every is None else options.maintain_every
    address = parse_address(options.source)
    transactions = options.transactions or section["transactions"]
    groups, topics = NamePatterns.of("groups", configuration.groups), NamePatterns.of("topics", configuration.topics)
    if address.is_polled:
        _expect_polled(era.name, expiry, transactions)
    for chosen, patterns in (("groups", groups), ("topics", topics)):
        if patterns and not address.is_polled:
            raise UsageError(f"[{chosen}] is for kafka-groups:// only: {address.scheme} reads all {chosen}")
    return RunOptions(
        address=address,
        tables=options.tables,
        era=era,
        retention_ms=minutes * _MINUTE_MS or era.default_retention_ms,
        retention_setting=setting,
        trigger=trigger,
        expiry=expiry,
        now_ms=options.now,
        bulk_rows=section["bulk_rows"],
        max_records=section["max_records_per_batch"],
        schedule_seconds=section["schedule_seconds"] if options.schedule is None else options.schedule,
        poll_seconds=section["poll_seconds"],
        source_change=options.source_change,
        groups=groups,
        topics=topics,
        lag_interval_seconds=configuration.lag["interval_seconds"],
        status=status_settings(configuration.status),
        lag_counted_partitions=configuration.lag["counted_partitions"],
        lag_narrowed_partitions=configuration.lag["narrowed_partitions"],
        maintenance=Maintenance.of(configuration),
        maintain_every_seconds=every,
        transactions=transaction_address(address, transactions, era.name) if transactions else None,
        offsets_partitions=options.offsets_partitions or section["offsets_partitions"],
        transactions_partitions=options.transactions_partitions or section["transactions_partitions"],
        group_id=section["group_id"] if options.group_id is None else options.group_id,
        feed_tables=feed_tables(section["change_data_feed"]),
        tasks=section["tasks"],
        driver_records=section["driver_records"],
        spark=configuration.spark,
        kafka=configuration.kafka_options,
        kafka_jvm=configuration.kafka["jvm"],
    )


#: Eras whose brokers answer the requests of a poll.
_POLLED_ERAS = ("0.10", "1", "2", "3", "4")


def _expect_polled(era: str, expiry: str, transactions: str) -> None:
    """Check options that need a log.

    Raises:
        UsageError: an option that a source which is polled does not have.
    """
    from pipelines.source.transaction_log import BESIDE_SOURCE

    if era not in _POLLED_ERAS:
        raise UsageError(
            f"kafka-groups:// needs brokers of Kafka 0.10.2 or later: era is {era}, use one of {', '.join(_POLLED_ERAS)}"
        )
    if expiry != "observe":
        raise UsageError(f"--expiry {expiry} needs the times of commits, which kafka-groups:// does not know: use observe")
    if transactions and transactions != BESIDE_SOURCE:
        raise UsageError(
            f"--transactions {transactions} is a log, and kafka-groups:// polls the coordinators of transactions: "
            "use --transactions without an address"
        )


def _retention_setting(options: Namespace, configuration: "Configuration") -> tuple[int, str | None]:
    """The offset retention in minutes and the setting that states it; (0, None) without one."""
    if options.retention_minutes:
        return options.retention_minutes, "--retention-minutes"
    if minutes := configuration.job["retention_minutes"]:
        return minutes, "job.retention_minutes"
    if options.with_coordinator is None:
        return 0, None
    from pipelines.job.coordinator_process import coordinator_config

    return coordinator_config(configuration.coordinator).offsets_retention_minutes, "coordinator.offsets_retention_minutes"


COMMAND = Command(
    "run",
    "load a __consumer_offsets log into tables, once or continuously",
    _EXAMPLES,
    _add_arguments,
    _run,
    extra=JOB,
    writes=("tables",),
)
