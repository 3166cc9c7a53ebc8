"""Outcome of the transactions in the cleaned part of a log (`CleanedTransactionMetadata`)."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from coordinator_core.log.entries import ControlType
from coordinator_core.log.record_batch import (
    CONTROL,
    TRANSACTIONAL,
    control_type,
    read_header,
)
from coordinator_core.segment_log.producer_replay import first_record
from coordinator_core.segment_log.segment_scan import Piece


@dataclass(slots=True)
class Transactions:
    """Batches of transactions by outcome, identified by base offset; complete after `note` of all pieces in order.

    Attributes:
        aborted: batches of data that an ABORT followed
        open: batches of data whose transaction does not end within the cleaned part
        idle_markers: markers of transactions without a remaining batch, and control batches without records
    """

    aborted: set[int] = field(default_factory=set)
    idle_markers: set[int] = field(default_factory=set)
    _unfinished: dict[int, list[int]] = field(default_factory=dict)

    @property
    def open(self) -> set[int]:
        return {base for batches in self._unfinished.values() for base in batches}

    def note(self, piece: Piece) -> None:
        """Add the next batches."""
        for batch in piece.batches[(piece.batches["attributes"] & TRANSACTIONAL) != 0]:
            base, producer_id = int(batch["base_offset"]), int(batch["producer_id"])
            if not int(batch["attributes"]) & CONTROL:
                self._unfinished.setdefault(producer_id, []).append(base)
                continue
            kind = _kind(piece, batch)
            if kind is None:
                self.idle_markers.add(base)
            elif kind in (ControlType.ABORT, ControlType.COMMIT):
                self._end(base, producer_id, aborted=kind == ControlType.ABORT)

    def _end(self, marker: int, producer_id: int, *, aborted: bool) -> None:
        batches = self._unfinished.pop(producer_id, None)
        if batches is None:
            self.idle_markers.add(marker)
        elif aborted:
            self.aborted.update(batches)


def _kind(piece: Piece, batch: npt.NDArray[np.void]) -> int | None:
    """Return the type of the first record of a control batch; None if it has no records."""
    whole = memoryview(piece.data)[int(batch["position"]) : int(batch["end"])]
    first = first_record(whole, read_header(whole))
    return None if first is None else control_type(first.key)
