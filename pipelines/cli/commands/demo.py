"""`grouplake demo`, with or without a Kafka broker."""

from argparse import ArgumentParser, Namespace

from pipelines.cli.command import Command
from pipelines.cli.dashboard_option import add_dashboard, dashboard_of_job
from pipelines.cli.extras import DEMO
from pipelines.cli.options import folder, kafka_version

_EXAMPLES = """examples:
  grouplake demo
  grouplake demo --tables /tmp/demo
  grouplake demo --kafka 3.9.1
  grouplake demo --dashboard
"""


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--tables", type=folder, metavar="DIR", help="folder for the tables (default: a temporary folder)")
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument(
        "--kafka",
        nargs="?",
        const="4.1.1",
        type=kafka_version,
        metavar="VERSION",
        help="use a private Kafka broker of this version (default 4.1.1) and real consumers",
    )
    add_dashboard(chosen, "serve the page, and let members come and go until Ctrl-C")


def _run(options: Namespace) -> int:
    if options.kafka is not None:
        from pipelines.examples.demo.with_kafka import run_demo_with_kafka

        run_demo_with_kafka(options.kafka, options.tables)
    else:
        _run_without_broker(options)
    return 0


def _run_without_broker(options: Namespace) -> None:
    from pipelines.examples.demo.demo import Demo
    from pipelines.runtime.configuration import load_configuration
    from pipelines.runtime.progress import RecentProgress, print_progress

    progress = RecentProgress(print_progress)
    demo = Demo(options.tables, progress)
    page = dashboard_of_job("grouplake demo", options.dashboard, demo.tables, load_configuration(None), print_progress, progress)
    demo.run(page, is_endless=options.dashboard is not None)


COMMAND = Command(
    "demo",
    "run a coordinator, members, the job, and SQL queries",
    _EXAMPLES,
    _add_arguments,
    _run,
    extra=DEMO,
    writes=("tables",),
)
