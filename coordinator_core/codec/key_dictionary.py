"""Dictionary of the distinct (group, topic, partition) of a log partition, numbered in order of appearance."""

import numpy as np

from coordinator_core.codec.arrays import ArrowColumn, Bytes, Int32s, Int64s, UInt64s, grown
from coordinator_core.codec.columnar_kernels import LENGTH_BITS, LONGEST_KEY, hash_keys, index_keys, locate_names, rehash
from coordinator_core.codec.slices import strings

_FIRST_KEYS = 1024


class KeyDictionary:
    """Numbers the keys of offset commits; keys of types 0 and 1 share an entry, as in the coordinator's cache.

    A reader uses one dictionary for all chunks. Memory: at most twice the bytes of the distinct keys.
    """

    def __init__(self) -> None:
        self._count = 0
        self._used = 0
        self._arena: Bytes = np.zeros(_FIRST_KEYS * 64, dtype=np.uint8)
        self._entries: Int64s = np.zeros(_FIRST_KEYS, dtype=np.int64)
        self._table: UInt64s = np.zeros(4 * _FIRST_KEYS, dtype=np.uint64)

    def __len__(self) -> int:
        return self._count

    def index(self, buffer: Bytes, key_start: Int64s, key_length: Int32s) -> Int32s:
        """Return the number of each key and add new ones; -1 for keys that are not well-formed keys of type 0 or 1.

        `key_start` and `key_length` are slices of `buffer`; a length of -1 is a null key.
        """
        body_length: Int32s = np.empty(len(key_start), dtype=np.int32)
        hashes: UInt64s = np.empty(len(key_start), dtype=np.uint64)
        hash_keys(buffer, key_start, key_length, body_length, hashes)
        key_index: Int32s = np.empty(len(key_start), dtype=np.int32)
        done = 0
        while done < len(key_start):
            state = (self._arena, self._entries, self._table, self._count, self._used)
            done, self._count, self._used, _ = index_keys(buffer, key_start, body_length, hashes, done, key_index, *state)
            if done < len(key_start):
                self._grow()
        return key_index

    def _grow(self) -> None:
        if self._used + LONGEST_KEY > self._arena.size:
            self._arena = grown(self._arena, 2 * self._arena.size + LONGEST_KEY)
        if self._count == self._entries.size:
            self._entries = grown(self._entries, 2 * self._entries.size)
        if 2 * (self._count + 1) > self._table.size:
            self._table = np.zeros(2 * self._table.size, dtype=np.uint64)
            rehash(self._arena, self._entries, self._count, self._table)

    def names(self, chosen: Int64s | None = None) -> tuple[ArrowColumn, ArrowColumn, Int32s]:
        """Return group ids, topics and partitions of the chosen numbers (default: all, in order)."""
        if chosen is None:
            chosen = np.arange(self._count, dtype=np.int64)
        group_length, topic_length, partition = (np.empty(len(chosen), dtype=np.int32) for _ in range(3))
        topic_start: Int64s = np.empty(len(chosen), dtype=np.int64)
        locate_names(self._arena, self._entries, chosen, group_length, topic_start, topic_length, partition)
        group_start: Int64s = (self._entries[chosen] >> LENGTH_BITS) + 2
        groups = strings(self._arena, group_start, group_length)
        topics = strings(self._arena, topic_start, topic_length)
        return groups, topics, partition
