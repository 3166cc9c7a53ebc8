"""Archives of the classes that a session's JVM has loaded, so that the next one starts in a third of the time.

Java calls it application class-data sharing (JEP 350): a JVM that ends writes the classes that it has found in hundreds of jars,
parsed and verified, into one file, and a later JVM with the same class path maps that file. An archive that does not fit is
ignored by the JVM, and a missing one only costs time.

The JVM itself holds the lock of the archive that it maps or records (`pipelines.cache.folder`). A recording whose lock is free is
therefore abandoned, even if the process that started the JVM was killed. The lock file holds the archive's size.
"""

import fcntl
import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pipelines.cache.folder import cache_root, entries, hold, lock, lock_path, remove, unfinished
from pipelines.cache.jars import java_executable

KIND = "classes"
_SUFFIX = ".jsa"

#: Each takes some 150 MB; another class path or another Java makes another one.
_KEPT = 3

#: A JVM that cannot use an archive would print that on standard output, which belongs to the results of a command.
_QUIET = "-Xlog:disable -Xlog:all=error:stderr"


@dataclass(frozen=True)
class ClassArchive:
    """The archive for one class path."""

    path: Path

    @classmethod
    def of(cls, class_path: Iterable[Path], java_options: str) -> "ClassArchive":
        """The archive that belongs to these jars, these options, and the Java that would run them."""
        parts = [java_options]
        for file in (Path(java_executable()).resolve(), *class_path):
            about = file.stat()
            parts.append(f"{file} {about.st_size} {about.st_mtime_ns}")
        key = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:24]
        return cls(cache_root() / KIND / f"{key}{_SUFFIX}")

    def use(self, *, records: bool) -> "ArchiveUse":
        """How a JVM starts now: it maps the archive; if there is none and it `records`, it makes it, one JVM at a time."""
        if self._is_whole():
            held = hold(self.path)
            if self._is_whole():
                return ArchiveUse(f"{_QUIET} -XX:SharedArchiveFile={self.path}", held)
        remove_abandoned()
        descriptor = lock(self.path, fcntl.LOCK_EX | fcntl.LOCK_NB) if records else None
        if descriptor is None:
            return ArchiveUse("", None)
        self.path.unlink(missing_ok=True)
        return ArchiveUse(
            f"{_QUIET} -XX:ArchiveClassesAtExit={unfinished(self.path)}", descriptor, Recording(self.path, descriptor)
        )

    def _is_whole(self) -> bool:
        """Whether it has the size that it was recorded with: a JVM that maps a shorter file dies of it (SIGBUS)."""
        try:
            return int(lock_path(self.path).read_text()) == self.path.stat().st_size
        except (OSError, ValueError):
            return False


@dataclass(frozen=True)
class Recording:
    """An archive that a JVM of this process writes when it ends; it is not to be found before `keep`."""

    path: Path
    descriptor: int

    def keep(self) -> bool:
        """Publishes the archive that the JVM has written, and removes older ones. False: it wrote nothing.

        The JVM must have ended by itself.
        """
        made = unfinished(self.path)
        is_made = made.exists()
        if is_made:
            _sync(made)
            os.ftruncate(self.descriptor, 0)
            os.pwrite(self.descriptor, str(made.stat().st_size).encode(), 0)
            made.rename(self.path)
        os.close(self.descriptor)
        archives = sorted(entries(KIND), key=lambda entry: entry.last_used, reverse=True)
        for entry in archives[_KEPT:]:
            remove(entry.path)
        return is_made

    def discard(self) -> None:
        """Removes what a JVM has written that was killed."""
        unfinished(self.path).unlink(missing_ok=True)
        os.close(self.descriptor)


@dataclass(frozen=True)
class ArchiveUse:
    """The options of a JVM, the descriptor of the lock that it must inherit, and what it records, if it does."""

    options: str
    descriptor: int | None
    recording: Recording | None = None


def remove_abandoned() -> None:
    """Removes recordings whose JVM was killed, and those of earlier releases, which had other names."""
    for entry in entries(KIND):
        if not entry.path.exists() or entry.path.suffix != _SUFFIX:
            remove(entry.path)


def _sync(file: Path) -> None:
    """A machine that stops must not leave an archive of the right size with holes."""
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
