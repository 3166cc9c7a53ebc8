"""Forcing many files to the disk: compiled where the C library is the one that the compiled code knows, else in Python.

Both release the interpreter while the system works. Between two files the compiled code does not need it back, so that threads
that hold it are not waited for; that is the only difference.
"""

import ctypes
import errno
from collections.abc import Callable
from functools import cache

from coordinator_core.codec.arrays import Int32s
from coordinator_core.log import force

#: Descriptors, and where the error number of each goes; 0 for none.
SyncFiles = Callable[[Int32s, Int32s], None]

#: The address of `errno` in glibc and musl. macOS and the BSDs have another name for it.
_ERRNO_LOCATION = "__errno_location"


@cache
def sync_files() -> SyncFiles:
    """The way of this platform. The compiled code is loaded only where it can be linked: a symbol that is missing would end the
    process, not raise an error."""
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
    """Whether this process has a function of that name, the C library's among them."""
    try:
        return hasattr(ctypes.CDLL(None), name)
    except OSError:
        return False
