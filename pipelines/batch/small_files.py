"""Keeps tables that only grow quick between two runs of `maintain`: every batch leaves a file in them, and every commit and every
query pays for each."""

from contextlib import suppress

from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from pipelines.tables import definitions
from pipelines.tables.writer import TablesWriter, stamped

#: Every so many batches the small files of the tables that only grow become one.
COMPACT_EVERY = 100

#: Files of this size, in bytes, stay as they are.
_TARGET_BYTES = 8 << 20


def compact_appended(writer: TablesWriter) -> dict[str, int]:
    """Compacts the tables that only grow, as part of a batch, and returns their versions (without that of `batches`)."""
    versions = {name: writer.commit(name, _compact) for name in definitions.APPENDED if name != "batches"}
    # no writer takes a version of `batches` back; one that claims the tables just now comes to light at the end of the batch
    with suppress(CommitFailedError):
        _compact(writer.expect_claim(), "")
    return versions


def _compact(table: DeltaTable, stamp: str) -> bool:
    metrics = table.optimize.compact(target_size=_TARGET_BYTES, commit_properties=stamped(stamp))
    return bool(metrics["numFilesRemoved"])
