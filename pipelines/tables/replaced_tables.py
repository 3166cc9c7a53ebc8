"""Tables that `grouplake rebuild` has replaced: a log that no reader accepts takes the place of their own.

Readers that open a table by its path do not know the pointer. A path that still had the old rows would give them the past
without an error, and a version of the new table would be another state of the old one. So the log of a replaced table is moved
into a folder beside it, and entries take its place whose protocol requires a reader feature that no reader has. Every reader of
Delta must refuse such a table. Its error has the name of the feature, which has that of the new folder (docs/adr/0060).
"""

import json
import re
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from pipelines.runtime.errors import TablesError
from pipelines.runtime.failpoints import failpoint
from pipelines.runtime.progress import print_progress
from pipelines.runtime.timestamps import now_ms
from pipelines.tables import definitions
from pipelines.tables.folder_files import FolderFiles
from pipelines.tables.pointer import POINTER, REBUILT, are_old_tables_blocked, pointed_folder, write_pointer

T = TypeVar("T")

_LOG = "_delta_log"

#: The log of a replaced table; engines ignore folders of a table whose names begin with "_".
OLD_LOG = "_delta_log_before_rebuild"

_FEATURE = "grouplake-rebuilt-see-"
_NAMED_FEATURE = re.compile(rf'"{_FEATURE}([A-Za-z0-9_-]{{1,40}})"'.encode())

#: The target in the name of a feature if the present tables are in the folder itself, above that of the replaced ones.
_PARENT = "parent-folder"

#: Entries of a log that blocks a table. Readers look for the version that is asked for before they look at the protocol: with
#: more than one entry the first versions of the new table name the reason too, and open handles notice that the log is another.
_ENTRIES = 10

_ENTRY = re.compile(r"[0-9]{20}\.json")

#: Requests to an object store at the same time.
_THREADS = 16


def replaced_by(uri: str) -> str | None:
    """The folder that a log blocking the table at `uri` names, such as `_rebuilt-1`; None for a table that is not blocked."""
    try:
        found = _NAMED_FEATURE.search(FolderFiles(uri).read(_entry(_LOG, 0)) or b"")
    except TablesError:
        return None
    return found[1].decode() if found else None


def describe_replaced_table(uri: str) -> str | None:
    """One line about the table at `uri` if a rebuild has replaced it, with the place of the present tables."""
    target = replaced_by(uri)
    if target is None:
        return None
    root, _, name = uri.rstrip("/").rpartition("/")
    above, _, last = root.rpartition("/")
    folder = above if REBUILT.fullmatch(last) else root
    present = folder if target == _PARENT else f"{folder}/{target}"
    remedy = f"use --tables {folder}"
    if folder == root and pointed_folder(FolderFiles(root)) is None:
        remedy = f'restore {folder}/{POINTER}, {{"folder": "{target}"}}'
    return f"table {name} under {root} was replaced by `grouplake rebuild`, by the one in {present}: {remedy}"


def finish_blocking(root: str) -> None:
    """Block the tables that a rebuild of an earlier version, or an interrupted one, has left. An error is only printed.

    A job that may not delete objects must not stop for it.
    """
    try:
        block_replaced(FolderFiles(root))
    except TablesError as error:
        print_progress(f"readers by path can still open the tables that a rebuild has replaced: {error}")


def block_replaced(files: FolderFiles) -> None:
    """Block the tables that earlier rebuilds of a folder have replaced, if that is not done yet. For the writer of the folder.

    Raises:
        TablesError: a log cannot be moved. A repetition continues.
    """
    present = pointed_folder(files)
    if present is None or are_old_tables_blocked(files):
        return
    for folder in replaced_folders(present):
        block_tables(files, folder, present)
    write_pointer(files, present, are_old_blocked=True)
    failpoint("old_tables_blocked")


def replaced_folders(present: str) -> list[str]:
    """The folders that rebuilds have replaced by the folder `present`, oldest first, relative to that of the pointer.

    The first one is that folder itself, and empty.
    """
    found = REBUILT.fullmatch(present)
    assert found is not None, "a pointer names a folder of a rebuild"
    return ["", *(f"_rebuilt-{number}" for number in range(1, int(found[1])))]


def block_tables(files: FolderFiles, folder: str, present: str) -> None:
    """Block the tables of a folder, which those in `present` have replaced; empty names stand for the folder of the pointer.

    Raises as `block_replaced` does.
    """
    for name in definitions.WRITE_ORDER:
        _block(files, _within(folder, name), present or _PARENT)
        failpoint(f"blocked:{name}")


