"""Writes of delta-rs to one table: appends, replacements, deletions, compactions, checkpoints."""

from typing import Literal

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, WriterProperties, write_deltalake

from pipelines.tables.panic_reports import noted_panics

#: Commits without checkpoints and log cleanup, which are left to `checkpoint_when_due` and `maintain`: in delta-rs they list
#: the whole log each time.
WITHOUT_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)

_CHECKPOINT_EVERY = 100


def stamped(stamp: str) -> CommitProperties:
    """Properties of a commit that succeeds only as the next version of its table, with the stamp in its history."""
    return CommitProperties(custom_metadata={"userMetadata": stamp}, max_commit_retries=0)


def checkpoint_when_due(table: DeltaTable) -> None:
    """Write a checkpoint at every hundredth version, as delta-rs does."""
    if table.version() % _CHECKPOINT_EVERY == 0:
        table.create_checkpoint()


def write_rows(table: DeltaTable, rows: pa.Table, mode: Literal["append", "overwrite"], properties: CommitProperties) -> None:
    """Append the rows, or replace all rows of the table by them."""
    with noted_panics(table.table_uri):
        write_deltalake(table, rows, mode=mode, commit_properties=properties, post_commithook_properties=WITHOUT_HOOKS)


def write_many_rows(
    table: DeltaTable,
    rows: pa.RecordBatchReader,
    mode: Literal["append", "overwrite"],
    properties: CommitProperties,
    file_bytes: int | None = None,
) -> None:
    """Write rows that need not fit in memory, into files of about `file_bytes` that are compressed more than those of a batch.

    delta-rs pulls the rows in a thread of its runtime, in which no query can run.
    """
    with noted_panics(table.table_uri):
        write_deltalake(
            table,
            rows,
            mode=mode,
            target_file_size=file_bytes,
            writer_properties=WriterProperties(compression="ZSTD"),
            commit_properties=properties,
            post_commithook_properties=WITHOUT_HOOKS,
        )


def delete_rows(table: DeltaTable, predicate: str, properties: CommitProperties | None = None) -> int:
    """Delete the rows for which the predicate is true. Returns the number of files removed."""
    with noted_panics(table.table_uri):
        return int(table.delete(predicate, commit_properties=properties)["num_removed_files"])


def compact(table: DeltaTable, target_bytes: int | None = None, properties: CommitProperties | None = None) -> tuple[int, int]:
    """Join files smaller than `target_bytes`. Returns the number of files removed and added."""
    with noted_panics(table.table_uri):
        metrics = table.optimize.compact(target_size=target_bytes, commit_properties=properties)
    return int(metrics["numFilesRemoved"]), int(metrics["numFilesAdded"])
