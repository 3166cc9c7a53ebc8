"""`grouplake rebuild`: writes the tables anew into a folder of their own, checks them, and switches the pointer.

The old tables are kept for a return, but no reader opens them (docs/adr/0060).
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from pipelines.batch.without_records import finish_batch
from pipelines.query.check import check
from pipelines.runtime.errors import TablesError, UsageError
from pipelines.runtime.failpoints import failpoint
from pipelines.runtime.phases import Phases
from pipelines.runtime.progress import Progress
from pipelines.tables import definitions, stream_checkpoints
from pipelines.tables.folder_files import FolderFiles
from pipelines.tables.pointer import REBUILT, pointed_folder, remove_pointer, write_pointer
from pipelines.tables.replaced_tables import (
    block_replaced,
    block_tables,
    finish_blocking,
    has_old_tables,
    replaced_folders,
    unblock_tables,
)
from pipelines.tables.store import Batch, TableStore
from pipelines.tables.writer import TablesWriter
from pipelines.tables.writer_lock import writer_lock
from pipelines.upkeep.rebuild.copies import copy_rows, copy_table

#: Tables of state that a log of offsets gives in full, even when it is compacted. Topic ids are also learned elsewhere.
FROM_LOG = tuple(name for name in definitions.KEYS if name not in ("topic_ids", *definitions.FROM_TRANSACTIONS))

#: The table of state that a log of transactions gives in full.
FROM_TRANSACTION_LOG = "transactions"

#: Loads the state at the log position of a batch from the log, into tables below a folder, which may name topic ids.
LoadState = Callable[[str, Batch, TableStore], TableStore]


@dataclass(frozen=True)
class Rebuilt:
    """The result: the folder that the pointer names, the batch that the new tables begin with, and their rows."""

    folder: str
    batch: Batch
    rows: int


def rebuild(root: str, load_state: LoadState | None, progress: Progress) -> Rebuilt:
    """Write all tables anew, in the present layout, switch the pointer to them, and block the old ones for readers by path.

    Args:
        load_state: reads the tables of state from the log; None: they are copied from the old tables, like the histories.

    Raises:
        UsageError: there are no tables, or no batch yet.
        AnotherWriter: a job is writing the tables.
        TablesError: the old tables or the log cannot be read, or the new tables are not consistent. The pointer is unchanged.
    """
    files = FolderFiles(root)
    TableStore(root, any_layout=True).table("batches")
    with writer_lock(root, "grouplake rebuild"):
        old = TableStore(root, any_layout=True)
        generation, last, _ = TablesWriter.fence(old, any_layout=True)
        if last is None:
            raise UsageError(f"the tables under {old.root} have no complete batch yet: remove the folder and run again")
        name = _next_name(files)
        _remove(files, name)
        new_root = f"{files.root}/{name}"
        state = None if load_state is None else load_state(f"{new_root}/_state", last, old)
        new = TableStore(new_root)
        batch, rows = _written(old, last, generation, state, new, progress)
        _remove(files, f"{name}/_state")
        findings = check(new_root)
        if findings:
            raise TablesError(
                f"the new tables under {new_root} are not consistent ({findings[0].rule}); the old ones remain in use: "
                "see `grouplake check`"
            )
        failpoint("rebuilt")
        write_pointer(files, name)
        failpoint("pointed")
        finish_blocking(root)
    progress(f"batch {batch.batch_id}: tables rebuilt in {new_root}, {rows:,} rows; the old ones remain in {old.root}")
    progress(
        f"readers by path cannot open the old tables any more: point them to {new_root}, and enter the new tables into "
        "catalogs with the script of `grouplake catalog --replace`"
    )
    return Rebuilt(new_root, batch, rows)


def return_to_old(root: str, progress: Progress) -> str:
    """Use the tables before the last rebuild again, and block those that it wrote. Returns the folder of the present tables.

    Raises:
        UsageError: the tables were not rebuilt, or the old ones were deleted.
        AnotherWriter: a job is writing the tables.
        TablesError: a log cannot be moved. A repetition continues.
    """
    files = FolderFiles(root)
    with writer_lock(root, "grouplake rebuild"):
        present = pointed_folder(files)
        if present is None:
            raise UsageError(f"the tables under {root} were not rebuilt: nothing to return to")
        old = next((folder for folder in reversed(replaced_folders(present)) if has_old_tables(files, folder)), None)
        if old is None:
            raise UsageError(f"the tables that were replaced by {files.root}/{present} were deleted: restore a backup")
        # no job continues with the present tables; an interrupted command is finished by a repetition, or undone by the next job
        TablesWriter.fence(TableStore(root, any_layout=True), any_layout=True)
        write_pointer(files, present)
        unblock_tables(files, old)
        failpoint("unblocked")
        if old:
            write_pointer(files, old)
        else:
            remove_pointer(files)
        block_tables(files, present, old)
        if old:
            block_replaced(files)
    folder = f"{files.root}/{old}" if old else files.root
    progress(f"the tables in {folder} are in use again; those in {files.root}/{present} are blocked")
    return folder


def delete_old(root: str, progress: Progress) -> None:
    """Delete the tables that a rebuild has replaced.

    Raises:
        UsageError: the tables were not rebuilt.
        AnotherWriter: a job is writing the tables.
    """
    files = FolderFiles(root)
    present = pointed_folder(files)
    if present is None:
        raise UsageError(f"the tables under {root} were not rebuilt: nothing to delete")
    with writer_lock(root, "grouplake rebuild"):
        replaced = {path.partition("/")[0] for path in files.sizes()} - {present}
        known = {*definitions.WRITE_ORDER, stream_checkpoints.FOLDER}
        for folder in sorted(replaced & known) + sorted(filter(REBUILT.fullmatch, replaced)):
            removed = _remove(files, folder)
            progress(f"{files.root}/{folder}: {removed} files removed")


def _written(
    old: TableStore, last: Batch, generation: int, state: TableStore | None, new: TableStore, progress: Progress
) -> tuple[Batch, int]:
    """Write all tables and the row of their batch, which follows the batches of the old tables."""
    new.create()
    phases = Phases(datetime.now(UTC))
    copy_rows(old, last, generation, new)
    writer = TablesWriter.claim(new)
    assert writer.last is not None, "the batches are copied first"
    batch_id, total = writer.begin(), 0
    loaded = None if state is None else state.last_batch()
    from_log = {} if loaded is None else {name: loaded.versions[name] for name in FROM_LOG}
    if loaded is not None and loaded.transaction_offsets is not None:
        from_log[FROM_TRANSACTION_LOG] = loaded.versions[FROM_TRANSACTION_LOG]
    for name in definitions.WRITE_ORDER[:-1]:
        source, version = old, last.versions.get(name)
        if state is not None and name in (*FROM_LOG, *from_log):
            source, version = state, from_log.get(name)
        if version is None:
            continue
        with phases.timed(f"write_{name}"):
            rows = copy_table(source, name, version, writer, batch_id if source is state else None)
        progress(f"{name}: {rows:,} rows from the {'log' if source is state else 'old tables'}")
        failpoint(f"rebuilt:{name}")
        total += rows
    return finish_batch(writer, last, phases, datetime.now(UTC)), total


def _next_name(files: FolderFiles) -> str:
    present = pointed_folder(files)
    number = int(re.sub(r"\D", "", present)) if present else 0
    return f"_rebuilt-{number + 1}"


def _remove(files: FolderFiles, folder: str) -> int:
    """Remove all files below a folder: those of an interrupted rebuild, or those that are not needed any more."""
    found = files.sizes(folder)
    for path in found:
        files.remove(path)
    files.remove_empty(folder)
    return len(found)
