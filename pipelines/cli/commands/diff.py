"""`grouplake diff`: print the groups that changed between two batches."""

from argparse import ArgumentParser, Namespace

from pipelines.cli.command import Command
from pipelines.cli.options import add_format, add_tables

_EXAMPLES = """examples:
  grouplake diff --tables /data/groups --from 2026-03-01T00:00:00Z
  grouplake diff --tables /data/groups --from 2026-03-01 --to 2026-03-02 --group billing --group search
  grouplake diff --tables /data/groups --from 4711 --format json

A time means the newest batch that was complete at that time, a number a batch id. The table adds up the progress of the
partitions of a topic; JSON and CSV have one row per partition.

changes: appeared vanished state rebalanced member_joined member_left committed progress rewind removed reset
"""


def _add_arguments(parser: ArgumentParser) -> None:
    add_tables(parser)
    parser.add_argument("--from", required=True, dest="earlier", metavar="TIME|BATCH", help="ISO 8601 time, or batch id")
    parser.add_argument("--to", dest="later", metavar="TIME|BATCH", help="the same for the end (default: the last batch)")
    parser.add_argument("--group", action="append", default=[], metavar="GROUP", help="group to compare; repeat for several")
    add_format(parser)


def _run(options: Namespace) -> int:
    from pipelines.query.diff_report import print_diff

    print_diff(options.tables, options.earlier, options.later, options.group, options.format)
    return 0


COMMAND = Command(
    "diff",
    "print the groups that changed between two times",
    _EXAMPLES,
    _add_arguments,
    _run,
    compiles=False,
)
