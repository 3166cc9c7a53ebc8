"""Slices of a byte buffer as Arrow arrays."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from coordinator_core.codec.arrays import ArrowArray, ArrowColumn, Bytes, Int64s, Numbers
from coordinator_core.codec.byte_kernels import gather_bytes

#: Number of strings that always fit the 32-bit offsets of an Arrow array: Kafka's strings have at most 32,767 bytes.
_STRINGS_PER_ARRAY = 65_536


def _arrays(
    buffer: Bytes, starts: Int64s, lengths: Numbers, kind: pa.DataType, bounds: list[tuple[int, int]]
) -> Iterator[ArrowArray]:
    for low, high in bounds:
        some = np.maximum(lengths[low:high], 0)
        offsets = np.zeros(high - low + 1, dtype=np.int32)
        np.cumsum(some, out=offsets[1:])
        data = np.empty(int(offsets[-1]), dtype=np.uint8)
        gather_bytes(buffer, starts[low:high], lengths[low:high], data)
        absent = lengths[low:high] < 0
        validity = pa.array(~absent).buffers()[1] if absent.any() else None
        buffers = [validity, pa.py_buffer(offsets.data), pa.py_buffer(data.data)]
        yield pa.Array.from_buffers(kind, high - low, buffers)


def strings(buffer: Bytes, starts: Int64s, lengths: Numbers) -> ArrowColumn:
    """Return the slices as `pa.string()`; the caller ensures UTF-8 and at most 32,767 bytes each. Length -1 is null."""
    bounds = [(low, min(low + _STRINGS_PER_ARRAY, len(starts))) for low in range(0, len(starts), _STRINGS_PER_ARRAY)]
    return pa.chunked_array(list(_arrays(buffer, starts, lengths, pa.string(), bounds)), type=pa.string())


def binaries(buffer: Bytes, starts: Int64s, lengths: Numbers) -> ArrowColumn:
    """Return the slices as `pa.binary()`, in as many chunks as 32-bit offsets need. Length -1 is null."""
    total = np.cumsum(np.maximum(lengths, 0), dtype=np.int64)
    bounds = []
    low = 0
    while low < len(starts):
        before = int(total[low - 1]) if low else 0
        high = max(int(np.searchsorted(total, before + 0x7FFFFFFF, side="right")), low + 1)
        bounds.append((low, high))
        low = high
    return pa.chunked_array(list(_arrays(buffer, starts, lengths, pa.binary(), bounds)), type=pa.binary())
