"""`grouplake show`: print records; undecodable ones and the positions of torn ends go to standard error."""

import sys
from argparse import SUPPRESS, ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pipelines.cli.command import Command
from pipelines.cli.extras import LOG
from pipelines.cli.options import ERAS, add_conf, add_source, era_named
from pipelines.runtime.errors import GrouplakeError, UsageError

if TYPE_CHECKING:
    from coordinator_core.codec import Record, TransactionRecord
    from coordinator_core.log.entries import LogRecord
    from coordinator_core.sources.source import LogSource
    from pipelines.source.address import SourceAddress
    from pipelines.source.show import LogProblem

#: Formats of transactional ids.
_TABLES = ("list", "describe")

_EXAMPLES = """examples:
  grouplake show --source segments:/var/lib/kafka/data | head
  grouplake show --source kafka://localhost:9092/__consumer_offsets --format classic --era 2
  grouplake show --source kafka://localhost:9092 --transactions --format list
"""


def _add_arguments(parser: ArgumentParser) -> None:
    add_source(parser, "kafka://HOST:PORT[,…]/TOPIC, segments:DIR or jsonl:FILE")
    parser.add_argument(
        "--format",
        choices=("json", "classic", "list", "describe"),
        default="json",
        help="json (4.x, default) or classic (up to 3.9); list or describe: the tables of kafka-transactions",
    )
    parser.add_argument(
        "--transactions", action="store_true", help="the log is __transaction_state: the topic beside that of --source"
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
    from pipelines.runtime.configuration import load_configuration
    from pipelines.runtime.terminal_text import mask_of
    from pipelines.source.address import open_source

    address, has_transactions = _address(options)
    lines = _transaction_lines if has_transactions else _group_lines
    if options.format in _TABLES and not has_transactions:
        raise UsageError(f"--format {options.format} prints transactional ids: add --transactions")
    era = era_named(options.era).name
    kafka = load_configuration(options.conf).kafka_options
    problems = 0
    # the columns of Kafka's tables end with tabs
    mask, mask_problem = mask_of(sys.stdout, "\t"), mask_of(sys.stderr)
    try:
        with closing(open_source(address, kafka)) as source:
            for found in lines(options, era, source):
                if isinstance(found, str):
                    print(mask(found))
                else:
                    problems += 1
                    print(mask_problem(str(found)), file=sys.stderr)
            for end in source.torn_ends():
                print(mask_problem(str(end)), file=sys.stderr)
    except LogUnreachable as error:
        raise GrouplakeError(str(error)) from error
    except LogError as error:
        raise UsageError(str(error)) from error
    return 1 if problems else 0


def _address(options: Namespace) -> "tuple[SourceAddress, bool]":
    """The address of the log, and whether it is `__transaction_state`."""
    from coordinator_core.protocol.internal_topics import TRANSACTION_STATE_TOPIC
    from pipelines.source.address import parse_address

    address = parse_address(options.source)
    if options.transactions and address.scheme != "jsonl":
        address = replace(address, topic=TRANSACTION_STATE_TOPIC)
    return address, options.transactions or address.topic == TRANSACTION_STATE_TOPIC


def _group_lines(options: Namespace, era: str, source: "LogSource") -> "Iterator[str | LogProblem]":
    from pipelines.source import show as printing

    line_of: Callable[[LogRecord, Record], str | None]
    if options.format == "json":
        line_of = partial(printing.json_line, with_position=options.position)
    else:
        line_of = partial(printing.classic_line_of, era=era, with_position=options.position)
    for found in printing.records(source):
        if isinstance(found, printing.LogProblem):
            yield found
        elif (line := line_of(*found)) is not None:
            yield line


def _transaction_lines(options: Namespace, era: str, source: "LogSource") -> "Iterator[str | LogProblem]":
    from coordinator_core.codec import decode_transaction
    from coordinator_core.state.transaction_cache import TRANSACTION_LOADERS
    from pipelines.runtime.timestamps import now_ms
    from pipelines.source import show_transactions as printing
    from pipelines.source.show import LogProblem, decoded_records

    if era not in TRANSACTION_LOADERS:
        raise UsageError(f"era {era} has no transactions: use --era {', '.join(TRANSACTION_LOADERS)}")
    if options.format in _TABLES:
        transactions, problems = printing.transactions_of(source, era)
        table = printing.list_table(transactions)
        yield from table if options.format == "list" else printing.describe_table(transactions, now_ms())
        yield from problems
        return
    line_of: Callable[[LogRecord, TransactionRecord], str | LogProblem]
    if options.format == "json":
        line_of = partial(printing.transaction_json_line, with_position=options.position)
    else:
        line_of = partial(printing.classic_transaction_line, era=era, with_position=options.position)
    for found in decoded_records(source, decode_transaction):
        yield found if isinstance(found, LogProblem) else line_of(*found)


COMMAND = Command("show", "print the records of a log as Kafka's formatters do", _EXAMPLES, _add_arguments, _run, extra=LOG)
