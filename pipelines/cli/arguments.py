"""Argument parser: commands, options, help texts."""

import argparse
import re
from collections.abc import Callable
from typing import NoReturn

from pipelines.cache.folder import ALL
from pipelines.cli import commands
from pipelines.errors import UsageError
from pipelines.version import version_text

#: The end of the year 9999.
_LAST_MS = 253_402_300_799_999

_ERAS = ("0.9", "0.10", "1", "2", "3", "4")

_RUN = """examples:
  grouplake run --source segments:/var/lib/kafka/data --tables /data/groups
  grouplake run --source kafka://broker1:9092,broker2:9092/__consumer_offsets --tables /data/groups --conf kafka --trigger 10s
  grouplake run --with-coordinator 0.0.0.0:9092 --source segments:/var/lib/grouplake --tables /data/groups --conf coordinator.toml
  grouplake run --source jsonl:dump.jsonl --tables out --era 0.10 --expiry apply --now 1795229230560
"""
_SQL = """examples:
  grouplake sql --tables /data/groups "SELECT * FROM committed_offsets WHERE group_id = 'billing'"
  grouplake sql --tables /data/groups "SELECT group_id, state, member_count FROM groups" --format json
  grouplake sql --tables /data/groups "SELECT count(*) FROM offsets" --as-of 2026-03-01T00:00:00+00:00

tables: offsets pending_offsets groups members group_records offset_history group_history topic_ids quarantine \
lag end_offsets batches
views:  committed_offsets group_members assignments expiring_offsets
"""
_LAG = """examples:
  grouplake lag --tables /data/groups --group billing
  grouplake lag --tables /data/groups --all-groups --seconds
  grouplake lag --tables /data/groups --group billing --format json --as-of 2026-03-01T00:00:00+00:00

The table is that of `kafka-consumer-groups --describe` of Kafka 4.x. LOG-END-OFFSET and LAG are those of the last sample, and
"-" without one: samples need a kafka:// source. SECONDS is the age of the next record to read, with its bounds.
"""
_SHOW = """examples:
  grouplake show --source segments:/var/lib/kafka/data | head
  grouplake show --source kafka://localhost:9092/__consumer_offsets --format classic --era 2
"""
_CHECK = """examples:
  grouplake check --tables /data/groups && echo sound
"""
_MAINTAIN = """examples:
  grouplake maintain --tables /data/groups
  grouplake maintain --tables /data/groups --conf production
"""
_COORDINATOR = """examples:
  grouplake coordinator --listen 127.0.0.1:9092 --log segments:/var/lib/grouplake
  grouplake coordinator --listen 0.0.0.0:9092 --log segments:/var/lib/grouplake --conf coordinator.toml
  curl http://127.0.0.1:9404/health

It is ready when it prints "listening on …". SIGTERM or Ctrl-C ends it after the pending requests, a second one immediately.
"""
_DEMO = """examples:
  grouplake demo
  grouplake demo --tables /tmp/demo
  grouplake demo --kafka 3.9.1
"""
_EXAMPLE = """examples:
  grouplake example /tmp/log
  grouplake run --source segments:/tmp/log --tables /tmp/groups --expiry apply --now 1795834200000
  grouplake sql --tables /tmp/groups "SELECT group_id, state, member_count FROM groups"
"""
_CACHE = """examples:
  grouplake cache
  grouplake cache --clear
  grouplake cache --clear classes

kinds: jars     of Delta, of Spark's Kafka connector and of Kafka
       ivy      dependency metadata of the jars, in Ivy's format
       classes  class data archives (CDS) of Spark's JVM
       kernels  functions compiled by Numba

Everything here is recreated when needed. Entries that a running process uses are kept.
The folder is ~/.cache/grouplake, or $GROUPLAKE_CACHE.
"""
_COMPLETION = """examples:
  source <(grouplake completion bash)
  grouplake completion zsh > ~/.zfunc/_grouplake
"""


