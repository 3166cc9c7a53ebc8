"""Returns freed memory to the system. A process that loads a new batch beside the old one otherwise keeps the room of both."""

import ctypes

import pyarrow as pa

#: Parameter number of glibc's `mallopt`: unused bytes at the end of the heap above which they are returned.
_M_TRIM_THRESHOLD = -1
_BYTES = 128 * 1024


def return_freed_memory() -> None:
    """Let Arrow and the allocator of this process return memory once it is freed.

    glibc raises its thresholds when a large block is freed, unless one was set; Arrow's own allocators keep pages for the next
    load. On a system without `mallopt` (macOS) its allocator stays as it is.
    """
    pa.set_memory_pool(pa.system_memory_pool())
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_TRIM_THRESHOLD, _BYTES)
