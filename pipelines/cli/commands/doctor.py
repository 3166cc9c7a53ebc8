"""`grouplake doctor`: check what a job needs."""

import importlib.util
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING

from pipelines.cli.command import Command
from pipelines.cli.extras import JOB
from pipelines.cli.options import ERAS, add_conf, add_transactions, era_named, folder, positive

if TYPE_CHECKING:
    from pipelines.doctor.subject import Subject
    from pipelines.runtime.configuration import Configuration

_MINUTE_MS = 60_000

_EXAMPLES = """examples:
  grouplake doctor
  grouplake doctor --conf production.toml --source kafka://broker1:9092,broker2:9092 --tables /data/groups
  grouplake doctor --source segments:/var/lib/kafka/data --tables /data/groups --format json
  grouplake doctor --conf production.toml --rules alerts.toml
  grouplake doctor --migrate-from burrow.toml > grouplake.toml

Each finding is ok, a warning or a problem, with what to do. Checks that need an option which is missing are left out and named.
Exit codes: 0 no problem (warnings do not count), 1 a problem, 2 bad usage or configuration. Nothing is changed: a file is written
into the folder of tables, and removed. Spark is started with --spark only. --migrate-from checks nothing: it translates the
configuration of Burrow, KMinion, kafka-lag-exporter, klag-exporter, klag or Datadog's kafka_consumer.
"""


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--source", metavar="ADDRESS", help="source address of the job, as in grouplake run")
    add_transactions(parser, "also check __transaction_state")
    parser.add_argument("--tables", type=folder, metavar="DIR", help="folder (or object-store URI) of the tables")
    parser.add_argument("--era", help=f"broker generation of the job: {', '.join(ERAS)} (default 4)")
    parser.add_argument("--retention-minutes", type=positive, metavar="N", help="offsets.retention.minutes of the job")
    parser.add_argument("--rules", metavar="FILE", help="file of alert rules of grouplake alerts")
    parser.add_argument("--spark", action="store_true", help="also start Spark, and check the executors of a cluster")
    parser.add_argument(
        "--migrate-from", metavar="FILE", help="print the configuration that this file of another lag monitor amounts to, and end"
    )
    parser.add_argument("--format", choices=("text", "json"), default="text", help="default: text")
    add_conf(parser)


def _run(options: Namespace) -> int:
    if options.migrate_from is not None:
        return _migrate(options)
    from pipelines.doctor.checks import left_out, run_checks
    from pipelines.doctor.report import Summary, write_json, write_left_out, write_text
    from pipelines.runtime.configuration import load_configuration

    subject = subject_of(options, load_configuration(options.conf))
    summary = Summary()
    results = summary.counted(run_checks(subject))
    if options.format == "json":
        write_json(results, sys.stdout)
    else:
        write_text(results, sys.stdout)
        write_left_out(left_out(subject), sys.stdout)
        print(summary)
    return summary.exit_code


def _migrate(options: Namespace) -> int:
    from pipelines.doctor.migration.migrate import migration_of
    from pipelines.doctor.migration.migration_report import write_migration, write_migration_json

    migration = migration_of(options.migrate_from)
    (write_migration_json if options.format == "json" else write_migration)(migration, sys.stdout)
    return 0


def subject_of(options: Namespace, configuration: "Configuration") -> "Subject":
    """What the arguments name: arguments before configuration.

    Raises:
        UsageError: invalid values.
    """
    from pipelines.doctor.subject import Subject
    from pipelines.runtime.timestamps import now_ms
    from pipelines.source.address import parse_address
    from pipelines.source.transaction_log import transaction_address

    era = era_named(options.era or configuration.job["era"])
    minutes = options.retention_minutes or configuration.job["retention_minutes"]
    address = parse_address(options.source) if options.source else None
    transactions = options.transactions or configuration.job["transactions"]
    return Subject(
        configuration=configuration,
        era=era,
        retention_ms=minutes * _MINUTE_MS or era.default_retention_ms,
        clock_ms=now_ms,
        address=address,
        transactions=transaction_address(address, transactions, era.name) if address and transactions else None,
        tables=options.tables,
        rules=options.rules,
        dashboard=_dashboard(configuration, options.tables),
        starts_spark=options.spark,
        retention_is_set=bool(minutes),
    )


def _dashboard(configuration: "Configuration", tables: str | None) -> Callable[[], str] | None:
    """The check of the dashboard's settings; None if it is not installed."""
    if importlib.util.find_spec("fastapi") is None:
        return None
    from pipelines.dashboard.options import dashboard_options, in_words

    sections = configuration.dashboard, configuration.metrics, configuration.lag
    return lambda: in_words(dashboard_options([tables or "tables"], None, *sections))


COMMAND = Command("doctor", "check brokers, permissions, tables and this machine", _EXAMPLES, _add_arguments, _run, extra=JOB)
