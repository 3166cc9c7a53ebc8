"""fsync of many files: compiled where the C library has `__errno_location`, otherwise in Python.

Both release the interpreter lock during an fsync. The compiled code does not take it between two files, so it never waits for
another thread; that is the only difference.
"""

import ctypes
import errno
from collections.abc import Callable
from functools import cache

from coordinator_core.codec.arrays import Int32s
from coordinator_core.log import force

#: File descriptors, and the array for the error number of each one; 0 for success.
SyncFiles = Callable[[Int32s, Int32s], None]

#: The function that returns the address of `errno` in glibc and musl; macOS and the BSDs name it differently.
_ERRNO_LOCATION = "__errno_location"


@cache
def sync_files() -> SyncFiles:
    """Return the implementation for this platform.

    The compiled code is loaded only if its symbols exist: a missing symbol would end the process instead of raising an error.
    """
    if force.FULL_SYNC is not None or not _has_symbol(_ERRNO_LOCATION):
        return sync_in_python
    from coordinator_core.segment_log import sync_kernels

    compiled: SyncFiles = sync_kernels.sync_files
    return compiled


def sync_in_python(descriptors: Int32s, errors: Int32s) -> None:
    """`sync_kernels.sync_files` for every platform."""
    for number, descriptor in enumerate(descriptors.tolist()):
        try:
            force.force(descriptor)
            errors[number] = 0
        except OSError as error:
            errors[number] = error.errno or errno.EIO


def _has_symbol(name: str) -> bool:
    """Whether a function of that name is linked into this process."""
    try:
        return hasattr(ctypes.CDLL(None), name)
    except OSError:
        return False
