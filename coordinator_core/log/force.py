"""Sync of a file to disk, as by Java's `FileChannel.force`, which brokers call."""

import errno
import fcntl
import os

#: macOS only: its fsync passes the data to the drive, which may keep it in a volatile cache; this command waits for the write.
FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)
#: Errors of file systems without `F_FULLFSYNC`, such as network file systems.
_NOT_SUPPORTED = frozenset({errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOTTY, errno.EINVAL})


def force(descriptor: int) -> None:
    """Make the data of an open file or folder durable: fsync, or `F_FULLFSYNC` on macOS. Raises OSError."""
    if FULL_SYNC is not None:
        try:
            fcntl.fcntl(descriptor, FULL_SYNC)
            return
        except OSError as error:
            if error.errno not in _NOT_SUPPORTED:
                raise
    os.fsync(descriptor)
