"""`grouplake start`: the checks of `doctor`, then job, page and metrics in one process, with defaults for a first look."""

import os
import re
import shlex
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.cli.command import Command
from pipelines.cli.commands import doctor, run
from pipelines.cli.extras import DASHBOARD, JOB
from pipelines.cli.options import add_conf, add_source, add_transactions, folder

if TYPE_CHECKING:
    from pipelines.source.address import SourceAddress

_EXAMPLES = """examples:
  grouplake start --source kafka://broker1:9092
  grouplake start --source kafka://broker1:9093 --conf kafka --tables /data/groups --dashboard 127.0.0.1:8090
  grouplake start --source kafka-groups://broker1:9092 --conf cloud.toml
  grouplake start --source segments:/var/lib/kafka/data

It checks brokers, permissions and this machine as `grouplake doctor` does. A problem ends it with exit code 1 before the job
starts. Then it is `grouplake run` with a batch every 10 s, hourly maintenance and the page: the line "running grouplake run …"
has the arguments, for a service of your own. The page opens while Spark starts, and serves /metrics for Prometheus. Ctrl-C ends
the command, and the next start continues where it ended.
"""

_TRIGGER, _MAINTENANCE = "10s", "1h"


def _add_arguments(parser: ArgumentParser) -> None:
    add_source(parser, run.SOURCES)
    parser.add_argument(
        "--tables",
        type=folder,
        metavar="DIR",
        help="folder (or object-store URI) of the tables (default: one named after the source, in ~/.local/share/grouplake)",
    )
    parser.add_argument(
        "--dashboard", default="", metavar="HOST:PORT", help="address of the page (default: dashboard.listen, 127.0.0.1:8080)"
    )
    add_transactions(parser, "also read __transaction_state")
    add_conf(parser)


def _run(options: Namespace) -> int:
    from pipelines.doctor.checks import run_checks
    from pipelines.doctor.finding import Severity
    from pipelines.doctor.report import Summary, write_text
    from pipelines.runtime.configuration import load_configuration
    from pipelines.runtime.progress import print_progress
    from pipelines.source.address import parse_address

    DASHBOARD.expect("grouplake start")
    options.tables = options.tables or default_tables(parse_address(options.source))
    given = ["--source", options.source, "--tables", options.tables]
    given += [] if options.transactions is None else ["--transactions", options.transactions]
    given += [] if options.conf is None else ["--conf", options.conf]

    print_progress(f"running the checks of doctor: {options.source}")
    summary = Summary()
    subject = doctor.subject_of(_parsed("doctor", *given), load_configuration(options.conf))
    results = summary.counted(run_checks(subject))
    write_text((each for each in results if each.finding.mark is not Severity.OK), sys.stderr)
    if summary.exit_code:
        print_progress(f"nothing was started: {summary}")
        return summary.exit_code

    given += ["--trigger", _TRIGGER, "--maintain-every", _MAINTENANCE, "--dashboard"]
    given += [options.dashboard] if options.dashboard else []
    print_progress(f"running grouplake run {shlex.join(given)}")
    return run.COMMAND.run(_parsed("run", *given))


def _parsed(*arguments: str) -> Namespace:
    # it has this command too
    from pipelines.cli.parser import parser

    return parser().parse_args(arguments)


def default_tables(source: "SourceAddress") -> str:
    """The folder of tables of a source: below `$XDG_DATA_HOME`, named after its first broker or its last folder."""
    data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
    name = source.location.split(",")[0] if source.is_cluster else Path(source.location).resolve().name
    # also the name of the cluster on the page and in SQL
    return str(data / "grouplake" / re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:100])


COMMAND = Command(
    "start",
    "check a cluster, then follow it with job, page and metrics in one process",
    _EXAMPLES,
    _add_arguments,
    _run,
    extra=JOB,
    writes=("tables",),
)
