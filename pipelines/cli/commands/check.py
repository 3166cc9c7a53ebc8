"""`grouplake check`: print the broken rules."""

from argparse import ArgumentParser, Namespace

from pipelines.cli.command import Command
from pipelines.cli.options import add_tables

_EXAMPLES = """examples:
  grouplake check --tables /data/groups && echo sound
"""


def _add_arguments(parser: ArgumentParser) -> None:
    add_tables(parser)


def _run(options: Namespace) -> int:
    from pipelines.query.check import RULES
    from pipelines.query.check import check as find

    findings = find(options.tables)
    for found in findings:
        print(f"{found.rule}: broken {found.count} times, for example {found.example}")
    if not findings:
        print(f"{len(RULES)} rules hold")
    return 1 if findings else 0


COMMAND = Command(
    "check",
    "check that the tables are consistent (exit code 1: they are not)",
    _EXAMPLES,
    _add_arguments,
    _run,
    compiles=False,
)
