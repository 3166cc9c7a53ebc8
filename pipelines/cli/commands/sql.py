"""`grouplake sql`: print the result of a query."""

from argparse import ArgumentParser, Namespace

from pipelines.cli.command import Command
from pipelines.cli.options import add_as_of, add_format, add_tables

_EXAMPLES = """examples:
  grouplake sql --tables /data/groups "SELECT * FROM committed_offsets WHERE group_id = 'billing'"
  grouplake sql --tables /data/groups "SELECT group_id, state, member_count FROM groups" --format json
  grouplake sql --tables /data/groups "SELECT count(*) FROM offsets" --as-of 2026-03-01T00:00:00+00:00

tables: offsets pending_offsets groups members group_records offset_history group_history topic_ids quarantine \
lag group_status partition_status lag_history end_offsets brokers topic_partitions batches
views:  committed_offsets group_members assignments expiring_offsets lag_by_group lag_by_group_topic lag_by_topic
"""


def _add_arguments(parser: ArgumentParser) -> None:
    add_tables(parser)
    parser.add_argument("query", metavar="QUERY", help="one SELECT statement")
    add_format(parser)
    add_as_of(parser, "state")


def _run(options: Namespace) -> int:
    from pipelines.query.engine import Snapshot
    from pipelines.query.output import to_stdout

    to_stdout(Snapshot.open(options.tables, options.as_of).query(options.query), options.format)
    return 0


COMMAND = Command(
    "sql", "query tables and views with SQL, without Spark", _EXAMPLES, _add_arguments, _run, loads_pandas=False, compiles=False
)
