"""Archives of the classes that a session's JVM has loaded, so that the next one starts in a third of the time.

Java calls it application class-data sharing (JEP 350): a JVM that ends writes the classes that it has found in hundreds of jars,
parsed and verified, into one file, and a later JVM with the same class path maps that file. An archive that does not fit is
ignored by the JVM, and a missing one only costs time.
"""

import hashlib
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pipelines.jars import cache_root, java_executable

#: Each takes some 150 MB; another class path or another Java makes another one.
_KEPT = 3

_ABANDONED_AFTER_SECONDS = 3600

#: A JVM that cannot use an archive would say so on standard output, which belongs to whoever asked.
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
        return cls(cache_root() / "classes" / f"{key}.jsa")

    @property
    def exists(self) -> bool:
        """Whether a session has recorded it."""
        return self.path.exists()

    @property
    def use_options(self) -> str:
        """Options of a JVM that starts from the archive."""
        return f"{_QUIET} -XX:SharedArchiveFile={self.path}"

    @property
    def record_options(self) -> str:
        """Options of a JVM that writes the archive when it ends; it is not to be found until `keep` is called."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        return f"{_QUIET} -XX:ArchiveClassesAtExit={self._recording}"

    @property
    def _recording(self) -> Path:
        return self.path.with_suffix(f".{os.getpid()}.recording")

    def keep(self) -> bool:
        """Makes what this process's JVM has written findable, and removes what nobody needs; False if it wrote nothing."""
        if not self._recording.exists():
            return False
        self._recording.rename(self.path)
        archives = sorted(self.path.parent.glob("*.jsa"), key=lambda file: file.stat().st_mtime, reverse=True)
        abandoned = [
            file for file in self.path.parent.glob("*.recording") if file.stat().st_mtime < time.time() - _ABANDONED_AFTER_SECONDS
        ]
        for file in (*archives[_KEPT:], *abandoned):
            file.unlink(missing_ok=True)
        return True
