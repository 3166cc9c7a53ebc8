"""Folders of backups.

`backups/ID.json` is the manifest of a backup: the batch, and every file with its size and SHA-256. `objects/` has the files.
Data files never change and have unique names, so that backups share them and a further backup copies only new ones. Names of
objects from logs begin with their checksum: two folders may have different entries with one version.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pipelines.runtime.errors import TablesError, UsageError
from pipelines.tables.folder_files import FolderFiles

_BACKUPS = "backups"
_MANIFEST = re.compile(r"backups/([0-9]{8}T[0-9]{6}Z-[0-9]{1,19})\.json")

#: Valid names of files of tables: of data, of the log, of checkpoints.
_FILE = re.compile(r"[a-z_]+/(?:_delta_log/)?[A-Za-z0-9_][A-Za-z0-9._-]*")
_OBJECT = re.compile(r"objects/[A-Za-z0-9_./-]+")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class StoredFile:
    """A file of a backup: the name of its object, its size in bytes, and its SHA-256."""

    object: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """A backup: its id, the batch with its log position, and its files by path below the folder of tables."""

    id: str
    batch_id: int
    finished_at: str
    layout: str
    written_by: str
    topic_id: str | None
    next_offsets: Mapping[int, int]
    files: Mapping[str, StoredFile]

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files.values())

    def write(self, backups: FolderFiles) -> None:
        """Write the manifest, which makes the backup exist."""
        backups.write(f"{_BACKUPS}/{self.id}.json", json.dumps(asdict(self), indent=1).encode())

    def remove(self, backups: FolderFiles) -> None:
        """Remove the manifest; its objects remain."""
        backups.remove(f"{_BACKUPS}/{self.id}.json")


def manifests(backups: FolderFiles) -> list[Manifest]:
    """All backups of a folder, oldest first.

    Raises:
        TablesError: a manifest is damaged.
    """
    found = sorted(match[1] for name in backups.sizes(_BACKUPS) if (match := _MANIFEST.fullmatch(name)))
    return [_read(backups, name) for name in found]


def chosen(backups: FolderFiles, backup_id: str | None) -> Manifest:
    """The backup of that id, or the newest.

    Raises:
        UsageError: no such backup.
        TablesError: the manifest is damaged.
    """
    found = manifests(backups)
    if not found:
        raise UsageError(f"no backup under {backups.root}: is this a folder that `grouplake backup` wrote?")
    if backup_id is None:
        return found[-1]
    named = [each for each in found if each.id == backup_id]
    if not named:
        raise UsageError(f"no backup {backup_id!r} under {backups.root}: use one of {', '.join(each.id for each in found)}")
    return named[0]


def _read(backups: FolderFiles, backup_id: str) -> Manifest:
    name = f"{_BACKUPS}/{backup_id}.json"
    try:
        return _parsed(json.loads(backups.read(name) or b""))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise TablesError(f"{backups.root}/{name} is not a manifest: remove it, or use another copy of the backups") from error


def _parsed(found: dict[str, Any]) -> Manifest:
    files = {path: StoredFile(**file) for path, file in found["files"].items()}
    for path, file in files.items():
        # a manifest may come from outside: it names no file elsewhere
        if not (_FILE.fullmatch(path) and _OBJECT.fullmatch(file.object) and ".." not in file.object):
            raise ValueError(path)
        if not (isinstance(file.size, int) and _SHA256.fullmatch(file.sha256)):
            raise ValueError(path)
    offsets = {int(partition): int(offset) for partition, offset in found["next_offsets"].items()}
    return Manifest(**{**found, "next_offsets": offsets, "files": files})


def megabytes(size: int) -> str:
    """A number of bytes in messages."""
    return f"{size / 1e6:,.1f} MB"
