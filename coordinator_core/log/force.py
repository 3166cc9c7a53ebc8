"""Forcing a file to the disk, as Java's `FileChannel.force` does, which brokers call."""

import errno
import fcntl
import os

#: macOS. Its fsync hands the data to the drive, which may keep it in a volatile cache; this waits until it is written.
FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)
#: What file systems without it say, those of a network above all.
_NOT_SUPPORTED = frozenset({errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOTTY, errno.EINVAL})


def force(descriptor: int) -> None:
    """Returns when the data of an open file or folder survives a loss of power: fsync, on macOS `F_FULLFSYNC`. Raises OSError."""
    if FULL_SYNC is not None:
        try:
            fcntl.fcntl(descriptor, FULL_SYNC)
            return
        except OSError as error:
            if error.errno not in _NOT_SUPPORTED:
                raise
    os.fsync(descriptor)
