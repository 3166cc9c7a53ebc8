"""Positions of some batches of a segment, in memory (`OffsetIndex`, `TimeIndex`): one for each `INDEX_INTERVAL_BYTES`."""

from array import array
from bisect import bisect_left, bisect_right

import numpy as np

from coordinator_core.segment_log.segment_scan import Piece

#: `index.interval.bytes`.
INDEX_INTERVAL_BYTES = 4096


class SparseIndex:
    """Base offsets and byte positions of batches, with the greatest timestamp before each.

    One thread adds entries, in the order of the segment; several may look positions up.
    """

    def __init__(self) -> None:
        self._offsets = array("q")
        self._positions = array("q")
        self._timestamps = array("q")
        self._next_position = 0
        self._largest_timestamp = -1

    def note(self, base_offset: int, position: int, size: int, timestamp: int) -> None:
        """Add the next batches: their first offset and byte, their size and greatest timestamp."""
        if position >= self._next_position:
            self._timestamps.append(self._largest_timestamp)
            self._positions.append(position)
            # last: readers look offsets up, and then use the other fields
            self._offsets.append(base_offset)
            self._next_position = position + max(size, INDEX_INTERVAL_BYTES)
        self._largest_timestamp = max(self._largest_timestamp, timestamp)

    def note_piece(self, piece: Piece) -> None:
        """Add the batches of a piece."""
        batches = piece.batches
        slots = (batches["position"] + piece.position) // INDEX_INTERVAL_BYTES
        first = np.flatnonzero(np.diff(slots, prepend=-1))
        largest = np.maximum.reduceat(batches["max_timestamp"], first)
        positions = (batches["position"][first] + piece.position).tolist()
        for base_offset, position, timestamp in zip(
            batches["base_offset"][first].tolist(), positions, largest.tolist(), strict=True
        ):
            self.note(base_offset, position, 0, timestamp)

    def position_of(self, offset: int) -> int:
        """Return the position of a batch at or before the one that contains this offset."""
        entry = bisect_right(self._offsets, offset) - 1
        return self._positions[entry] if entry >= 0 else 0

    def offset_after(self, position: int) -> int | None:
        """Return the offset of the first entry at or after this position, None without one (`fetchUpperBoundOffset`)."""
        entry = bisect_left(self._positions, position, hi=len(self._offsets))
        return self._offsets[entry] if entry < len(self._offsets) else None

    def position_of_timestamp(self, timestamp: int) -> int:
        """Return the position of a batch at or before the first one with this timestamp or a greater one."""
        entry = bisect_left(self._timestamps, timestamp, hi=len(self._offsets)) - 1
        return self._positions[entry] if entry >= 0 else 0