def unblock_tables(files: FolderFiles, folder: str) -> None:
    """Give the tables of a folder their own logs again. Raises TablesError as `block_replaced` does.

    Newest entries first: a part of a log that ended early would be an earlier state of its table.
    """
    for name in definitions.WRITE_ORDER:
        table = _within(folder, name)
        for path in files.sizes(f"{table}/{_LOG}"):
            if _is_blocking(files, path):
                files.remove(path)
        entries, others = _split(files.sizes(f"{table}/{OLD_LOG}"))
        entries.reverse()
        for paths in (entries[:-1], entries[-1:], others):
            _move(files, paths, f"{table}/{_LOG}")
        files.remove_empty(f"{table}/{OLD_LOG}")
        failpoint(f"unblocked:{name}")


def has_old_tables(files: FolderFiles, folder: str) -> bool:
    """Whether a folder still has replaced tables: `grouplake rebuild --delete-old` removes them."""
    table = _within(folder, "batches")
    return any(_own_log(files, table)) or bool(files.sizes(f"{table}/{OLD_LOG}"))


def _block(files: FolderFiles, table: str, target: str) -> None:
    """Move the log of a table aside and write the entries that block it.

    Checkpoints are moved first, then the oldest entry: without them no version can be opened, and until then the newest one has
    the rows that it had.
    """
    entries, others = _split(_own_log(files, table))
    for paths in (others, entries[:1], entries[1:]):
        _move(files, paths, f"{table}/{OLD_LOG}")
    failpoint(f"moved:{_name(table)}")
    if files.sizes(f"{table}/{OLD_LOG}"):
        content = _blocking_entry(target)
        _each(files, [_entry(f"{table}/{_LOG}", number) for number in range(_ENTRIES)], lambda path: files.write(path, content))


def _move(files: FolderFiles, paths: list[str], into: str) -> None:
    _each(files, paths, lambda path: files.move(path, f"{into}/{_name(path)}"))


def _own_log(files: FolderFiles, table: str) -> list[str]:
    """The files of the log of a table that do not block it."""
    found = list(files.sizes(f"{table}/{_LOG}"))
    blocking = _each(files, found, lambda path: _is_blocking(files, path))
    return [path for path, is_blocking in zip(found, blocking, strict=True) if not is_blocking]


def _is_blocking(files: FolderFiles, path: str) -> bool:
    name = _name(path)
    if not _ENTRY.fullmatch(name) or int(name[:20]) >= _ENTRIES:
        return False
    try:
        # an entry of a table may be larger than what `read` accepts
        return _NAMED_FEATURE.search(next(files.chunks(path), b"")) is not None
    except FileNotFoundError:
        # another writer of an object store has moved it
        return False


def _split(paths: Iterable[str]) -> tuple[list[str], list[str]]:
    """Entries of a log in order, and its other files: checkpoints, checksums, hints."""
    found = sorted(paths)
    entries = [path for path in found if _ENTRY.fullmatch(_name(path))]
    return entries, [path for path in found if not _ENTRY.fullmatch(_name(path))]


def _each(files: FolderFiles, paths: list[str], action: Callable[[str], T]) -> list[T]:
    if files.is_local or len(paths) < 2:
        return [action(path) for path in paths]
    with ThreadPoolExecutor(_THREADS) as threads:
        return list(threads.map(action, paths))


def _blocking_entry(target: str) -> bytes:
    feature = f"{_FEATURE}{target}"
    place = "the folder above" if target == _PARENT else target
    reason = (
        f"`grouplake rebuild` has replaced this table by the one in {place}. See `grouplake catalog`, and _tables.json in the "
        f"folder that --tables names. The old log is in {OLD_LOG}."
    )
    # a table without columns is refused for that reason, before its features are looked at
    column = {"name": "reason", "type": "string", "nullable": True, "metadata": {"comment": reason}}
    actions: list[dict[str, object]] = [
        {"commitInfo": {"timestamp": now_ms(), "operation": "REBUILD", "operationParameters": {}, "userMetadata": reason}},
        {
            "protocol": {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": [feature],
                "writerFeatures": [feature],
            }
        },
        {
            "metaData": {
                "id": "00000000-0000-0000-0000-000000000000",
                "description": reason,
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": [column]}),
                "partitionColumns": [],
                "createdTime": now_ms(),
                "configuration": {},
            }
        },
    ]
    return "".join(f"{json.dumps(action, separators=(',', ':'))}\n" for action in actions).encode()


def _within(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _entry(log: str, version: int) -> str:
    return f"{log}/{version:020}.json"


def _name(path: str) -> str:
    return path.rpartition("/")[2]
