"""Parser of all commands: options and help texts."""

import argparse
from typing import NoReturn

from pipelines.cli.command import Command
from pipelines.cli.commands import (
    alerts,
    backup,
    cache,
    catalog,
    check,
    completion,
    coordinator,
    credential,
    dashboard,
    demo,
    diff,
    doctor,
    example,
    lag,
    maintain,
    mcp,
    rebuild,
    restore,
    run,
    show,
    sql,
    start,
)
from pipelines.runtime.errors import UsageError
from pipelines.runtime.version import version_text

#: Table of contents of `grouplake --help`: purpose → commands, in the order in which a new user needs them.
CONTENTS: tuple[tuple[str, tuple[Command, ...]], ...] = (
    ("try it", (demo.COMMAND, example.COMMAND)),
    ("follow a cluster", (start.COMMAND,)),
    ("write tables", (run.COMMAND, maintain.COMMAND)),
    ("back up and upgrade tables", (backup.COMMAND, restore.COMMAND, rebuild.COMMAND)),
    ("read", (sql.COMMAND, lag.COMMAND, diff.COMMAND, check.COMMAND, catalog.COMMAND, show.COMMAND)),
    ("watch", (dashboard.COMMAND, mcp.COMMAND, credential.COMMAND, alerts.COMMAND)),
    ("serve Kafka clients", (coordinator.COMMAND,)),
    ("this machine", (doctor.COMMAND, cache.COMMAND, completion.COMMAND)),
)


class _Parser(argparse.ArgumentParser):
    """Reports bad usage as one line, like every other error."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")


class _Top(_Parser):
    """The top-level parser, whose help is a table of contents."""

    def format_help(self) -> str:
        lines = ["usage: grouplake COMMAND [OPTION …]", "", f"{self.description}"]
        for title, commands in CONTENTS:
            lines += ["", f"{title}:", *(f"  {command.name:<12} {command.summary}" for command in commands)]
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
    """The parser. The result of parsing has the `Command` in `command`. Bad arguments raise UsageError."""
    top = _Top(prog="grouplake", description="Kafka consumer-group state as Delta tables.")
    top.add_argument("--version", action=_Version, nargs=0, help="print version and git revision, and exit")
    subparsers = top.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=_Parser)
    for _, commands in CONTENTS:
        for command in commands:
            each = subparsers.add_parser(
                command.name,
                help=command.summary,
                description=command.summary,
                epilog=command.examples,
                formatter_class=argparse.RawDescriptionHelpFormatter,
            )
            command.add_arguments(each)
            # `completion` prints the completions of the whole parser
            each.set_defaults(command=command, parser=top)
    return top
