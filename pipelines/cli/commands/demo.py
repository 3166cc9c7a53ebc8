"""`grouplake demo`, with or without a Kafka broker."""

from argparse import ArgumentParser, Namespace

from pipelines.cli.command import Command
from pipelines.cli.options import folder, kafka_version

_EXAMPLES = """examples:
  grouplake demo
  grouplake demo --tables /tmp/demo
  grouplake demo --kafka 3.9.1
"""


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--tables", type=folder, metavar="DIR", help="folder for the tables (default: a temporary folder)")
    parser.add_argument(
        "--kafka",
        nargs="?",
        const="4.1.1",
        type=kafka_version,
        metavar="VERSION",
        help="use a private Kafka broker of this version (default 4.1.1) and real consumers",
    )


def _run(options: Namespace) -> int:
    if options.kafka is not None:
        from pipelines.demo.with_kafka import run_demo_with_kafka

        run_demo_with_kafka(options.kafka, options.tables)
    else:
        from pipelines.demo.demo import run_demo

        run_demo(options.tables)
    return 0


COMMAND = Command("demo", "run a coordinator, members, the job, and SQL queries", _EXAMPLES, _add_arguments, _run)
