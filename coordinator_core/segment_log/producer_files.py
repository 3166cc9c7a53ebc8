"""Files of producer states beside the segments of a partition, in Kafka's formats: `.snapshot` and `.txnindex`."""

import re
from collections.abc import Collection, Iterable
from pathlib import Path

from coordinator_core.log.file_replacement import replace_file
from coordinator_core.producers.aborted_transactions import AbortedTransaction, AbortedTransactions, write_index
from coordinator_core.producers.snapshot import CorruptSnapshot, check_snapshot, read_snapshot, write_snapshot
from coordinator_core.producers.state_manager import ProducerStateManager

SNAPSHOT = ".snapshot"
INDEX = ".txnindex"
PRODUCER_FILES = (SNAPSHOT, INDEX)
#: An offset of 20 digits.
_NAME = re.compile(r"[0-9]{20}")


class ProducerFiles:
    """Snapshots and aborted transactions of one partition.

    A snapshot is named after the first offset that it does not cover. The index of a segment has the transactions whose ABORT
    marker is in the segment; it exists only if there are some. `aborted` has those of all segments.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.aborted = AbortedTransactions()

    # ---- snapshots

    def snapshot_offsets(self) -> list[int]:
        """Return the offsets of the snapshots, ascending."""
        return sorted(_offset(path) for path in self._paths(SNAPSHOT))

    def take_snapshot(self, states: ProducerStateManager) -> None:
        """Write a durable snapshot of the states, unless there is one at their end. Raises OSError."""
        path = self._path(states.map_end_offset, SNAPSHOT)
        if states.map_end_offset > max(self.snapshot_offsets(), default=0):
            replace_file(path, write_snapshot(states.entries.values()))

    def load(self, states: ProducerStateManager, offset: int) -> None:
        """Set the states to the snapshot at this offset; to none without a valid snapshot. A corrupt file is removed."""
        path = self._path(offset, SNAPSHOT)
        try:
            entries = read_snapshot(path.read_bytes())
            check_snapshot(entries, offset)
            states.start_at(offset, entries)
        except FileNotFoundError:
            states.start_at(offset)
        except CorruptSnapshot:
            path.unlink()
            states.start_at(offset)

    def remove_before(self, offset: int) -> None:
        """Remove snapshots, and rows and indexes of segments, before the new first segment."""
        for path in self._paths(SNAPSHOT, INDEX):
            if _offset(path) < offset:
                path.unlink(missing_ok=True)
        self.aborted.remove_before(offset)

    # ---- aborted transactions

    def append_aborted(self, row: AbortedTransaction, base_offset: int) -> None:
        """Add the row to the index of the segment with this base offset. Raises OSError."""
        with self._path(base_offset, INDEX).open("ab", buffering=0) as file:
            file.write(row.to_bytes())
        self.aborted.append(row)

    def reset(self, base_offsets: Collection[int], end_offset: int, aborted: Iterable[AbortedTransaction]) -> None:
        """Make the files match recovered segments.

        Stray snapshots are removed, except that of a clean shutdown at `end_offset` (`removeStraySnapshots`). Indexes are
        written again if they differ.
        """
        kept = {*base_offsets, end_offset}
        for path in self._paths(SNAPSHOT):
            if _offset(path) not in kept:
                path.unlink()
        self.aborted = AbortedTransactions(aborted)
        self.write_indexes(base_offsets)

    def write_indexes(self, base_offsets: Collection[int]) -> None:
        """Write the indexes of all segments that differ from their files, and remove the others."""
        bases = sorted(base_offsets)
        wanted: dict[Path, bytes] = {}
        for base, end in zip(bases, [*bases[1:], 1 << 63], strict=True):
            rows = [row for row in self.aborted.rows if base <= row.last_offset < end]
            if rows:
                wanted[self._path(base, INDEX)] = write_index(rows)
        for path in self._paths(INDEX):
            if path not in wanted:
                path.unlink()
        for path, data in wanted.items():
            if not path.exists() or path.read_bytes() != data:
                replace_file(path, data)

    def _path(self, offset: int, suffix: str) -> Path:
        return self.folder / f"{offset:020}{suffix}"

    def _paths(self, *suffixes: str) -> list[Path]:
        return [path for path in self.folder.iterdir() if path.suffix in suffixes and _NAME.fullmatch(path.stem)]


def _offset(path: Path) -> int:
    return int(path.stem)
