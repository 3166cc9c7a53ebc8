"""Record key → offset of its last record, for a cleaning (`SkimpyOffsetMap`, but exact: it stores the keys, not hashes)."""

import numpy as np

from coordinator_core.codec.arrays import Bytes, Int32s, Int64s, UInt64s, grown
from coordinator_core.segment_log.key_kernels import last_offsets, note_offsets, rehash

_FIRST_KEYS = 1024


class KeyOffsets:
    """A map from record keys to offsets. Keys are slices of the buffers of `RecordColumns`.

    Memory: at most twice the bytes of the distinct keys.
    """

    def __init__(self) -> None:
        self._count = 0
        self._used = 0
        self._arena: Bytes = np.zeros(_FIRST_KEYS * 64, np.uint8)
        self._starts: Int64s = np.zeros(_FIRST_KEYS + 1, np.int64)
        self._offsets: Int64s = np.zeros(_FIRST_KEYS, np.int64)
        self._table: UInt64s = np.zeros(4 * _FIRST_KEYS, np.uint64)

    def __len__(self) -> int:
        return self._count

    def note(self, buffer: Bytes, key_start: Int64s, key_length: Int32s, offset: Int64s) -> None:
        """Store the offsets of records, in log order; records without key are ignored."""
        done = 0
        while done < len(offset):
            state = (self._arena, self._starts, self._offsets, self._table, self._count, self._used)
            done, self._count, self._used = note_offsets(buffer, key_start, key_length, offset, done, *state)
            if done < len(offset):
                self._make_room(int(key_length[done]))

    def last(self, buffer: Bytes, key_start: Int64s, key_length: Int32s) -> Int64s:
        """Return the offset of the last record of each key, -1 for unknown and null keys."""
        found: Int64s = np.empty(len(key_start), np.int64)
        last_offsets(buffer, key_start, key_length, self._arena, self._starts, self._offsets, self._table, found)
        return found

    def _make_room(self, key_length: int) -> None:
        if self._used + key_length > self._arena.size:
            self._arena = grown(self._arena, 2 * self._arena.size + key_length)
        if self._count == self._offsets.size:
            self._starts = grown(self._starts, 2 * self._count + 1)
            self._offsets = grown(self._offsets, 2 * self._count)
        if 2 * (self._count + 1) > self._table.size:
            self._table = np.zeros(2 * self._table.size, np.uint64)
            rehash(self._arena, self._starts, self._count, self._table)
