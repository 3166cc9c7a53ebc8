"""`grouplake demo`: without a Kafka broker, with one as the log of nodes, or with the groups of one."""

from argparse import ArgumentParser, Namespace

from pipelines.cli.command import Command
from pipelines.cli.dashboard_option import add_dashboard, dashboard_of_job
from pipelines.cli.extras import DEMO
from pipelines.cli.options import folder, kafka_version
from pipelines.runtime.errors import UsageError

_DEFAULT_KAFKA = "4.1.1"

_EXAMPLES = """examples:
  grouplake demo
  grouplake demo --tables /tmp/demo
  grouplake demo --kafka
  grouplake demo --broker 3.9.1
  grouplake demo --dashboard

--kafka kills a coordinator with kill -9 and looks up each commit that consumers got acknowledged in the log, and the commits of
the log in the tables: exit code 1 if one is missing.
"""


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--tables", type=folder, metavar="DIR", help="folder for the tables (default: a temporary folder)")
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument(
        "--kafka",
        nargs="?",
        const=_DEFAULT_KAFKA,
        type=kafka_version,
        metavar="VERSION",
        help="two coordinators that share a topic of a private Kafka broker as their log; one is killed (2.8.0 or newer, default "
        f"{_DEFAULT_KAFKA})",
    )
    chosen.add_argument(
        "--broker",
        nargs="?",
        const=_DEFAULT_KAFKA,
        type=kafka_version,
        metavar="VERSION",
        help="no coordinator of ours: real consumers in groups of a private Kafka broker, and the job on its __consumer_offsets "
        f"(default {_DEFAULT_KAFKA})",
    )
    add_dashboard(chosen, "serve the page, and let members come and go until Ctrl-C")


def _run(options: Namespace) -> int:
    if options.kafka is not None:
        _run_fail_over(options)
    elif options.broker is not None:
        _run_with_broker(options)
    else:
        _run_without_broker(options)
    return 0


def _run_fail_over(options: Namespace) -> None:
    try:
        from pipelines.examples.demo.fail_over.fail_over import FailOverDemo
    except ImportError as error:
        raise _without_client("--kafka") from error
    from pipelines.runtime.progress import print_progress

    FailOverDemo(options.kafka, options.tables, print_progress).run()


def _run_with_broker(options: Namespace) -> None:
    try:
        from pipelines.examples.demo.broker_groups import run_demo_with_broker
    except ImportError as error:
        raise _without_client("--broker") from error
    run_demo_with_broker(options.broker, options.tables)


def _without_client(option: str) -> UsageError:
    return UsageError(f"grouplake demo {option} needs confluent-kafka: pip install 'grouplake[demo]'")


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
