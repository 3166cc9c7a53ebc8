"""Tables from elsewhere: whatever their Delta logs name, nothing outside of a table's own folder is read.

A Delta log may name its files by any URI, absolute or with `..`, encoded or not, and keep deletion vectors and parts of its
checkpoints anywhere (`storageType` p, sidecars of v2 checkpoints); delta-rs follows all of them, and symbolic links. Tables that
Grouplake writes have none of this, so what does is refused before a byte of it is read. Told apart by what they use, not by where
that leads: there is no other way to resolve an address than the way of the library that will open it.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from pipelines.errors import TablesError, UsageError
from pipelines.tables.place import local_folder

#: Names of our data files. No separator, no escape, no scheme: such a name is a file in the folder however it is resolved.
_DATA_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")

#: What a reader takes from the log begins with a version. Other forms are v2 and multi-part checkpoints and compacted commits.
_LOG_FILE = re.compile(r"([0-9]{20})\.(?:(json|crc)|(checkpoint\.parquet))")

#: What a kill leaves of a file that was being put into a log of a local folder; no reader lists it.
_NEVER_PUT = re.compile(r".*#[0-9]+")

#: Keys in a log that name further files, lower case.
_FURTHER_FILES = ("deletionvector", "sidecar")
_SUSPICIOUS = (*(f'"{key}"'.encode() for key in _FURTHER_FILES), b"\\u")

_ANY_VERSION = 10**20


def expect_own_log(uri: str, version: int | None) -> None:
    """Raises UsageError unless the log of the table at `uri`, as far as `version` needs it, names no file but data files.

    What an object store holds is not looked at here: readers of its log stay in the store. Raises TablesError where the log has
    no such version; delta-rs would count up to it, however far.
    """
    folder = local_folder(uri)
    if folder is None or not folder.exists():
        return
    try:
        for place in (folder, folder / "_delta_log"):
            if place.is_symlink():
                raise _foreign(place, "it is a symbolic link")
            _expect_no_links(place)
        _expect_plain_log(folder / "_delta_log", _ANY_VERSION if version is None else version)
    except FileNotFoundError:
        # no table here, or one that is being vacuumed: whoever opens it will say so
        return
    except OSError as error:
        raise UsageError(f"cannot read {error.filename or folder}: {error.strerror}") from error


def expect_own_files(uri: str, table: DeltaTable) -> None:
    """Raises UsageError unless every data file of the table opened at `uri` lies in it, and no reader feature is needed."""
    if table.protocol().min_reader_version != 1:
        raise _foreign(uri, f"it needs a reader of protocol {table.protocol().min_reader_version}")
    for path in pa.table(table.get_add_actions())["path"].to_pylist():
        if not _DATA_FILE.fullmatch(path):
            raise _foreign(uri, f"it names the file {path!r}")


def _foreign(where: Path | str, what: str) -> UsageError:
    return UsageError(f"{where}: {what}, which no table of Grouplake's does; it was not read")


def _expect_no_links(folder: Path) -> None:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_symlink() or not (entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)):
                raise _foreign(entry.path, "it is no regular file")


def _expect_plain_log(log: Path, version: int) -> None:
    names = [name for name in os.listdir(log) if name[:1].isdigit() and not _NEVER_PUT.fullmatch(name)]
    found = [(match, name) for name in names for match in (_LOG_FILE.fullmatch(name),)]
    for match, name in found:
        if match is None:
            raise _foreign(log / name, "it is of a form for checkpoints in parts and compacted logs")
    numbered = [(int(match[1]), bool(match[3]), name) for match, name in found if match]
    newest = max((number for number, _, _ in numbered), default=-1)
    if numbered and not (version == _ANY_VERSION or 0 <= version <= newest):
        raise TablesError(f"{log.parent} has no version {version}, only up to {newest}")
    first = max((number for number, is_checkpoint, _ in numbered if is_checkpoint and number <= version), default=-1)
    # A reader may begin with an older checkpoint than the newest when it is told to.
    first = min([first, *_last_checkpoint(log)])
    for number, is_checkpoint, name in numbered:
        if first <= number <= version:
            (_expect_plain_checkpoint if is_checkpoint else _expect_plain_commit)(log / name)


def _last_checkpoint(log: Path) -> list[int]:
    """Versions that the hint of the newest checkpoint names: one, unless somebody plays with its form."""
    try:
        pairs = json.loads((log / "_last_checkpoint").read_bytes(), object_pairs_hook=list)
    except (FileNotFoundError, ValueError, RecursionError):
        return []
    return [value for key, value in pairs if key == "version" and isinstance(value, int)] if isinstance(pairs, list) else []


def _expect_plain_commit(path: Path) -> None:
    data = path.read_bytes()
    lowered = data.lower()
    if any(word in lowered for word in _SUSPICIOUS):
        # it may be a value, such as a group id
        try:
            _expect_no_further_files(path, set(_keys(data.decode())))
        except (ValueError, RecursionError) as error:
            raise _foreign(path, "it is not JSON") from error


def _keys(text: str) -> Iterator[str]:
    """Keys whose value is not null, at any depth of the JSON documents in `text`."""
    keys: list[str] = []

    def note(pairs: list[tuple[str, Any]]) -> bool:
        keys.extend(key for key, value in pairs if value is not None)
        return True

    decoder = json.JSONDecoder(object_pairs_hook=note)
    position = 0
    while position < len(text):
        if text[position].isspace():
            position += 1
            continue
        _, position = decoder.raw_decode(text, position)
        yield from keys
        keys.clear()


def _expect_plain_checkpoint(path: Path) -> None:
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            names = [file.schema.column(number).path for number in range(len(file.schema))]
            further = [name for name in names if any(part.lower() in _FURTHER_FILES for part in name.split("."))]
            columns = file.read(columns=further)
    except (pa.ArrowException, OSError) as error:
        raise _foreign(path, f"it is no checkpoint ({str(error).splitlines()[0]})") from error
    while any(pa.types.is_struct(column.type) for column in columns.columns):
        columns = columns.flatten()
    present = [
        name for name, column in zip(columns.column_names, columns.columns, strict=True) if column.null_count < len(column)
    ]
    _expect_no_further_files(path, {part for name in present for part in name.split(".")})


def _expect_no_further_files(path: Path, keys: Iterable[str]) -> None:
    for key in keys:
        if key.lower() in _FURTHER_FILES:
            raise _foreign(path, f"it has a {key}")
