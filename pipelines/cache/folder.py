"""The cache folder: what Grouplake has downloaded, compiled or recorded. All of it can be made again.

An entry is `ROOT/KIND/NAME`; what is not finished has a name that begins with a dot. A process locks the entries that it uses,
with flock on `ROOT/KIND/.NAME.lock`: shared for as long as the process lives, and the kernel drops the lock however the process
ends. Only an entry that can be locked exclusively is removed. The modification time of the lock file is the time of the last use.
"""

import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

IVY = "ivy"

#: Kinds that Grouplake itself makes, with what they hold. Other folders of the root are listed and cleared as well.
KINDS = {
    "jars": "jars of Delta, of Spark's Kafka connector and of Kafka",
    IVY: "descriptions of the jars' dependencies, as Ivy keeps them",
    "classes": "archives of the classes that Spark's JVM loads",
    "kernels": "functions that Numba has compiled",
}

#: What `grouplake cache --clear` takes for every kind.
ALL = "all"

#: Entries of the kinds `jars` and `kernels` that no process has used for so long are removed when another one is made.
UNUSED_DAYS = 30

_DAY_SECONDS = 86_400
_LOCK = ".lock"
_UNFINISHED = ".unfinished"

#: Shared locks of this process, by lock file: they end with it.
_held: dict[Path, int] = {}


def cache_root() -> Path:
    """The root: `$GROUPLAKE_CACHE`, by default `~/.cache/grouplake`."""
    root = os.environ.get("GROUPLAKE_CACHE")
    return Path(root) if root else Path.home() / ".cache" / "grouplake"


@dataclass(frozen=True)
class CacheEntry:
    """One thing that is kept. `bytes` are those of its files, `last_used` is in seconds since the epoch."""

    kind: str
    name: str
    path: Path
    bytes: int
    last_used: float


def lock_path(path: Path) -> Path:
    """The lock file of the entry at `path`."""
    return path.with_name(f".{path.name}{_LOCK}")


def unfinished(path: Path) -> Path:
    """Where the entry at `path` is made, by the process that holds its lock exclusively. Left by a process that was killed."""
    return path.with_name(f".{path.name}{_UNFINISHED}")


def lock(path: Path, mode: int) -> int | None:
    """Locks the entry at `path` with an flock `mode`, and returns the descriptor to close.

    None: with LOCK_NB, another process holds it; or the folder cannot be written, or its file system has no locks.
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
    """Protects the entry at `path` from removal until this process ends; the entry need not be there yet.

    Returns the descriptor of the lock, for child processes that must hold it too, or None where there are no locks.
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
    """Ends the hold of this process on an entry that could not be made, and removes what is left of it."""
    descriptor = _held.pop(lock_path(path), None)
    if descriptor is not None:
        os.close(descriptor)
    remove(path)


def entries(of_kind: str | None = None) -> Iterator[CacheEntry]:
    """Everything in the cache, or of one kind, by kind and name; `bytes` includes what a process was killed over."""
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
    """Removes the entry at `path`, or what is left of it. False: a process uses it, and it stays."""
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
    """Removes the entries of a kind that no process has used for UNUSED_DAYS."""
    for entry in entries(kind):
        if entry.last_used < time.time() - UNUSED_DAYS * _DAY_SECONDS:
            remove(entry.path)


def _entry(file: Path) -> Path:
    """The entry that a file of a kind's folder belongs to."""
    for suffix in (_LOCK, _UNFINISHED):
        if file.name.startswith(".") and file.name.endswith(suffix):
            return file.with_name(file.name[1:].removesuffix(suffix))
    return file


def _size(path: Path) -> int:
    if path.is_file():
        return path.stat().st_size
    return sum(each.lstat().st_size for each in path.rglob("*") if each.is_file())
