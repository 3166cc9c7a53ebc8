"""`grouplake show`: print records; undecodable ones and the positions of torn ends go to standard error."""

import sys
from argparse import SUPPRESS, ArgumentParser, Namespace
from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

from pipelines.cli.command import Command
from pipelines.cli.options import ERAS, add_conf, add_source, era_named
from pipelines.errors import GrouplakeError, UsageError

if TYPE_CHECKING:
    from coordinator_core.codec import Record
    from coordinator_core.log.entries import LogRecord

_EXAMPLES = """examples:
  grouplake show --source segments:/var/lib/kafka/data | head
  grouplake show --source kafka://localhost:9092/__consumer_offsets --format classic --era 2
"""


def _add_arguments(parser: ArgumentParser) -> None:
    add_source(parser, "kafka://HOST:PORT[,…]/TOPIC, segments:DIR or jsonl:FILE")
    parser.add_argument(
        "--format", choices=("json", "classic"), default="json", help="json (4.x, default) or classic (up to 3.9)"
    )
    parser.add_argument("--era", default="4", help=f"broker generation of the classic format: {', '.join(ERAS)} (default 4)")
    parser.add_argument(
        "--position", action="store_true", help="add log partition and offset: to the JSON object, or before the classic line"
    )
    # its name in the first version
    parser.add_argument("--place", dest="position", action="store_true", help=SUPPRESS)
    add_conf(parser)


def _run(options: Namespace) -> int:
    from coordinator_core.log.errors import LogError, LogUnreachable
    from pipelines import show as printing
    from pipelines.configuration import load_configuration
    from pipelines.source.address import open_source, parse_address

    line_of: Callable[[LogRecord, Record], str | None]
    if options.format == "json":
        line_of = partial(printing.json_line, with_position=options.position)
    else:
        line_of = partial(printing.classic_line_of, era=era_named(options.era).name, with_position=options.position)
    address = parse_address(options.source)
    kafka = load_configuration(options.conf).kafka_options
    problems = 0
    try:
        with closing(open_source(address, kafka)) as source:
            for found in printing.records(source):
                if isinstance(found, printing.LogProblem):
                    problems += 1
                    print(found, file=sys.stderr)
                elif (line := line_of(*found)) is not None:
                    print(line)
            for end in source.torn_ends():
                print(end, file=sys.stderr)
    except LogUnreachable as error:
        raise GrouplakeError(str(error)) from error
    except LogError as error:
        raise UsageError(str(error)) from error
    return 1 if problems else 0


COMMAND = Command("show", "print the records of a log as Kafka's formatters do", _EXAMPLES, _add_arguments, _run)
