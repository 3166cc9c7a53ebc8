"""Changes of offsets that batches have added since the last sample, from the files that are new in `offset_history`.

Each batch adds a file, and up to a hundred are between two compactions. A query opens all of them for the rows of the last ones.
"""

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.batch.without_records import nullable_schema
from pipelines.lag.columns import select
from pipelines.lag.tables.offset_changes import OFFSET_CHANGES, offset_changes
from pipelines.query.engine import Snapshot
from pipelines.runtime.errors import GrouplakeError
from pipelines.tables.sorted_files.sorted_files import open_file, read_columns
from pipelines.tables.table_files import files_of

_TABLE = "offset_history"
#: New files with more rows have mostly old ones: a compaction has joined them. A query leaves out such rows while it reads.
_MOST_ROWS = 500_000


class AddedChanges:
    """The changes between the last two snapshots. For one thread at a time."""

    def __init__(self) -> None:
        self._files: frozenset[str] | None = None
        #: The changes of batches after `_since`; None if they were not read.
        self._rows: pa.Table | None = None
        self._since = self._until = -1

    def refresh(self, snapshot: Snapshot) -> None:
        """Read what was added until the batch of a snapshot; nothing at the first one."""
        files = snapshot.files(_TABLE)
        self._rows = None if self._files is None else _rows_of(snapshot, sorted(files - self._files))
        self._files, self._since, self._until = files, self._until, snapshot.batch.batch_id

    def after(self, snapshot: Snapshot, batch_id: int) -> pa.Table:
        """See `ChangesAfter`; for the snapshot of the last `refresh`."""
        if self._rows is None or batch_id < self._since:
            return select(snapshot, f"SELECT * FROM ({OFFSET_CHANGES}) h WHERE batch_id > {batch_id}")
        # a compaction moves rows of earlier batches to new files
        return self._rows.filter(pc.greater(self._rows["batch_id"], batch_id))


def _rows_of(snapshot: Snapshot, names: list[str]) -> pa.Table | None:
    """The changes in some files; None if a query has to read them, which also says what is wrong with a file."""
    files, schema = files_of(snapshot.location(_TABLE)), nullable_schema(_TABLE)
    try:
        opened = [open_file(files, name) for name in names]
        if sum(file.metadata.num_rows for file in opened) > _MOST_ROWS:
            return None
        parts = [read_columns(file, schema).cast(schema) for file in opened]
    except (GrouplakeError, pa.ArrowException, OSError):
        return None
    return offset_changes(pa.concat_tables([schema.empty_table(), *parts]))
