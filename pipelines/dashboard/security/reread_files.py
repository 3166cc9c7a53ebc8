"""Files that may be replaced while the server runs, such as credentials and certificates."""

import os
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from pipelines.runtime.errors import UsageError

T = TypeVar("T")

_SECONDS = 1.0


class RereadFiles(Generic[T]):
    """What `read` makes of some files, read again within a second after one of them has been replaced or changed.

    If new files cannot be used, the previous value stays.
    """

    def __init__(self, paths: Sequence[str], read: Callable[[], T], report: Callable[[UsageError | None], None]) -> None:
        """`report` gets None for new files that were read, else the error of `read`. Raises UsageError as `read` does now."""
        self._paths, self._read, self._report = paths, read, report
        self._versions = self._present()
        self._value = read()
        self._checked_at = 0.0

    def value(self, now: float) -> T:
        """The value at a time of the monotonic clock."""
        if now - self._checked_at < _SECONDS:
            return self._value
        self._checked_at = now
        versions = self._present()
        if versions != self._versions:
            self._versions = versions
            try:
                self._value = self._read()
            except UsageError as error:
                self._report(error)
            else:
                self._report(None)
        return self._value

    def _present(self) -> list[tuple[int, int, int] | None]:
        """A value that differs once a file has been replaced or changed."""
        return [_version(path) for path in self._paths]


def _version(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
