"""Records as a consumer with isolation.level=read_committed gets them, with Kafka's list of aborted transactions."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from coordinator_core.log.columns import IS_CONTROL, IS_TRANSACTIONAL, RecordColumns
from coordinator_core.log.record_batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID


def committed_records(columns: RecordColumns, aborted: Iterable[tuple[int, int]]) -> RecordColumns:
    """Return the records without those of aborted transactions and without markers, as records without a producer.

    `aborted`: producer id and first offset of each aborted transaction that overlaps the records, which end at or below the last
    stable offset. The rule is that of `CompletedFetch.nextFetchedRecord`: from the first offset on, the batches of the producer
    are aborted, up to its next ABORT marker.
    """
    is_control = columns.flags & IS_CONTROL != 0
    kept = ~is_control
    for producer_id, starts in _by_producer(aborted):
        of_producer = np.flatnonzero(columns.producer_id == producer_id)
        offsets, markers = columns.offset[of_producer], is_control[of_producer]
        ends = offsets[markers]
        for start in starts:
            # a transaction of a producer has no marker before its own
            behind = ends[ends >= start]
            within = (offsets >= start) & ((offsets < behind[0]) if len(behind) else True)
            kept[of_producer[within & (columns.flags[of_producer] & IS_TRANSACTIONAL != 0)]] = False
    rows = np.flatnonzero(kept)
    found = columns.take(rows)
    count = len(rows)
    return replace(
        found,
        producer_id=np.full(count, NO_PRODUCER_ID, np.int64),
        producer_epoch=np.full(count, NO_PRODUCER_EPOCH, np.int16),
        flags=np.zeros(count, np.uint8),
    )


def _by_producer(aborted: Iterable[tuple[int, int]]) -> Iterable[tuple[int, Sequence[int]]]:
    starts: dict[int, list[int]] = {}
    for producer_id, first_offset in aborted:
        starts.setdefault(producer_id, []).append(first_offset)
    return starts.items()
