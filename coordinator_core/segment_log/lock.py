"""The `.lock` file of a log directory, which limits it to one writer; the lock ends with the process."""

import errno
import fcntl
import os
import struct
import sys
from pathlib import Path

from coordinator_core.segment_log.errors import LogInUse

FILE = ".lock"
_HELD = frozenset({errno.EACCES, errno.EAGAIN})
#: On macOS and the BSDs the two kinds of locks exclude each other, also within one process (`lf_getblock` in XNU's
#: kern_lockf.c), so one lock suffices there.
_KINDS_ARE_APART = sys.platform == "linux"
#: `struct flock` of Linux: type, whence, start, length, process.
_RECORD_LOCK = struct.Struct("@hhqqi4x")


class FolderLock:
    """Holds `.lock` from the start to `release`. Raises `LogInUse` if another writer holds it.

    Takes two locks on the file: `flock` excludes other coordinators, also within this process; the record lock excludes brokers,
    which take the same one. Where the two kinds exclude each other, `flock` excludes brokers as well.
    """

    def __init__(self, directory: Path) -> None:
        #: Of the open file; a child process that inherits it holds the lock, too.
        self.descriptor = os.open(directory / FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _KINDS_ARE_APART:
                fcntl.lockf(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self.descriptor)
            if error.errno not in _HELD:
                raise
            raise LogInUse(f"{directory}: another coordinator or a broker writes there ({FILE} is locked)") from error

    def release(self) -> None:
        """Release the lock. The file is kept, as brokers do."""
        os.close(self.descriptor)


def is_inherited(directory: Path) -> bool:
    """True if only children of a writer that has ended hold the lock: they inherit `flock`, but not the record lock.

    For a process that does not hold the lock itself; always False where the two kinds exclude each other.
    """
    if not _KINDS_ARE_APART:
        return False
    with (directory / FILE).open("rb") as file:
        found = fcntl.fcntl(file, fcntl.F_GETLK, _RECORD_LOCK.pack(fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0))
        return bool(_RECORD_LOCK.unpack(found)[0] == fcntl.F_UNLCK)
