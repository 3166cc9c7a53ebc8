"""Application class-data sharing (JEP 350): with an archive of its classes a JVM starts in a fraction of the time.

At its exit a JVM writes the classes that it has loaded from hundreds of jars, parsed and verified, into one file, and later JVMs
with the same class path map that file. A JVM ignores an archive that does not match; without one it only starts more slowly.

The JVM itself holds the lock of the archive that it maps or records (`pipelines.runtime.cache.folder`). A recording whose lock is
free is therefore abandoned, whether or not the process that started the JVM was killed. For brokers and tools, which never
outlive the process that starts them, that process holds it. The lock file holds the archive's size.
"""

import fcntl
import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pipelines.runtime.cache.folder import cache_root, entries, hold, lock, lock_path, remove, remove_unused, unfinished
from pipelines.runtime.cache.java import java_executable

KIND = "classes"
_SUFFIX = ".jsa"

#: Archives of one program that are kept. One of Spark takes some 180 MB; every class path and Java version has its own.
_KEPT = 3

#: A JVM that cannot use an archive prints a warning on standard output, which is reserved for the results of a command.
_QUIET = ("-Xlog:disable", "-Xlog:all=error:stderr")


@dataclass(frozen=True)
class ClassArchive:
    """The archive of one class path."""

    path: Path

    @classmethod
    def of(cls, program: str, class_path: Iterable[Path], java_options: str) -> "ClassArchive":
        """The archive of `program` for these jars and options, and for the Java that `java_executable` finds."""
        parts = [java_options]
        for file in (Path(java_executable()).resolve(), *class_path):
            about = file.stat()
            parts.append(f"{file} {about.st_size} {about.st_mtime_ns}")
        key = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:24]
        return cls(cache_root() / KIND / f"{program}-{key}{_SUFFIX}")

    def use(self, *, records: bool) -> "ArchiveUse":
        """JVM options that map the archive or, if there is none and `records` is true, record it; one JVM records at a time."""
        if self.is_whole():
            held = hold(self.path)
            if self.is_whole():
                return ArchiveUse((*_QUIET, f"-XX:SharedArchiveFile={self.path}"), held)
        remove_abandoned()
        descriptor = lock(self.path, fcntl.LOCK_EX | fcntl.LOCK_NB) if records else None
        if descriptor is None:
            return ArchiveUse()
        self.path.unlink(missing_ok=True)
        options = (*_QUIET, f"-XX:ArchiveClassesAtExit={unfinished(self.path)}")
        return ArchiveUse(options, descriptor, Recording(self.path, descriptor))

    def is_whole(self) -> bool:
        """Whether it has its recorded size: mapping a truncated file kills the JVM (SIGBUS)."""
        try:
            return int(lock_path(self.path).read_text()) == self.path.stat().st_size
        except (OSError, ValueError):
            return False


@dataclass(frozen=True)
class Recording:
    """An archive that a JVM of this process writes at its exit; other processes find it after `end`."""

    path: Path
    descriptor: int

    def end(self, exit_code: int) -> bool:
        """Keep the archive of a JVM that has exited, unless a signal killed it, perhaps while it wrote."""
        if exit_code < 0:
            self.discard()
            return False
        return self.keep()

    def keep(self) -> bool:
        """Publish the archive that the JVM has written, and remove older ones. Returns False if the JVM wrote nothing.

        The JVM must have exited by itself.
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
        for entry in [entry for entry in archives if _program(entry.path) == _program(self.path)][_KEPT:]:
            remove(entry.path)
        remove_unused(KIND)
        return is_made

    def discard(self) -> None:
        """Remove the unfinished file of a JVM that was killed."""
        unfinished(self.path).unlink(missing_ok=True)
        os.close(self.descriptor)


@dataclass(frozen=True)
class ArchiveUse:
    """JVM options, the lock descriptor that the JVM must inherit, and the recording if it makes one."""

    options: tuple[str, ...] = ()
    descriptor: int | None = None
    recording: Recording | None = None


def remove_abandoned() -> None:
    """Remove recordings whose JVM was killed, and files of earlier releases, which had other names."""
    for entry in entries(KIND):
        if not entry.path.exists() or entry.path.suffix != _SUFFIX:
            remove(entry.path)


def _program(archive: Path) -> str:
    return archive.name.rpartition("-")[0]


def _sync(file: Path) -> None:
    """Sync to disk, so that a power failure cannot leave an archive of the right size with missing blocks."""
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
