"""Change data feeds of the tables of state, which Delta's readers follow (docs/adr/0071, docs/adr/0073)."""

from collections.abc import Iterable

from deltalake import DeltaTable

from pipelines.runtime.errors import UsageError
from pipelines.tables.delta_writes import stamped
from pipelines.tables.sorted_files.change_files import CHANGE_DATA_FEED, has_change_data_feed
from pipelines.tables.writer import TablesWriter

#: Tables that may have one: their rows change. The histories are streams as they are.
FEED_TABLES = ("groups", "members", "offsets")


def feed_tables(names: Iterable[str]) -> frozenset[str]:
    """The tables of `job.change_data_feed`.

    Raises:
        UsageError: a name is not one of FEED_TABLES.
    """
    for name in names:
        if name not in FEED_TABLES:
            raise UsageError(f"job.change_data_feed has {name!r}: use names of {', '.join(FEED_TABLES)}")
    return frozenset(names)


def enable_feed(writer: TablesWriter, name: str) -> None:
    """Enable the feed of a table in the current batch, unless it is; raises as `TablesWriter.commit` does."""
    writer.commit(name, _enable)


def _enable(table: DeltaTable, stamp: str) -> bool:
    if has_change_data_feed(table):
        return False
    table.alter.set_table_properties({CHANGE_DATA_FEED: "true"}, commit_properties=stamped(stamp))
    return True
