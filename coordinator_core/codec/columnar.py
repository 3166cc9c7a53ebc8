"""Columnar codec of offset commits: decodes a chunk of records into columns.

It agrees with the scalar codec on any bytes: `COMMIT` and `TOMBSTONE` have its values, and every record that it decodes to
another type, or cannot decode, is `OTHER`.
"""

from dataclasses import dataclass

import numpy as np

from coordinator_core.codec.arrays import ArrowColumn, Bytes, Int32s, Int64s, Structs
from coordinator_core.codec.columnar_kernels import COMMIT, OTHER, TOMBSTONE, VALUE, decode_values
from coordinator_core.codec.key_dictionary import KeyDictionary
from coordinator_core.codec.slices import strings

__all__ = ["COMMIT", "OTHER", "TOMBSTONE", "VALUE", "KeyDictionary", "OffsetCommitColumns", "decode_offset_commits"]


@dataclass(frozen=True, slots=True)
class OffsetCommitColumns:
    """One row per record of the chunk.

    `status` is COMMIT (its row of `values` is valid), TOMBSTONE (it has only a key) or OTHER (left to the scalar codec).
    `key_index` is an index into `keys`, -1 for OTHER. `values` is a struct array with Kafka's field names in snake case
    (`VALUE`): timestamps in ms, -1 for none, also for `leader_epoch`; the topic id as upper and lower half, both 0 for none;
    metadata as slices of `buffer`, well-formed UTF-8; `version` is that of the value.
    """

    buffer: Bytes
    keys: KeyDictionary
    status: Bytes
    key_index: Int32s
    values: Structs

    def __len__(self) -> int:
        return len(self.status)

    def metadata(self) -> ArrowColumn:
        """Metadata of every row as strings, null for rows that are not COMMIT."""
        lengths = np.where(self.status == COMMIT, self.values["metadata_length"], -1)
        return strings(self.buffer, self.values["metadata_start"], lengths)


def decode_offset_commits(
    buffer: Bytes, key_start: Int64s, key_length: Int32s, value_start: Int64s, value_length: Int32s, keys: KeyDictionary
) -> OffsetCommitColumns:
    """Decode the offset commits (types 0 and 1, every value version) among the records of a chunk.

    The arrays hold each record's key and value as slices of `buffer`; length -1 is null. New keys are added to `keys`, which
    the caller keeps for one log partition. Never raises on data and never reads outside of a record's slices.
    """
    data = buffer.view()
    # always read-only: numba would compile the kernels once more for writable arrays
    data.setflags(write=False)
    key_index = keys.index(data, key_start, key_length)
    status: Bytes = np.empty(len(key_index), dtype=np.uint8)
    values: Structs = np.zeros(len(key_index), dtype=VALUE)
    decode_values(data, value_start, value_length, key_index, status, values)
    return OffsetCommitColumns(data, keys, status, key_index, values)
