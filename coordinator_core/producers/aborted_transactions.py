"""The index of aborted transactions (`TransactionIndex`, `AbortedTxn`): a row per aborted transaction with data."""

import struct
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import NamedTuple

_ROW = struct.Struct(">hqqqq")
_VERSION = 0


class AbortedTransaction(NamedTuple):
    """A row: `last_offset` is that of the marker, `last_stable_offset` the last stable one after its append."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int

    def to_bytes(self) -> bytes:
        """Return the row as in the file."""
        return _ROW.pack(_VERSION, *self)


class Collected(NamedTuple):
    """Rows of a query; `is_complete`: later indexes have no row of the range."""

    rows: list[AbortedTransaction]
    is_complete: bool


class AbortedTransactions:
    """Rows in the order of their markers, of one segment or of several."""

    def __init__(self, rows: Iterable[AbortedTransaction] = ()) -> None:
        self._rows: list[AbortedTransaction] = []
        for row in rows:
            self.append(row)

    @property
    def rows(self) -> Sequence[AbortedTransaction]:
        """All rows."""
        return self._rows

    def append(self, row: AbortedTransaction) -> None:
        """Add a row. Raises ValueError if its marker does not follow that of the last row."""
        if self._rows and row.last_offset <= self._rows[-1].last_offset:
            raise ValueError(f"the marker at offset {row.last_offset} does not follow the one at {self._rows[-1].last_offset}")
        self._rows.append(row)

    def collect(self, fetch_offset: int, upper_bound: int) -> Collected:
        """Return the transactions that overlap the offsets from `fetch_offset` up to, not including, `upper_bound`."""
        found = []
        for row in self._rows[bisect_left(self._rows, fetch_offset, key=_last_offset) :]:
            if row.first_offset < upper_bound:
                found.append(row)
            if row.last_stable_offset >= upper_bound:
                return Collected(found, True)
        return Collected(found, False)

    def truncate_to(self, offset: int) -> None:
        """Remove the rows whose markers are at or after `offset`."""
        del self._rows[bisect_left(self._rows, offset, key=_last_offset) :]

    def remove_before(self, offset: int) -> None:
        """Remove the rows whose markers are before `offset`."""
        del self._rows[: bisect_left(self._rows, offset, key=_last_offset)]


def _last_offset(row: AbortedTransaction) -> int:
    return row.last_offset


def write_index(rows: Iterable[AbortedTransaction]) -> bytes:
    """Encode the index of a segment."""
    return b"".join(row.to_bytes() for row in rows)
