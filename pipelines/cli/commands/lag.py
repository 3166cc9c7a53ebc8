"""`grouplake lag`: print the lag of groups."""

from argparse import ArgumentParser, Namespace

from pipelines.cli.command import Command
from pipelines.cli.options import add_as_of, add_format, add_tables
from pipelines.errors import UsageError

_EXAMPLES = """examples:
  grouplake lag --tables /data/groups --group billing
  grouplake lag --tables /data/groups --all-groups --seconds
  grouplake lag --tables /data/groups --group billing --format json --as-of 2026-03-01T00:00:00+00:00

The table is that of `kafka-consumer-groups --describe` of Kafka 4.x. LOG-END-OFFSET and LAG are those of the last sample, and
"-" without one: samples need a kafka:// source. SECONDS is the age of the next record to read, with its bounds.
"""


def _add_arguments(parser: ArgumentParser) -> None:
    add_tables(parser)
    parser.add_argument("--group", action="append", metavar="GROUP", help="group to print; repeat for several")
    parser.add_argument("--all-groups", action="store_true", help="print all groups")
    parser.add_argument("--seconds", action="store_true", help="add the age of the next record to read, with its bounds")
    parser.add_argument("--verbose", action="store_true", help="add the leader epoch of the commit")
    add_format(parser)
    add_as_of(parser, "lag")


def _run(options: Namespace) -> int:
    from pipelines.query.lag_report import print_lag

    if bool(options.group) == options.all_groups:
        raise UsageError("name groups with --group, or all with --all-groups (see grouplake lag --help)")
    print_lag(
        options.tables,
        options.group or (),
        as_of=options.as_of,
        format_name=options.format,
        verbose=options.verbose,
        seconds=options.seconds,
    )
    return 0


COMMAND = Command(
    "lag",
    "print the lag of groups as kafka-consumer-groups does",
    _EXAMPLES,
    _add_arguments,
    _run,
    loads_pandas=False,
    compiles=False,
)
