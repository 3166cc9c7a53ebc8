"""Flush of several partitions with one call."""

import os
from collections.abc import Sequence

import numpy as np

from coordinator_core.codec.arrays import Int32s
from coordinator_core.segment_log.errors import PartitionFailed
from coordinator_core.segment_log.file_sync import sync_files
from coordinator_core.segment_log.partition_log import PartitionLog, PendingFlush


def flush_together(logs: Sequence[PartitionLog]) -> list[PartitionFailed | None]:
    """Flush several partitions as `PartitionLog.flush` does; return each one's error, or None."""
    failures: list[PartitionFailed | None] = [None] * len(logs)
    pending: list[tuple[int, PendingFlush]] = []
    for number, log in enumerate(logs):
        try:
            begun = log.begin_flush()
        except PartitionFailed as failure:
            failures[number] = failure
            continue
        if begun is not None:
            pending.append((number, begun))
    errors: Int32s = np.zeros(len(pending), np.int32)
    sync_files()(np.array([flush.descriptor for _, flush in pending], np.int32), errors)
    for (number, flush), error in zip(pending, errors.tolist(), strict=True):
        try:
            logs[number].end_flush(flush, OSError(error, os.strerror(error)) if error else None)
        except PartitionFailed as failure:
            failures[number] = failure
    return failures
