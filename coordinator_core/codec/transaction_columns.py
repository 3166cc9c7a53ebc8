"""Columnar codec of `__transaction_state`: decodes a chunk of records into columns.

It agrees with the scalar codec on any bytes: `STATE` and `TOMBSTONE` have its values, and every record that it cannot decode is
`OTHER`.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coordinator_core.codec.arrays import ArrowArray, ArrowColumn, Bytes, Int32s, Int64s, Structs
from coordinator_core.codec.runs import begins_run
from coordinator_core.codec.slices import strings
from coordinator_core.codec.transaction_kernels import (
    KEY_HEADER,
    OTHER,
    STATE,
    TOMBSTONE,
    TRANSACTION,
    decode_records,
    locate_partitions,
    number_ids,
)

__all__ = ["OTHER", "STATE", "TOMBSTONE", "TransactionColumns", "decode_transactions"]


@dataclass(frozen=True, slots=True)
class TransactionColumns:
    """One row per record of the chunk.

    `status` is STATE (its row of `values` is valid), TOMBSTONE (it has only a key) or OTHER. `values` is a struct array
    (`TRANSACTION`): times in ms; -1 for a producer id that the value does not have.
    """

    buffer: Bytes
    status: Bytes
    id_start: Int64s
    id_length: Int32s
    values: Structs

    def __len__(self) -> int:
        return len(self.status)

    def ids(self, rows: Int64s) -> ArrowColumn:
        """Transactional ids of rows that are not OTHER."""
        return strings(self.buffer, self.id_start[rows], self.id_length[rows])

    def last_rows(self, chosen: Int64s) -> tuple[Int32s, Int64s]:
        """Number the ids of rows that are not OTHER from 0: return the number of each row, and the last row of each number."""
        number: Int32s = np.empty(len(chosen), np.int32)
        last: Int64s = np.empty(len(chosen), np.int64)
        table: Int32s = np.zeros(1 << (2 * len(chosen)).bit_length(), np.int32)
        count = number_ids(self.buffer, self.id_start, self.id_length, chosen, table, number, last)
        return number, last[:count]

    def partitions(self, values: Structs) -> ArrowArray:
        """Distinct partitions of some of `values` by topic, sorted by topic and number; none for a null array."""
        topics = int(np.maximum(values["topics"], 0).sum())
        topic_start: Int64s = np.empty(topics, np.int64)
        topic_length, topic_size = np.empty(topics, np.int32), np.empty(topics, np.int32)
        numbers: Int32s = np.empty(int(values["partitions"].sum()), np.int32)
        locate_partitions(self.buffer, values, topic_start, topic_length, topic_size, numbers)
        row_of_topic = np.repeat(np.arange(len(values)), np.maximum(values["topics"], 0))
        names = strings(self.buffer, topic_start, topic_length).combine_chunks().dictionary_encode()
        topic_of_number = np.repeat(np.arange(topics), topic_size)
        return _sorted_lists(len(values), row_of_topic[topic_of_number], names.take(pa.array(topic_of_number)), numbers)


def decode_transactions(
    buffer: Bytes, key_start: Int64s, key_length: Int32s, value_start: Int64s, value_length: Int32s, versions: int
) -> TransactionColumns:
    """Decode a chunk of records, with values of versions below `versions`; all others are OTHER.

    The arrays hold each record's key and value as slices of `buffer`; length -1 is null. Never raises on data and never reads
    outside of a record's slices.
    """
    data = buffer.view()
    # always read-only: numba would compile the kernels once more for writable arrays
    data.setflags(write=False)
    status: Bytes = np.empty(len(key_start), np.uint8)
    id_length: Int32s = np.empty(len(key_start), np.int32)
    values: Structs = np.zeros(len(key_start), TRANSACTION)
    decode_records(data, key_start, key_length, value_start, value_length, versions, status, id_length, values)
    return TransactionColumns(data, status, key_start + KEY_HEADER, id_length, values)


def _sorted_lists(rows: int, row: Int64s, topics: ArrowArray, numbers: Int32s) -> ArrowArray:
    """Lists of partitions, from a row, a topic and a number each."""
    rank = pc.rank(topics.dictionary).to_numpy() if len(topics.dictionary) else np.empty(0, np.uint64)
    topic = rank[topics.indices.to_numpy()]
    order = np.lexsort((numbers, topic, row))
    row, topic, numbers = row[order], topic[order], numbers[order]
    begins_topic = begins_run(row, topic)
    kept = begins_topic | begins_run(numbers)
    first_of_topic = np.flatnonzero(begins_topic)
    sizes = np.bincount(np.cumsum(begins_topic)[kept] - 1, minlength=len(first_of_topic))
    lists = pa.ListArray.from_arrays(_offsets(sizes), pa.array(numbers[kept]))
    names = pc.take(topics.dictionary, pa.array(np.argsort(rank)[topic[first_of_topic].astype(np.int64) - 1]))
    by_topic = pa.StructArray.from_arrays([names, lists], ["topic", "partitions"])
    return pa.ListArray.from_arrays(_offsets(np.bincount(row[first_of_topic], minlength=rows)), by_topic)


def _offsets(sizes: Int64s) -> ArrowArray:
    return pa.array(np.concatenate(([0], np.cumsum(sizes))), pa.int32())
