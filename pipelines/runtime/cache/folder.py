"""The cache folder: downloaded, compiled and recorded files, all of which are recreated when needed.

An entry is `ROOT/KIND/NAME`; an unfinished one has a name that begins with a dot. A process holds a shared flock on
`ROOT/KIND/.NAME.lock` for every entry that it uses; the kernel releases it when the process ends, even by SIGKILL. Only an entry
that can be locked exclusively is removed. The modification time of the lock file is the time of the last use.
"""

import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

IVY = "ivy"
CHECKPOINTS = "checkpoints"

#: Kinds that Grouplake creates, with their content. Other folders of the root are listed and cleared as well.
KINDS = {
    "jars": "jars of Delta, of Spark's Kafka connector and of Kafka",
    IVY: "dependency metadata of the jars, in Ivy's format",
    "spark": "links to the jars of PySpark, one folder for all environments",
    "classes": "class data archives (CDS) of the JVMs of Spark and of private Kafka brokers",
    "kernels": "functions compiled by Numba",
    "storage": "formatted storage of private Kafka brokers",
    CHECKPOINTS: "checkpoints of jobs on object stores, removed by the next job",
}

#: The value of `grouplake cache --clear` that stands for every kind.
ALL = "all"

#: Entries of the kinds `jars`, `spark`, `classes`, `kernels` and `storage` are removed when another one is made after this time
#: without use.
UNUSED_DAYS = 30

_DAY_SECONDS = 86_400
_LOCK = ".lock"
_UNFINISHED = ".unfinished"

#: Shared locks of this process, by lock file; held until it ends.
_held: dict[Path, int] = {}


def cache_root() -> Path:
    """The root: `$GROUPLAKE_CACHE`, by default `~/.cache/grouplake`."""
    root = os.environ.get("GROUPLAKE_CACHE")
    return Path(root) if root else Path.home() / ".cache" / "grouplake"


@dataclass(frozen=True)
class CacheEntry:
    """An entry. `bytes` is the size of its files, `last_used` the time of the last use in seconds since the epoch."""

    kind: str
    name: str
    path: Path
    bytes: int
    last_used: float


def lock_path(path: Path) -> Path:
    """The lock file of the entry at `path`."""
    return path.with_name(f".{path.name}{_LOCK}")


def unfinished(path: Path) -> Path:
    """Temporary path at which the process with the exclusive lock makes the entry at `path`. A killed process leaves it."""
    return path.with_name(f".{path.name}{_UNFINISHED}")


def lock(path: Path, mode: int) -> int | None:
    """Lock the entry at `path` with the flock `mode`, and return the descriptor, whose closing releases the lock.

    Returns None if another process holds the lock (with LOCK_NB), the folder is not writable, or its file system has no locks.
    """
    file = lock_path(path)
    while True:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError:
            return None
        try:
            fcntl.flock(descriptor, mode)
            # the file may have been removed with its entry between the opening and the lock
            if os.path.samestat(os.fstat(descriptor), file.stat()):
                return descriptor
        except FileNotFoundError:
            pass
        except OSError:
            os.close(descriptor)
            return None
        os.close(descriptor)


def hold(path: Path) -> int | None:
    """Protect the entry at `path`, which need not exist yet, from removal until this process ends.

    Returns the descriptor of the lock, for child processes that must hold it too, or None if the file system has no locks.
    """
    file = lock_path(path)
    if file not in _held:
        descriptor = lock(path, fcntl.LOCK_SH)
        if descriptor is None:
            return None
        _held[file] = descriptor
    os.utime(_held[file])
    return _held[file]


def forget(path: Path) -> None:
    """Release the lock of this process on an entry that could not be made, and remove its remains."""
    descriptor = _held.pop(lock_path(path), None)
    if descriptor is not None:
        os.close(descriptor)
    remove(path)


def entries(of_kind: str | None = None) -> Iterator[CacheEntry]:
    """All entries, or those of one kind, ordered by kind and name; `bytes` includes unfinished files of killed processes."""
    root = cache_root()
    kinds = sorted(each for each in root.iterdir() if each.is_dir()) if root.is_dir() else []
    for kind in kinds:
        if of_kind not in (None, kind.name):
            continue
        # Ivy's files refer to each other: all of them are one entry
        for path in [kind] if kind.name == IVY else sorted({_entry(each) for each in kind.iterdir()}):
            made = [each for each in (path, unfinished(path)) if each.exists()]
            if made:
                used = lock_path(path) if lock_path(path).exists() else made[0]
                yield CacheEntry(kind.name, path.name, path, sum(map(_size, made)), used.stat().st_mtime)


def remove(path: Path) -> bool:
    """Remove the entry at `path`, or its remains. Returns False if a process uses it; the entry is then kept."""
    descriptor = lock(path, fcntl.LOCK_EX | fcntl.LOCK_NB)
    if descriptor is None:
        return False
    try:
        for each in (path, unfinished(path), lock_path(path)):
            if each.is_dir():
                shutil.rmtree(each, ignore_errors=True)
            else:
                each.unlink(missing_ok=True)
    finally:
        os.close(descriptor)
    return True


def remove_unused(kind: str) -> None:
    """Remove the entries of a kind that no process has used for UNUSED_DAYS."""
    for entry in entries(kind):
        if entry.last_used < time.time() - UNUSED_DAYS * _DAY_SECONDS:
            remove(entry.path)


def _entry(file: Path) -> Path:
    """Path of the entry to which a file in the folder of a kind belongs."""
    for suffix in (_LOCK, _UNFINISHED):
        if file.name.startswith(".") and file.name.endswith(suffix):
            return file.with_name(file.name[1:].removesuffix(suffix))
    return file


def _size(path: Path) -> int:
    if path.is_file():
        return path.stat().st_size
    return sum(each.lstat().st_size for each in path.rglob("*") if each.is_file())
