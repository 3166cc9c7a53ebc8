"""Change files: the rows that a commit inserts, changes and removes, for readers of Delta's change data feed (docs/adr/0073).

A commit with change files has all its changes in them. Without, these readers take every row of its removed files as deleted, and
every row of its added files as inserted (Delta's PROTOCOL.md, "Change Data Files").
"""

from enum import StrEnum
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from pipelines.tables.sorted_files.encodings import encodings
from pipelines.tables.table_files import TableFiles

#: Delta's property of a table with a feed.
CHANGE_DATA_FEED = "delta.enableChangeDataFeed"

_FOLDER = "_change_data"
_CHANGE_TYPE = "_change_type"


class ChangeType(StrEnum):
    """Values of `_change_type`."""

    INSERT = "insert"
    BEFORE = "update_preimage"
    AFTER = "update_postimage"
    DELETE = "delete"


def has_change_data_feed(table: DeltaTable) -> bool:
    """True if readers may ask for the changed rows of the table's commits."""
    return table.metadata().configuration.get(CHANGE_DATA_FEED, "").lower() == "true"


def of_type(change_type: ChangeType, rows: pa.Table) -> pa.Table:
    """The rows as rows of a change file."""
    return rows.append_column(_CHANGE_TYPE, pa.array([str(change_type)] * rows.num_rows, pa.string()))


def write_change_file(files: TableFiles, rows: pa.Table) -> dict[str, Any]:
    """Write rows of `of_type`, and return the `cdc` action for the commit."""
    path = f"{_FOLDER}/cdc-00000-{uuid4()}.c000.snappy.parquet"

    def write(sink: pa.NativeFile) -> None:
        pq.write_table(rows, sink, compression="snappy", store_schema=False, **encodings(rows.schema))

    size, _time_ms = files.write(path, write)
    return {"path": path, "partitionValues": {}, "size": size, "dataChange": False}
