"""One writer at a time in a folder of partitions: the `.lock` file of a log directory, held by the process and gone with it."""

import errno
import fcntl
import os
import sys
from pathlib import Path

from coordinator_core.segment_log.errors import LogInUse

FILE = ".lock"
_HELD = frozenset({errno.EACCES, errno.EAGAIN})
#: On macOS and the BSDs a lock of one kind keeps locks of the other kind out, also those of the same process
#: (`lf_getblock` in XNU's kern_lockf.c), so that there one lock does for both.
_KINDS_ARE_APART = sys.platform == "linux"


class FolderLock:
    """Holds `.lock` from the start to `release`. Raises `LogInUse` when another holds it.

    Two locks of the system on one file: `flock` keeps other coordinators out, those of this process too, and the record lock is
    the one that brokers take. Where the two kinds exclude each other, `flock` keeps brokers out as well.
    """

    def __init__(self, directory: Path) -> None:
        self._file = os.open(directory / FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _KINDS_ARE_APART:
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._file)
            if error.errno not in _HELD:
                raise
            raise LogInUse(f"{directory}: another coordinator or a broker writes there ({FILE} is locked)") from error

    def release(self) -> None:
        """Lets others write. The file stays, as a broker's does."""
        os.close(self._file)