#: Table of contents of `grouplake --help`: purpose → commands, in the order in which a new user needs them.
_CONTENTS = (
    ("try it", ("demo", "example")),
    ("write tables", ("run", "maintain")),
    ("read", ("sql", "lag", "check", "show")),
    ("serve Kafka clients", ("coordinator",)),
    ("this machine", ("cache", "completion")),
)


class _Parser(argparse.ArgumentParser):
    """Reports bad usage as one line, like every other error."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")


class _Top(_Parser):
    """The top-level parser, whose help is a table of contents."""

    def format_help(self) -> str:
        (commands_of,) = (each for each in self._actions if isinstance(each, argparse._SubParsersAction))
        summaries = {each.dest: each.help for each in commands_of._choices_actions}
        lines = ["usage: grouplake COMMAND [OPTION …]", "", f"{self.description}"]
        for title, names in _CONTENTS:
            lines += ["", f"{title}:", *(f"  {name:<12} {summaries[name]}" for name in names)]
        lines += [
            "",
            "grouplake COMMAND --help lists the options of a command, with examples. grouplake --version prints the version.",
        ]
        return "\n".join([*lines, ""])


class _Version(argparse.Action):
    """Determines the revision only when it is requested, since that may start git."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        print(version_text())
        parser.exit()


def parser() -> argparse.ArgumentParser:
    """The parser. The result of parsing has the function of the command in `command`. Bad arguments raise UsageError."""
    top = _Top(prog="grouplake", description="Kafka consumer-group state as Delta tables.")
    top.add_argument("--version", action=_Version, nargs=0, help="print version and git revision, and exit")
    subparsers = top.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=_Parser)

    run = _command(subparsers, "run", commands.run, "load a __consumer_offsets log into tables, once or continuously", _RUN)
    _source(run, "kafka://HOST:PORT[,…]/TOPIC, segments:DIR, jsonl:FILE or spark-kafka://HOST:PORT[,…]/TOPIC")
    _tables(run)
    run.add_argument("--trigger", help="available-now (default), continuous, or an interval such as 10s (1s with a coordinator)")
    run.add_argument(
        "--with-coordinator",
        nargs="?",
        const="127.0.0.1:9092",
        metavar="HOST:PORT",
        help="also run a coordinator on this address (default: 127.0.0.1:9092); it writes the log of --source segments:DIR",
    )
    run.add_argument("--era", help=f"broker generation whose rules apply: {', '.join(_ERAS)} (default 4)")
    run.add_argument("--retention-minutes", type=_positive, metavar="N", help="offsets.retention.minutes of the cluster")
    run.add_argument(
        "--expiry",
        choices=commands.EXPIRY,
        help="observe (default): only the broker expires offsets; apply: expire them in the tables",
    )
    run.add_argument("--now", type=_time_ms, metavar="MS", help="time of the sweep, ms since the epoch (default: now)")
    _conf(run)

    sql = _command(subparsers, "sql", commands.sql, "query tables and views with SQL, without Spark", _SQL)
    _tables(sql)
    sql.add_argument("query", metavar="QUERY", help="one SELECT statement")
    sql.add_argument("--format", choices=("table", "json", "csv"), default="table", help="default: table")
    sql.add_argument("--as-of", metavar="TIME|BATCH", help="state as of an ISO 8601 time or a batch id")

    lag = _command(subparsers, "lag", commands.lag, "print the lag of groups as kafka-consumer-groups does", _LAG)
    _tables(lag)
    lag.add_argument("--group", action="append", metavar="GROUP", help="group to print; repeat for several")
    lag.add_argument("--all-groups", action="store_true", help="print all groups")
    lag.add_argument("--seconds", action="store_true", help="add the age of the next record to read, with its bounds")
    lag.add_argument("--verbose", action="store_true", help="add the leader epoch of the commit")
    lag.add_argument("--format", choices=("table", "json", "csv"), default="table", help="default: table")
    lag.add_argument("--as-of", metavar="TIME|BATCH", help="lag as of an ISO 8601 time or a batch id")

    show = _command(subparsers, "show", commands.show, "print the records of a log as Kafka's formatters do", _SHOW)
    _source(show, "kafka://HOST:PORT[,…]/TOPIC, segments:DIR or jsonl:FILE")
    show.add_argument("--format", choices=("json", "classic"), default="json", help="json (4.x, default) or classic (up to 3.9)")
    show.add_argument("--era", default="4", help=f"broker generation of the classic format: {', '.join(_ERAS)} (default 4)")
    show.add_argument(
        "--position", action="store_true", help="add log partition and offset: to the JSON object, or before the classic line"
    )
    # its name in the first version
    show.add_argument("--place", dest="position", action="store_true", help=argparse.SUPPRESS)
    _conf(show)

    check = _command(
        subparsers, "check", commands.check, "check that the tables are consistent (exit code 1: they are not)", _CHECK
    )
    _tables(check)

    maintain = _command(
        subparsers, "maintain", commands.maintain, "compact tables, delete old history, remove unneeded files", _MAINTAIN
    )
    _tables(maintain)
    _conf(maintain)

    coordinator = _command(
        subparsers,
        "coordinator",
        commands.coordinator,
        "run a group coordinator for Kafka clients, with its own log",
        _COORDINATOR,
    )
    coordinator.add_argument("--listen", required=True, metavar="HOST:PORT", help="address for clients; port 0: any free port")
    coordinator.add_argument("--log", required=True, metavar="segments:DIR", help="folder of the log; created if missing")
    _conf(coordinator)

    demo = _command(subparsers, "demo", commands.demo, "run a coordinator, members, the job, and SQL queries", _DEMO)
    demo.add_argument("--tables", type=_folder, metavar="DIR", help="folder for the tables (default: a temporary folder)")
    demo.add_argument(
        "--kafka",
        nargs="?",
        const="4.1.1",
        type=_version,
        metavar="VERSION",
        help="use a private Kafka broker of this version (default 4.1.1) and real consumers",
    )

    example = _command(subparsers, "example", commands.example, "write an example log of a Kafka 4.1.1 broker", _EXAMPLE)
    example.add_argument("directory", type=_folder, metavar="DIR", help="new or empty folder")

    cache = _command(subparsers, "cache", commands.cache, "list or clear the cache of downloaded and compiled files", _CACHE)
    cache.add_argument("--clear", nargs="?", const=ALL, metavar="KIND", help="remove all entries, or those of one kind")

    completion = _command(subparsers, "completion", commands.completion, "print a completion script for a shell", _COMPLETION)
    completion.add_argument("shell", choices=("bash", "zsh", "tcsh"))
    completion.set_defaults(parser=top)
    return top


def _command(
    subparsers: "argparse._SubParsersAction[_Parser]",
    name: str,
    function: Callable[[argparse.Namespace], int],
    description: str,
    examples: str,
) -> argparse.ArgumentParser:
    formatter = argparse.RawDescriptionHelpFormatter
    command = subparsers.add_parser(name, help=description, description=description, epilog=examples, formatter_class=formatter)
    command.set_defaults(command=function)
    return command


def _source(command: argparse.ArgumentParser, forms: str) -> None:
    command.add_argument("--source", required=True, metavar="ADDRESS", help=forms)


def _tables(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--tables", required=True, type=_folder, metavar="DIR", help="folder (or object-store URI) of the tables"
    )


def _conf(command: argparse.ArgumentParser) -> None:
    command.add_argument("--conf", metavar="FILE", help="configuration file, or profile: local, kafka, production")


def _version(text: str) -> str:
    if not re.fullmatch(r"[0-9]+(\.[0-9]+){2,3}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a Kafka version such as 4.1.1")
    return text


def _folder(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("the name of the folder is empty")
    return text


def _positive(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def _time_ms(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > _LAST_MS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time in ms since the epoch, from 0 to {_LAST_MS}")
    return int(text)
