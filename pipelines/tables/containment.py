"""Containment of untrusted tables: no file outside of a table's own folder is read.

A Delta log may name its files by any URI, absolute or with `..`, encoded or not, and may keep deletion vectors and parts of its
checkpoints anywhere (`storageType` p, sidecars of v2 checkpoints). delta-rs follows all of these, and symbolic links. Tables of
Grouplake use none of these features, so a table with one is rejected before the file is read. The check looks for the features
and does not resolve addresses, because delta-rs could resolve them differently.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from pipelines.runtime.errors import ForeignFeature, TablesError, UsageError
from pipelines.tables.foreign_commits.log import describe_foreign_feature, protocol_of
from pipelines.tables.foreign_commits.rules import PLAIN_NAME
from pipelines.tables.location import local_folder

#: Valid names of log files that start with a version. Other forms are v2 and multi-part checkpoints and compacted commits.
_LOG_FILE = re.compile(r"([0-9]{20})\.(?:(json|crc)|(checkpoint\.parquet))")

#: Temporary file of a killed commit in a local log, which readers ignore.
_UNFINISHED = re.compile(r".*#[0-9]+")

#: Keys in a log that refer to further files, in lower case.
_FURTHER_FILES = ("deletionvector", "sidecar")
_SUSPICIOUS = (*(f'"{key}"'.encode() for key in _FURTHER_FILES), b"\\u")

_ANY_VERSION = 10**20


def expect_own_log(uri: str, version: int | None) -> None:
    """Check that the log of the table at `uri`, up to `version`, refers to data files only.

    Object stores are not checked: readers of their logs cannot leave the store.

    Raises:
        UsageError: the log refers to other files, or cannot be read.
        TablesError: the log has no such version; delta-rs would try every version up to it.
    """
    folder = local_folder(uri)
    if folder is None or not folder.exists():
        return
    try:
        for directory in (folder, folder / "_delta_log"):
            if directory.is_symlink():
                raise _foreign(directory, "it is a symbolic link")
            _expect_no_links(directory)
        _expect_plain_log(folder / "_delta_log", _ANY_VERSION if version is None else version)
    except FileNotFoundError:
        # no table, or a table during vacuum: opening it reports the error
        return
    except OSError as error:
        raise UsageError(f"cannot read {error.filename or folder}: {error.strerror}") from error


def expect_own_files(uri: str, table: DeltaTable) -> None:
    """Raise UsageError unless all data files of the table at `uri` are in its folder and Grouplake can read its protocol."""
    expect_readable_protocol(uri, table)
    for path in pa.table(table.get_add_actions())["path"].to_pylist():
        if not PLAIN_NAME.fullmatch(path):
            raise _foreign(uri, f"it names the file {path!r}")


def expect_readable_protocol(uri: str, table: DeltaTable) -> None:
    """Raise ForeignFeature, with the commit that has raised the protocol, unless Grouplake can read it."""
    protocol = protocol_of(table)
    if protocol.unreadable:
        raise ForeignFeature(describe_foreign_feature(uri, table.version(), protocol) or uri)


def _foreign(where: Path | str, what: str) -> UsageError:
    return UsageError(f"{where}: {what}, unlike the tables of Grouplake; it was not read")


def _expect_no_links(folder: Path) -> None:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_symlink() or not (entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)):
                raise _foreign(entry.path, "it is not a regular file")


def _expect_plain_log(log: Path, version: int) -> None:
    names = [name for name in os.listdir(log) if name[:1].isdigit() and not _UNFINISHED.fullmatch(name)]
    found = [(match, name) for name in names for match in (_LOG_FILE.fullmatch(name),)]
    for match, name in found:
        if match is None:
            raise _foreign(log / name, "it is a multi-part checkpoint, a v2 checkpoint or a compacted log")
    numbered = [(int(match[1]), bool(match[3]), name) for match, name in found if match]
    newest = max((number for number, _, _ in numbered), default=-1)
    if numbered and not (version == _ANY_VERSION or 0 <= version <= newest):
        raise TablesError(f"{log.parent} has no version {version}: use 0 to {newest}")
    first = max((number for number, is_checkpoint, _ in numbered if is_checkpoint and number <= version), default=-1)
    # A reader may start with an older checkpoint if `_last_checkpoint` names it.
    first = min([first, *_last_checkpoint(log)])
    for number, is_checkpoint, name in numbered:
        if first <= number <= version:
            (_expect_plain_checkpoint if is_checkpoint else _expect_plain_commit)(log / name)


def _last_checkpoint(log: Path) -> list[int]:
    """Versions in the hint of the newest checkpoint: one, or several in a manipulated file."""
    try:
        pairs = json.loads((log / "_last_checkpoint").read_bytes(), object_pairs_hook=list)
    except (FileNotFoundError, ValueError, RecursionError):
        return []
    return [value for key, value in pairs if key == "version" and isinstance(value, int)] if isinstance(pairs, list) else []


def _expect_plain_commit(path: Path) -> None:
    data = path.read_bytes()
    lowered = data.lower()
    if any(word in lowered for word in _SUSPICIOUS):
        # the word may be in a value, such as a group id
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
        raise _foreign(path, f"it is not a valid checkpoint ({str(error).splitlines()[0]})") from error
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
