"""Compaction of append-only tables between runs of `maintain`.

Every batch adds a file to them, and every file adds to the cost of commits and queries.
"""

from contextlib import suppress

from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from pipelines.tables import definitions
from pipelines.tables.delta_writes import compact, stamped
from pipelines.tables.writer import TablesWriter

#: Number of batches between two compactions.
COMPACT_EVERY = 100

#: Size of compacted files in bytes; files of this size are not compacted again.
_TARGET_BYTES = 8 << 20


def compact_appended(writer: TablesWriter) -> None:
    """Compact the append-only tables as part of a batch, before its rows are appended.

    So the compaction stays if the batch is interrupted, and reverting the batch removes its own files only: readers that stream
    a table see no file again (docs/adr/0068).
    """
    for name in definitions.APPENDED:
        if name != "batches":
            writer.commit(name, _compact)
    # versions of `batches` are never rolled back; the end of the batch detects a concurrent claim
    with suppress(CommitFailedError):
        _compact(writer.expect_claim(), "")


def _compact(table: DeltaTable, stamp: str) -> bool:
    removed, _ = compact(table, _TARGET_BYTES, stamped(stamp))
    return removed > 0
