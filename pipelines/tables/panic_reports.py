"""Reports of panics in delta-rs, which its runtime prints itself, as notes of the errors that they cause.

On a full disk delta-rs panics: its writer is closed a second time after the first attempt has failed. Python gets the reason as
an exception, and standard error gets five lines about Rust.
"""

import os
import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from pipelines.tables.location import local_folder

_STANDARD_ERROR = 2
#: Only with less free space is standard error diverted: no commit should need more, and what other threads print waits meanwhile.
_ALMOST_FULL_BYTES = 1 << 30

_REPORT = re.compile(
    rb"\n?^thread '[^']*' (?:\(\d+\) )?panicked at [^\n]*\n"  # where
    rb"[^\n]*\n"  # why
    rb"(?:stack backtrace:\n(?: +\d+: [^\n]*\n| +at [^\n]*\n)*)?"
    rb"(?:note: [^\n]*\n)*",
    re.MULTILINE,
)


class _Diversion:
    """The number of users of a diverted standard error, which the last one ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._original = self._diverted = -1

    def enter(self) -> None:
        with self._lock:
            if self._users == 0:
                self._original, self._diverted = os.dup(_STANDARD_ERROR), os.memfd_create("standard-error")
                os.dup2(self._diverted, _STANDARD_ERROR)
            self._users += 1

    def leave(self) -> bytes:
        """Return what was printed, if this is the last user."""
        with self._lock:
            self._users -= 1
            if self._users:
                return b""
            os.dup2(self._original, _STANDARD_ERROR)
            printed = os.pread(self._diverted, os.fstat(self._diverted).st_size, 0)
            os.close(self._original)
            os.close(self._diverted)
            return printed


_DIVERSION = _Diversion()


@contextmanager
def noted_panics(uri: str) -> Iterator[None]:
    """On an almost full disk, make reports of panics notes of the error that is raised within; tracebacks print them.

    `uri` is the table that is written. What else is printed to standard error follows at the end, and a report without an error.
    """
    if not _is_almost_full(uri):
        yield
        return
    _DIVERSION.enter()
    failed: BaseException | None = None
    try:
        yield
    except BaseException as error:
        failed = error
        raise
    finally:
        printed = _DIVERSION.leave()
        if failed is not None:
            for report in _REPORT.findall(printed):
                failed.add_note(report.decode(errors="replace").strip())
            printed = _REPORT.sub(b"", printed)
        with suppress(OSError):
            os.write(_STANDARD_ERROR, printed)


def _is_almost_full(uri: str) -> bool:
    folder = local_folder(uri)
    # memory for the diverted output exists on Linux only; the disk may be full
    if folder is None or not hasattr(os, "memfd_create"):
        return False
    try:
        os.fstat(_STANDARD_ERROR)
        return shutil.disk_usage(folder).free < _ALMOST_FULL_BYTES
    except OSError:
        return False
