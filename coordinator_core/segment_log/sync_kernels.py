"""Compiled fsync of many files, without the interpreter lock in between."""

from numba import njit, types

from coordinator_core.codec.arrays import Int32s

_fsync = types.ExternalFunction("fsync", types.int32(types.int32))
_errno_location = types.ExternalFunction("__errno_location", types.CPointer(types.int32)())  # type: ignore[no-untyped-call]  # not annotated


@njit(cache=True, nogil=True)
def sync_files(descriptors: Int32s, errors: Int32s) -> None:
    """Fsync the files one after the other; `errors` gets the error number of each, 0 for success."""
    for number in range(len(descriptors)):
        errors[number] = 0 if _fsync(descriptors[number]) == 0 else _errno_location()[0]  # type: ignore[index]  # a pointer
