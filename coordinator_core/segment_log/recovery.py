"""Recovery of a partition: finish or undo an interrupted cleaning, cut off a torn tail (`LogLoader`)."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from coordinator_core.log.force import force
from coordinator_core.producers.aborted_transactions import AbortedTransaction
from coordinator_core.producers.state_manager import ProducerStateManager
from coordinator_core.segment_log.errors import LogDamaged, OldMessages
from coordinator_core.segment_log.producer_files import PRODUCER_FILES, ProducerFiles
from coordinator_core.segment_log.producer_replay import replay_producers
from coordinator_core.segment_log.segment import (
    CLEANED,
    DELETED,
    DERIVED,
    LOG,
    SWAP,
    Segment,
    log_path,
    segment_paths,
    sync_folder,
)
from coordinator_core.segment_log.segment_scan import Piece, ScanEnd, pieces
from coordinator_core.segment_log.sparse_index import SparseIndex


@dataclass(frozen=True, slots=True)
class CutTail:
    """Bytes cut off the last segment because they are not complete batches: `size` bytes from byte `position` of `path` on.

    The log continues at `offset`. `why` describes the problem of the first of them.
    """

    path: Path
    position: int
    size: int
    offset: int
    why: str

    def __str__(self) -> str:
        return f"{self.path}: {self.size:,} bytes cut off from byte {self.position:,}, offset {self.offset} on: {self.why}"


@dataclass(slots=True)
class Recovered:
    """State of a partition after recovery. The last of `segments` is the active one.

    `first_timestamp` is that of the first batch in the last segment, `leader_epoch` the greatest of all batches; -1 for none.
    `aborted` has the aborted transactions, `indexes` an index for each segment.
    """

    segments: list[Segment] = field(default_factory=list)
    end_offset: int = 0
    first_timestamp: int = -1
    leader_epoch: int = -1
    producers: ProducerStateManager = field(default_factory=ProducerStateManager)
    aborted: list[AbortedTransaction] = field(default_factory=list)
    indexes: dict[int, SparseIndex] = field(default_factory=dict)
    cut_tail: CutTail | None = None


def recover(folder: Path, producers: ProducerStateManager, producer_files: ProducerFiles | None = None) -> Recovered:
    """Repair the files of a partition and read all batches.

    Producer states begin with the snapshot at the first segment, if there are `producer_files`, and every batch is replayed.
    Brokers load the newest snapshot; since all batches are read here anyway, all remembered batches survive a restart.

    Raises LogDamaged for damage in a segment that is not the last, OldMessages for formats before Kafka 0.11, OSError.
    """
    finish_interrupted_cleaning(folder)
    remove_derived(folder, keep=PRODUCER_FILES if producer_files is not None else ())
    found = Recovered(producers=producers)
    paths = segment_paths(folder) or {0: log_path(folder, 0)}
    if producer_files is not None:
        producer_files.load(producers, next(iter(paths)))
    last = next(reversed(paths))
    for base_offset, path in paths.items():
        if base_offset < found.end_offset:
            previous = f"the previous segment ends at offset {found.end_offset - 1}"
            raise LogDamaged(f"{path}: begins at offset {base_offset}, but {previous}: restore the files")
        found.end_offset = base_offset
        _read_through(found, base_offset, path, is_last=base_offset == last)
    if producer_files is not None:
        producer_files.reset(paths, found.end_offset, found.aborted)
    return found


def _read_through(found: Recovered, base_offset: int, path: Path, *, is_last: bool) -> None:
    if not path.exists():
        found.segments.append(Segment(base_offset, path, 0, -1))
        return
    size, largest, found.first_timestamp = 0, -1, -1
    index = found.indexes[base_offset] = SparseIndex()
    for piece in pieces(path, base_offset):
        if isinstance(piece, ScanEnd):
            _stopped(found, path, piece, is_last=is_last)
            break
        size = piece.position + len(piece.data)
        largest = max(largest, int(piece.batches["max_timestamp"].max()))
        _note(found, piece)
        index.note_piece(piece)
    found.segments.append(Segment(base_offset, path, size, largest))


def _note(found: Recovered, piece: Piece) -> None:
    if found.first_timestamp < 0:
        found.first_timestamp = int(piece.batches["max_timestamp"][0])
    found.end_offset = int(piece.batches["last_offset"][-1]) + 1
    found.leader_epoch = max(found.leader_epoch, int(piece.leader_epochs.max()))
    found.aborted += replay_producers(found.producers, piece)


def _stopped(found: Recovered, path: Path, stop: ScanEnd, *, is_last: bool) -> None:
    if stop.is_old:
        raise OldMessages(
            f"{path}: at byte {stop.position:,}, offset {found.end_offset}: {stop.why}, which this log does not support. "
            "Nothing was cut off: use an empty folder"
        )
    if not is_last:
        raise LogDamaged(
            f"{path}: damaged at byte {stop.position:,}, offset {found.end_offset}: {stop.why}. A crash of a writer damages "
            "only the last segment; this is an earlier one. Nothing was cut off: restore the file, or truncate it at this byte"
        )
    size = path.stat().st_size - stop.position
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        os.ftruncate(descriptor, stop.position)
        force(descriptor)
    finally:
        os.close(descriptor)
    found.cut_tail = CutTail(path, stop.position, size, found.end_offset, stop.why)


def finish_interrupted_cleaning(folder: Path) -> None:
    """Finish or undo a cleaning that was killed, by the suffixes of its files and Kafka's rules.

    A `.cleaned` file is incomplete and is removed, with every `.swap` file at the same or a greater base offset. Any other
    `.swap` file is complete: it replaces the segments that it covers. `.deleted` files are removed.
    """
    names = sorted(path.name for path in folder.iterdir() if path.name[:20].isdigit())
    cleaned = [name for name in names if name.endswith(CLEANED)]
    swapped = [name for name in names if name.endswith(SWAP)]
    if not cleaned and not swapped and not any(name.endswith(DELETED) for name in names):
        return
    first_cleaned = min((_offset(name) for name in cleaned), default=None)
    valid = [name for name in swapped if first_cleaned is None or _offset(name) < first_cleaned]
    for name in names:
        if name.endswith((CLEANED, DELETED)) or (name in swapped and name not in valid):
            (folder / name).unlink()
    for name in valid:
        if name.endswith(LOG + SWAP):
            _remove_covered(folder, name)
    for name in valid:
        os.replace(folder / name, folder / name.removesuffix(SWAP))
    sync_folder(folder)


def _remove_covered(folder: Path, name: str) -> None:
    base_offset = end_offset = _offset(name)
    for piece in pieces(folder / name, base_offset):
        if isinstance(piece, Piece):
            end_offset = int(piece.batches["last_offset"][-1]) + 1
    # also remove the segment of the same base offset: if both names are links to one file, a rename would do nothing
    for offset, path in segment_paths(folder).items():
        if base_offset == offset or base_offset <= offset < end_offset:
            path.unlink()


def remove_derived(folder: Path, keep: tuple[str, ...] = ()) -> None:
    """Remove a broker's indexes and snapshots, which would not match the segments after appends and cleanings."""
    for path in folder.iterdir():
        if path.name.endswith(DERIVED) and path.name[:20].isdigit() and path.suffix not in keep:
            path.unlink()


def _offset(name: str) -> int:
    return int(name[:20])
