"""`grouplake lag`: print the lag of groups."""

import sys
from argparse import ArgumentParser, Namespace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from pipelines.cli.command import Command
from pipelines.cli.options import add_as_of, add_format, add_tables, positive
from pipelines.runtime.errors import UsageError

if TYPE_CHECKING:
    from pipelines.query.engine import Snapshot

_EXAMPLES = """examples:
  grouplake lag --tables /data/groups --group billing
  grouplake lag --tables /data/groups --all-groups --seconds --status
  grouplake lag --tables /data/groups --all-groups --members --verbose
  grouplake lag --tables /data/groups --group billing --watch
  grouplake lag --tables /data/groups --group billing --format json --as-of 2026-03-01T00:00:00+00:00

The table is that of `kafka-consumer-groups --describe` of Kafka 4.x. LOG-END-OFFSET and LAG are those of the last sample, and
"-" without one: samples need a kafka:// source. SECONDS is the age of the next record to read, with its bounds.
With --as-of both are those of the last sample until then, and CURRENT-OFFSET is that of the commits which the sample had.
A share group has START-OFFSET and LAG as `kafka-share-groups --describe` prints them, of the newest sample.
COMMITTED, with --verbose for tables of polls, is the interval of the last commit: between two polls.
BLOCKED-BY is the transactional id (or the producer) of an open transaction: of an offset of the group that waits for its end, or
of records at the position that hide the next ones. COORDINATOR (ID) of --state is that at the last sample.
"""


def _add_arguments(parser: ArgumentParser) -> None:
    add_tables(parser)
    parser.add_argument("--group", action="append", metavar="GROUP", help="group to print; repeat for several")
    parser.add_argument("--all-groups", action="store_true", help="print all groups")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--members", action="store_true", help="print the members instead of the offsets")
    shown.add_argument("--state", action="store_true", help="print the states of the groups instead of the offsets")
    parser.add_argument("--seconds", action="store_true", help="add the age of the next record to read, with its bounds")
    parser.add_argument("--status", action="store_true", help="add the status of the partition and the rule that decided")
    parser.add_argument("--transactions", action="store_true", help="add the open transaction that blocks the group's position")
    parser.add_argument(
        "--verbose",
        action="store_true",
        help="add leader epochs, of polled groups the times of commits; or epochs and assignments",
    )
    parser.add_argument(
        "--watch",
        nargs="?",
        const=2,
        type=positive,
        metavar="SECONDS",
        help="print again after each new batch, looked for at this interval (default: 2)",
    )
    add_format(parser)
    add_as_of(parser, "lag")


def _run(options: Namespace) -> int:
    from pipelines.query.engine import Snapshot
    from pipelines.query.watch import watch

    if bool(options.group) == options.all_groups:
        raise UsageError("name groups with --group, or all with --all-groups (see grouplake lag --help)")
    if (options.seconds or options.status or options.transactions) and (options.members or options.state):
        raise UsageError("--seconds, --status and --transactions add columns to the offsets: leave out --members and --state")
    if options.watch is None:
        _print(options, Snapshot.open(options.tables, options.as_of))
    elif options.as_of is not None:
        raise UsageError("--watch shows the newest batch: leave out --as-of")
    else:
        watch(options.tables, options.watch, partial(_print, options))
    return 0


def _print(options: Namespace, snapshot: "Snapshot") -> None:
    """Print what the options select."""
    from pipelines.lag.reports.group_descriptions import GroupDescriptions
    from pipelines.lag.reports.lag_report import LagReport
    from pipelines.query.output import to_stdout
    from pipelines.query.poll_times import poll_note
    from pipelines.query.tables_age import tables_age

    groups = options.group or ()
    old = None
    if options.as_of is None:
        age = tables_age(snapshot, options.tables)
        old = age.text
        if age.is_old:
            print(age.headline, file=sys.stderr)
    if not (options.members or options.state):
        report = LagReport.of(
            snapshot,
            groups,
            with_status=options.status,
            with_transactions=options.transactions,
            with_commits=options.verbose,
            old=old,
        )
        note = report.sample_note(_time(options.as_of, snapshot)) if options.as_of is not None else None
        if note is not None:
            print(note, file=sys.stderr)
        if (polls := poll_note(snapshot.batch)) is not None:
            print(polls, file=sys.stderr)
        if options.format == "table":
            report.write(sys.stdout, sys.stderr, verbose=options.verbose, seconds=options.seconds)
        else:
            to_stdout(report.rows, options.format)
        return
    described = GroupDescriptions.of(snapshot, groups)
    if options.format != "table":
        to_stdout(described.member_table() if options.members else described.state_table(), options.format)
    elif options.members:
        described.write_members(sys.stdout, sys.stderr, verbose=options.verbose)
    else:
        described.write_states(sys.stdout, sys.stderr, verbose=options.verbose)


def _time(as_of: str, snapshot: "Snapshot") -> datetime:
    """The time that `--as-of` names, or the completion of the batch that it names."""
    from pipelines.query.engine import parse_as_of

    at = parse_as_of(as_of)
    if isinstance(at, int):
        return snapshot.batch.finished_at
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)


COMMAND = Command(
    "lag",
    "print the lag of groups as kafka-consumer-groups does",
    _EXAMPLES,
    _add_arguments,
    _run,
    compiles=False,
)
