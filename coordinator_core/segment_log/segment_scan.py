"""Scan of a segment file, one piece at a time, with the checks that find torn and damaged batches."""

import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from coordinator_core.log.columns import batches_of
from coordinator_core.log.damage import Problem
from coordinator_core.log.record_batch import LEADER_EPOCH_START, LOG_OVERHEAD
from coordinator_core.segment_log.segment import MOST_OFFSETS

#: Small enough that other threads wait only briefly, large enough that the cost of calls is negligible.
PIECE_BYTES = 1024 * 1024

_LEADER_EPOCH = np.arange(LEADER_EPOCH_START, LEADER_EPOCH_START + 4)
_OUT_OF_ORDER = "offsets do not follow the previous batch, or are outside of this segment"
#: Messages of magic 0 and 1: end of offset, size and checksum, and end of the fields before key and value length.
_OLD_CRC_END = LOG_OVERHEAD + 4
_OLD_HEADER = _OLD_CRC_END + 2
_OLD_MESSAGES = "messages in a format from before Kafka 0.11"


@dataclass(frozen=True, slots=True)
class Piece:
    """Complete batches of a file from `position` on: their bytes, and a row of `BATCH` for each."""

    position: int
    data: bytes
    batches: npt.NDArray[np.void]

    @property
    def leader_epochs(self) -> npt.NDArray[np.int64]:
        """The leader epoch of each batch."""
        where = self.batches["position"][:, None] + _LEADER_EPOCH
        return np.frombuffer(self.data, np.uint8)[where].view(">i4")[:, 0].astype(np.int64)


@dataclass(frozen=True, slots=True)
class ScanEnd:
    """End of the valid part of a segment: `position` is the first invalid byte, `why` the problem.

    `is_old`: a message in a format from before Kafka 0.11 with a correct checksum begins there.
    """

    position: int
    why: str
    is_old: bool = False


def pieces(path: Path, base_offset: int, *, upto: int | None = None) -> Iterator[Piece | ScanEnd]:
    """Yield the batches up to the end of the file (byte `upto`, if given), or up to a `ScanEnd` at the first invalid byte."""
    position, next_offset = 0, base_offset
    with path.open("rb", buffering=0) as file:
        end = os.fstat(file.fileno()).st_size if upto is None else upto
        while position < end and (data := _read(file.fileno(), position, end)):
            batches, _ = batches_of(data)
            bad = _first_bad(batches, base_offset, next_offset)
            good = batches if bad is None else batches[:bad]
            if len(good):
                size = int(good["end"][-1])
                yield Piece(position, data[:size], good)
                next_offset = int(good["last_offset"][-1]) + 1
                position += size
            if bad is not None and (bad == 0 or bad < len(batches) - 1 or int(batches["problem"][bad]) != Problem.TORN_TAIL):
                yield _stop(position, data, batches[bad])
                return


def _read(descriptor: int, position: int, end: int) -> bytes:
    data = os.pread(descriptor, min(PIECE_BYTES, end - position), position)
    batch_bytes = LOG_OVERHEAD + int.from_bytes(data[8:LOG_OVERHEAD], "big", signed=True)
    wanted = min(batch_bytes, end - position)
    return os.pread(descriptor, wanted, position) if len(data) < wanted else data


def _first_bad(batches: npt.NDArray[np.void], base_offset: int, next_offset: int) -> int | None:
    before = np.concatenate([[next_offset - 1], batches["last_offset"][:-1]])
    bad = (batches["problem"] | batches["crc_problem"]) != 0
    bad |= batches["magic"] < 2
    bad |= (batches["base_offset"] <= before) | (batches["last_offset"] - base_offset > MOST_OFFSETS)
    return int(np.argmax(bad)) if bad.any() else None


def _stop(position: int, data: bytes, batch: npt.NDArray[np.void]) -> ScanEnd:
    if _is_old_message(data, batch):
        return ScanEnd(position, _OLD_MESSAGES, is_old=True)
    number = int(batch["problem"] or batch["crc_problem"])
    return ScanEnd(position, Problem(number).text.partition(";")[0] if number else _OUT_OF_ORDER)


def _is_old_message(data: bytes, batch: npt.NDArray[np.void]) -> bool:
    """Whether an old message with a correct checksum begins here; its checksum is in another place than that of a batch."""
    start, end = int(batch["position"]), int(batch["end"])
    if int(batch["magic"]) >= 2 or int(batch["problem"]) or end - start < _OLD_HEADER:
        return False
    return zlib.crc32(data[start + _OLD_CRC_END : end]) == int.from_bytes(
        data[start + LOG_OVERHEAD : start + _OLD_CRC_END], "big"
    )
