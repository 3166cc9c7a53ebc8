"""`grouplake sql`: print the result of a query, run a file of statements, or read them at a prompt."""

import os
import sys
from argparse import ArgumentParser, Namespace
from importlib.util import find_spec
from typing import TYPE_CHECKING

from pipelines.cli.command import Command
from pipelines.cli.options import add_as_of, add_clusters, add_format
from pipelines.runtime.errors import UsageError

if TYPE_CHECKING:
    from pipelines.query.prompt.shell import Shell

_EXAMPLES = """examples:
  grouplake sql --tables /data/groups
  grouplake sql --tables /data/groups "SELECT * FROM committed_offsets WHERE group_id = 'billing'"
  grouplake sql --tables /data/groups "SELECT group_id, state, member_count FROM groups" --format json
  grouplake sql --tables /data/groups "SELECT count(*) FROM offsets" --as-of 2026-03-01T00:00:00+00:00
  grouplake sql --tables /data/groups --file morning.sql
  grouplake sql --tables /data/groups "SELECT * FROM offset_history" --output history.parquet
  grouplake sql --tables east=/data/east --tables west=/data/west \\
    "SELECT cluster, count(*) FROM groups GROUP BY cluster"

Without QUERY and --file, a terminal has a prompt (\\? lists its commands), and other input is read as statements.

tables: offsets pending_offsets groups members group_records offset_history group_history membership_history \
ownership_history topic_ids quarantine lag group_status partition_status lag_history end_offsets share_offsets \
brokers topic_partitions transactions transaction_history batches alerts alert_history
views:  committed_offsets group_members assignments expiring_offsets lag_by_group lag_by_group_topic lag_by_topic \
ownership rebalances resets consumption_edges unused_groups hanging_transactions transactional_groups
"""


def _add_arguments(parser: ArgumentParser) -> None:
    add_clusters(parser)
    parser.add_argument("query", nargs="?", metavar="QUERY", help="one SELECT statement")
    parser.add_argument("--file", metavar="FILE", help="file of statements that end with ';'; - for standard input")
    parser.add_argument("--output", metavar="FILE", help="write the rows to FILE.parquet, .csv or .json instead of printing them")
    add_format(parser)
    add_as_of(parser, "state")


def _run(options: Namespace) -> int:
    from pipelines.query.clusters import queried_roots
    from pipelines.query.prompt.script_run import read_script, run_script, write_result
    from pipelines.query.prompt.shell import Shell
    from pipelines.query.prompt.source import SnapshotSource
    from pipelines.query.result_file import expect_suffix

    if options.query is not None and options.file is not None:
        raise UsageError("both QUERY and --file: use one of them")
    if options.output is not None:
        expect_suffix(options.output)
    source = SnapshotSource(queried_roots(options.tables), options.as_of)
    is_text = options.query is not None or options.file is not None or options.output is not None
    if not is_text and sys.stdin.isatty() and sys.stdout.isatty():
        run_prompt(Shell(source, options.format, sys.stdout, is_paged=True, refreshes=options.as_of is None))
        return 0
    shell = Shell(source, options.format, sys.stdout)
    shell.report_age()
    path = options.file or "-"
    text = read_script(path) if options.query is None else options.query
    if options.output is not None:
        write_result(shell, text, options.output)
    elif options.query is not None:
        shell.run_statement(text)
    else:
        run_script(shell, text, "standard input" if path == "-" else path)
    return 0


def run_prompt(shell: "Shell") -> None:
    """Print the banner, and run the prompt on the terminal of this process."""
    from pipelines.query.prompt.history import history_file
    from pipelines.query.prompt.loop import run_plain
    from pipelines.runtime.version import version_text

    print(f"{version_text()}. Statements end with ;  \\? lists the commands, \\q quits.")
    print("\n".join(shell.source.descriptions))
    shell.report_age()
    if find_spec("prompt_toolkit") is None:
        print("No completion, because prompt-toolkit is not installed: pip install 'grouplake[prompt]'")
        run_plain(shell)
        return
    from pipelines.query.prompt.terminal import run_on_terminal

    history = history_file(os.environ)
    if history is None:
        print("No history: the user's state folder cannot be written.")
    run_on_terminal(shell, history)


COMMAND = Command(
    "sql",
    "query tables and views with SQL, without Spark, or at a prompt",
    _EXAMPLES,
    _add_arguments,
    _run,
    compiles=False,
    writes=("output",),
)
