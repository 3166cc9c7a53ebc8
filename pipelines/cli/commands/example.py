"""`grouplake example`: write an example log, or tables with two days of an example history."""

from argparse import ArgumentParser, Namespace
from datetime import UTC, datetime, timedelta

from pipelines.cli.command import Command
from pipelines.cli.extras import LOG
from pipelines.cli.options import folder
from pipelines.runtime.errors import UsageError

_EXAMPLES = """examples:
  grouplake example /tmp/log
  grouplake run --source segments:/tmp/log --tables /tmp/groups --expiry apply --now 1795834200000
  grouplake sql --tables /tmp/groups "SELECT group_id, state, member_count FROM groups"

  grouplake example --history /tmp/shop
  grouplake dashboard --tables /tmp/shop

--history writes tables, not a log: the 48 hours of a shop until now, or until --until, in which several consumer groups
have a defect. It takes about 45 seconds of CPU time.
"""

#: Records of the history are up to 40 days older than its end.
_EARLIEST = datetime(1970, 3, 1, tzinfo=UTC)
_LATEST = datetime(9999, 1, 1, tzinfo=UTC)


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("directory", type=folder, metavar="DIR", help="new or empty folder")
    parser.add_argument("--history", action="store_true", help="write tables with 48 hours of a shop instead of a log")
    parser.add_argument("--until", metavar="TIME", help="end of the history, an ISO 8601 time (default: now)")


def _run(options: Namespace) -> int:
    if not options.history:
        if options.until is not None:
            raise UsageError("--until is the end of a history: name --history too")
        from pipelines.examples.log.example_log import write_example_log

        print(write_example_log(options.directory))
        return 0
    LOG.expect("grouplake example --history")
    from pipelines.examples.history.history import write_history
    from pipelines.runtime.progress import print_progress

    write_history(options.directory, _until(options.until), print_progress)
    print(f"grouplake dashboard --tables {options.directory}")
    return 0


def _until(text: str | None) -> datetime:
    """The end of the history; a time without a zone is in UTC."""
    if text is None:
        return datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=1)
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"--until is {text!r}: must be an ISO 8601 time such as 2026-03-04T14:00:00Z") from error
    found = (found if found.tzinfo else found.replace(tzinfo=UTC)).replace(microsecond=0)
    if not _EARLIEST <= found <= _LATEST:
        raise UsageError(f"--until is {text!r}: must be from {_EARLIEST:%Y-%m-%d} to {_LATEST:%Y-%m-%d}")
    return found


COMMAND = Command(
    "example", "write an example log, or 48 hours of example tables", _EXAMPLES, _add_arguments, _run, writes=("directory",)
)
