"""Options that several commands have, and types of arguments."""

import re
from argparse import ArgumentParser, ArgumentTypeError
from typing import TYPE_CHECKING

from pipelines.runtime.errors import UsageError

if TYPE_CHECKING:
    from coordinator_core.state.era import Era

ERAS = ("0.9", "0.10", "1", "2", "3", "4", "redpanda")

#: The end of the year 9999.
_LAST_MS = 253_402_300_799_999

FORMATS = ("table", "json", "csv")


def add_source(command: ArgumentParser, forms: str) -> None:
    """Add `--source`; `forms` lists the forms of an address."""
    command.add_argument("--source", required=True, metavar="ADDRESS", help=forms)


def add_transactions(command: ArgumentParser, text: str) -> None:
    """Add `--transactions`, with an optional address; `text` is the beginning of its help."""
    command.add_argument(
        "--transactions",
        nargs="?",
        const="source",
        metavar="ADDRESS",
        help=f"{text}: the topic beside --source (default), or a log of its own",
    )


def add_tables(command: ArgumentParser) -> None:
    """Add `--tables`."""
    command.add_argument("--tables", required=True, type=folder, metavar="DIR", help="folder (or object-store URI) of the tables")


def add_clusters(command: ArgumentParser) -> None:
    """Add `--tables`, which may be repeated for several clusters."""
    command.add_argument(
        "--tables",
        required=True,
        action="append",
        type=folder,
        metavar="[NAME=]DIR",
        help="folder (or object-store URI) of the tables; repeat for several clusters (name: that of the folder)",
    )


def add_conf(command: ArgumentParser) -> None:
    """Add `--conf`."""
    command.add_argument("--conf", metavar="FILE", help="configuration file, or profile: local, kafka, production")


def kafka_version(text: str) -> str:
    """Argument type: a version of Kafka."""
    if not re.fullmatch(r"[0-9]+(\.[0-9]+){2,3}", text):
        raise ArgumentTypeError(f"{text!r} is not a Kafka version such as 4.1.1")
    return text


def folder(text: str) -> str:
    """Argument type: a name that is not empty."""
    if not text.strip():
        raise ArgumentTypeError("the name of the folder is empty")
    return text


def positive(text: str) -> int:
    """Argument type: a whole number above 0."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def seconds(text: str) -> int:
    """Argument type: a duration such as `90s`, `30m` or `1h`, or 0, in seconds."""
    from coordinator_core.health.durations import parse_duration_ms

    try:
        return parse_duration_ms(text) // 1_000 if text != "0" else 0
    except ValueError as error:
        raise ArgumentTypeError(f"{text!r} is not a duration such as 90s, 30m, 1h or 1d, or 0") from error


def time_ms(text: str) -> int:
    """Argument type: a time in ms since the epoch."""
    if not text.isascii() or not text.isdigit() or int(text) > _LAST_MS:
        raise ArgumentTypeError(f"{text!r} is not a time in ms since the epoch, from 0 to {_LAST_MS}")
    return int(text)


def add_format(command: ArgumentParser) -> None:
    """Add `--format` for query results."""
    command.add_argument("--format", choices=FORMATS, default="table", help="default: table")


def add_as_of(command: ArgumentParser, what: str) -> None:
    """Add `--as-of`; `what` is the noun in its help."""
    command.add_argument("--as-of", metavar="TIME|BATCH", help=f"{what} as of an ISO 8601 time or a batch id")


def era_named(name: str) -> "Era":
    """The era of that name. Raises UsageError for an unknown one."""
    from coordinator_core.state.era import Era

    try:
        return Era.named(name)
    except ValueError as error:
        raise UsageError(str(error)) from error
