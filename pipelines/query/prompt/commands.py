"""Commands of the prompt, which begin with a backslash, as psql has them."""

from collections.abc import Callable
from dataclasses import dataclass
from io import StringIO

import pyarrow as pa

from pipelines.query.column_types import type_name
from pipelines.query.output import write_table
from pipelines.query.prompt.shell import Shell
from pipelines.runtime.errors import UsageError
from pipelines.tables.descriptions import description

#: Descriptions and comments are not shortened.
_WIDEST = 1_000
_ON_OFF = {"on": True, "off": False}


@dataclass(frozen=True)
class PromptCommand:
    """A command: usage and help as `\\?` prints them, its function, and whether it runs the statement before it."""

    usage: str
    summary: str
    run: Callable[[Shell, list[str]], None]
    most_arguments: int = 0
    runs_statement: bool = False


def run_command(shell: Shell, text: str) -> None:
    """Run a command, with its backslash.

    Raises:
        UsageError: an unknown command, or invalid arguments.
    """
    name, *arguments = text.removesuffix(";").split() or [""]
    command = COMMANDS.get(name)
    if command is None:
        raise UsageError(f"unknown command {name}: \\? lists the commands")
    if len(arguments) > command.most_arguments:
        raise UsageError(f"too many arguments: {command.usage}")
    command.run(shell, arguments)


def runs_statement(text: str) -> bool:
    """True if a command runs the statement before it, which then needs no `;`."""
    command = COMMANDS.get(text.split()[0])
    return command is not None and command.runs_statement


def _describe(shell: Shell, arguments: list[str]) -> None:
    if shell.refreshes:
        shell.source.refresh()
    if arguments:
        _expect_relation(shell, arguments[0])
        schema = shell.source.snapshot.query(f"SELECT * FROM {arguments[0]} LIMIT 0").schema
        rows = {
            "column": [field.name for field in schema],
            "type": [type_name(field.type) for field in schema],
            "nullable": ["yes" if field.nullable else "no" for field in schema],
            "comment": [(field.metadata or {}).get(b"comment", b"").decode() for field in schema],
        }
    else:
        tables, views = shell.source.snapshot.tables, shell.source.snapshot.views
        rows = {
            "name": [*tables, *views],
            "kind": ["table"] * len(tables) + ["view"] * len(views),
            "description": [description(name) for name in (*tables, *views)],
        }
    text = StringIO()
    write_table(pa.table({name: pa.array(values, pa.string()) for name, values in rows.items()}), text, _WIDEST)
    shell.print_list(text.getvalue())


def _expect_relation(shell: Shell, name: str) -> None:
    """Raise UsageError unless `name` is a table or view, perhaps of a cluster."""
    schemas = {shell.source.as_schema(cluster) for cluster in shell.source.clusters}
    schema, dot, relation = name.rpartition(".")
    if relation not in shell.source.names or (dot and schema not in schemas):
        raise UsageError(f"no table or view {name!r}: \\d lists them")


def _expand(shell: Shell, arguments: list[str]) -> None:
    shell.is_expanded = _switched(shell.is_expanded, arguments)
    shell.print(f"Expanded display is {'on' if shell.is_expanded else 'off'}.\n")


def _time(shell: Shell, arguments: list[str]) -> None:
    shell.is_timed = _switched(shell.is_timed, arguments)
    shell.print(f"Timing is {'on' if shell.is_timed else 'off'}.\n")


def _switched(now: bool, arguments: list[str]) -> bool:
    if not arguments:
        return not now
    if arguments[0] not in _ON_OFF:
        raise UsageError(f"invalid value {arguments[0]!r}: use on or off")
    return _ON_OFF[arguments[0]]


def _go(shell: Shell, _: list[str]) -> None:
    shell.run_statement(_last(shell))


def _go_expanded(shell: Shell, _: list[str]) -> None:
    shell.run_statement(_last(shell), is_expanded=True)


def _last(shell: Shell) -> str:
    if shell.last is None:
        raise UsageError("no statement has run yet")
    return shell.last


def _watch(shell: Shell, arguments: list[str]) -> None:
    """Repeat the last statement at the newest batch, with a line that names the batch, until Ctrl-C or the given count."""
    statement = _last(shell)
    seconds = _number(arguments[0], float) if arguments else 2.0
    count = _number(arguments[1], int) if len(arguments) > 1 else None
    before = shell.source.label
    done = 0
    while True:
        shell.source.refresh()
        label = shell.source.label
        batch = label if label == before else f"{before} → {label.removeprefix('batch ')}"
        rows = shell.source.snapshot.query(statement)
        shell.print(f"{shell.now():%Y-%m-%d %H:%M:%S} UTC, {batch}, every {seconds:g} s\n")
        shell.print_rows(rows, is_paged=False)
        shell.print("\n")
        before = label
        done += 1
        if done == count:
            return
        try:
            shell.sleep(seconds)
        except KeyboardInterrupt:
            return


def _number(text: str, kind: type[int] | type[float]) -> float:
    try:
        value = kind(text)
    except ValueError:
        value = 0
    if not 0 < value <= 86_400:
        raise UsageError(f"invalid number {text!r}: use \\watch SECONDS [COUNT], each above 0 and at most 86400")
    return value


def _refresh(shell: Shell, arguments: list[str]) -> None:
    if shell.source.as_of is not None:
        raise UsageError(f"the tables are open as of {shell.source.as_of}: start without --as-of for the newest batch")
    if arguments:
        shell.refreshes = _switched(shell.refreshes, arguments)
        shell.print(f"Statements read {'the newest batch' if shell.refreshes else shell.source.label}.\n")
        return
    shell.source.refresh()
    shell.print("".join(f"{line}\n" for line in shell.source.descriptions))


def _help(shell: Shell, _: list[str]) -> None:
    width = max(len(command.usage) for command in COMMANDS.values())
    lines = [f"{command.usage:<{width}}  {command.summary}" for command in COMMANDS.values()]
    shell.print_list("\n".join(["A statement ends with ;", *lines, ""]))


def _quit(shell: Shell, _: list[str]) -> None:
    shell.has_quit = True


COMMANDS: dict[str, PromptCommand] = {
    "\\d": PromptCommand("\\d [NAME]", "list tables and views, or the columns of one", _describe, 1),
    "\\x": PromptCommand("\\x [on|off]", "print one line per value instead of one per row", _expand, 1),
    "\\g": PromptCommand("\\g", "run the last statement again", _go, runs_statement=True),
    "\\gx": PromptCommand("\\gx", "the same, with one line per value", _go_expanded, runs_statement=True),
    "\\watch": PromptCommand(
        "\\watch [SECONDS [COUNT]]",
        "run the last statement every SECONDS (2), each time at the newest batch; Ctrl-C ends it",
        _watch,
        2,
        runs_statement=True,
    ),
    "\\timing": PromptCommand("\\timing [on|off]", "print the duration of each statement", _time, 1),
    "\\refresh": PromptCommand(
        "\\refresh [on|off]", "open the newest batch; on: before every statement, off: keep this one", _refresh, 1
    ),
    "\\?": PromptCommand("\\?", "list the commands", _help),
    "\\q": PromptCommand("\\q", "quit (also Ctrl-D)", _quit),
}
