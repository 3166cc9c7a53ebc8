"""What the command line accepts."""

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

tables: offsets pending_offsets groups members group_records offset_history group_history topic_ids quarantine batches
views:  committed_offsets group_members assignments expiring_offsets
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

It is ready when it prints "listening on …". SIGTERM and Ctrl-C end it after what is under way, a second one at once.
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
       ivy      descriptions of the jars' dependencies, as Ivy keeps them
       classes  archives of the classes that Spark's JVM loads
       kernels  functions that Numba has compiled

All of it can be made again. What a running process uses is kept. The folder is ~/.cache/grouplake, or $GROUPLAKE_CACHE.
"""
_COMPLETION = """examples:
  source <(grouplake completion bash)
  grouplake completion zsh > ~/.zfunc/_grouplake
"""


#: `grouplake --help`: the commands by what they are for, in the order in which a user meets them.
_CONTENTS = (
    ("try it", ("demo", "example")),
    ("keep tables", ("run", "maintain")),
    ("read", ("sql", "check", "show")),
    ("serve Kafka clients", ("coordinator",)),
    ("this machine", ("cache", "completion")),
)


class _Parser(argparse.ArgumentParser):
    """Bad usage is one line, as every other error is."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")


class _Top(_Parser):
    """Its help is a table of contents."""

    def format_help(self) -> str:
        (commands_of,) = (each for each in self._actions if isinstance(each, argparse._SubParsersAction))
        summaries = {each.dest: each.help for each in commands_of._choices_actions}
        lines = ["usage: grouplake COMMAND [OPTION …]", "", f"{self.description}"]
        for title, names in _CONTENTS:
            lines += ["", f"{title}:", *(f"  {name:<12} {summaries[name]}" for name in names)]
        lines += [
            "",
            "grouplake COMMAND --help has the options of a command, and examples. grouplake --version prints the version.",
        ]
        return "\n".join([*lines, ""])


class _Version(argparse.Action):
    """Looks for the revision when it is requested, not whenever there is a parser."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        print(version_text())
        parser.exit()


def parser() -> argparse.ArgumentParser:
    """The parser; every command leaves its function in `command`. Parsing raises UsageError for what it does not accept."""
    top = _Top(prog="grouplake", description="Kafka consumer-group state as Delta tables.")
    top.add_argument("--version", action=_Version, nargs=0, help="print version and git revision, and exit")
    subparsers = top.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=_Parser)

    run = _command(subparsers, "run", commands.run, "follow a __consumer_offsets log into tables", _RUN)
    _source(run, "kafka://HOST:PORT[,…]/TOPIC, segments:DIR, jsonl:FILE or spark-kafka://HOST:PORT[,…]/TOPIC")
    _tables(run)
    run.add_argument("--trigger", help="available-now (default), continuous, or an interval such as 10s (1s with a coordinator)")
    run.add_argument(
        "--with-coordinator",
        nargs="?",
        const="127.0.0.1:9092",
        metavar="HOST:PORT",
        help="serve clients there (default: 127.0.0.1:9092), and write the log that is followed, segments:DIR",
    )
    run.add_argument("--era", help=f"coordinator generation whose rules apply: {', '.join(_ERAS)} (default 4)")
    run.add_argument("--retention-minutes", type=_positive, metavar="N", help="offsets.retention.minutes of the cluster")
    run.add_argument("--expiry", choices=commands.EXPIRY, help="observe (default): follow the broker; apply: sweep ourselves")
    run.add_argument("--now", type=_time_ms, metavar="MS", help="time of the sweep, ms since the epoch (default: now)")
    _conf(run)

    sql = _command(subparsers, "sql", commands.sql, "query tables and views with SQL, without Spark", _SQL)
    _tables(sql)
    sql.add_argument("query", metavar="QUERY", help="one SELECT statement")
    sql.add_argument("--format", choices=("table", "json", "csv"), default="table", help="default: table")
    sql.add_argument("--as-of", metavar="TIME|BATCH", help="state as of an ISO 8601 time or a batch id")

    show = _command(subparsers, "show", commands.show, "print the records of a log as Kafka's formatters do", _SHOW)
    _source(show, "kafka://HOST:PORT[,…]/TOPIC, segments:DIR or jsonl:FILE")
    show.add_argument("--format", choices=("json", "classic"), default="json", help="json (4.x, default) or classic (up to 3.9)")
    show.add_argument("--era", default="4", help=f"which generation's classic lines: {', '.join(_ERAS)} (default 4)")
    show.add_argument(
        "--place", action="store_true", help="add log partition and offset: to the JSON object, or in front of the classic line"
    )
    _conf(show)

    check = _command(
        subparsers, "check", commands.check, "test that the tables agree with each other (exit code 1: they do not)", _CHECK
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
        "run a group coordinator for Kafka clients, with a log of its own",
        _COORDINATOR,
    )
    coordinator.add_argument("--listen", required=True, metavar="HOST:PORT", help="where clients connect; port 0: any")
    coordinator.add_argument("--log", required=True, metavar="segments:DIR", help="folder of the log; made if it is not there")
    _conf(coordinator)

    demo = _command(subparsers, "demo", commands.demo, "run a coordinator, members, the job, and SQL over its tables", _DEMO)
    demo.add_argument("--tables", type=_folder, metavar="DIR", help="keep the tables there (default: a temporary folder)")
    demo.add_argument(
        "--kafka",
        nargs="?",
        const="4.1.1",
        type=_version,
        metavar="VERSION",
        help="with a private Kafka of this version (default 4.1.1) and real consumers instead",
    )

    example = _command(subparsers, "example", commands.example, "write an example log of a Kafka 4.1.1 broker", _EXAMPLE)
    example.add_argument("directory", type=_folder, metavar="DIR", help="new or empty folder")

    cache = _command(subparsers, "cache", commands.cache, "list what was downloaded and compiled, or remove it", _CACHE)
    cache.add_argument("--clear", nargs="?", const=ALL, metavar="KIND", help="remove what is listed, or one kind of it")

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
        raise argparse.ArgumentTypeError(f"{text!r} is not a time in ms since the epoch")
    return int(text)
