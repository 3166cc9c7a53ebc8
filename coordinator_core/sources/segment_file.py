"""An open segment file, read in pieces while a broker may append to it, roll it or delete it."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from coordinator_core.log.columns import BatchesEnd, RecordColumns, end_of, parse_columns
from coordinator_core.log.damage import ENDS_READING
from coordinator_core.log.errors import LogUnreadable
from coordinator_core.log.record_batch import LOG_OVERHEAD, NO_LEADER_EPOCH

_OVERHEAD = 12


class SegmentFile:
    """Read position in one segment. The open handle keeps a deleted file readable and its inode in use."""

    def __init__(self, path: Path) -> None:
        """Open `path`; raises `FileNotFoundError` for a missing file, `LogUnreadable` for other errors."""
        self.path = path
        self._position = 0
        self._stopped_at = (-1, -1)
        try:
            self._file = path.open("rb", buffering=0)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise LogUnreadable(f"{path}: {error.strerror}") from error

    def is_still(self, path: Path) -> bool:
        """True if `path` is still this file, False if compaction has replaced it."""
        try:
            return path == self.path and path.stat().st_ino == os.fstat(self._file.fileno()).st_ino
        except OSError:
            return False

    def read(self, start: int, end: int | None, chunk_bytes: int) -> Iterator[RecordColumns]:
        """Yield the records of the range from the end of the last call to the current end of the file.

        Damage positions are positions in the file. Bytes after the last whole batch are reported once.
        """
        while True:
            data = self._bytes(chunk_bytes)
            here = self._position, len(data)
            if not data or here == self._stopped_at:
                return
            columns = parse_columns(data, start, end)
            start = columns.next_offset
            if columns.consumed == 0:
                self._stopped_at = here
                if columns.damages:
                    yield self._positioned(columns, keep_last=True)
                return
            yield self._positioned(columns, keep_last=False)
            self._position += columns.consumed
            if end is not None and start >= end:
                return

    def scan_end(self, position: int, chunk_bytes: int) -> BatchesEnd:
        """Find the end of the whole batches from `position`, reading only headers."""
        self._position, offset, epoch = position, 0, NO_LEADER_EPOCH
        while data := self._bytes(chunk_bytes):
            found = end_of(data)
            if found.consumed == 0:
                break
            self._position += found.consumed
            offset, epoch = max(offset, found.offset), found.leader_epoch
        return BatchesEnd(offset, epoch, self._position - position)

    def status(self) -> os.stat_result:
        """Inode, size and modification time of the open file."""
        return os.fstat(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _positioned(self, columns: RecordColumns, *, keep_last: bool) -> RecordColumns:
        """Convert damage positions to positions in the file. A problem at the end of a piece is left to the next piece."""
        damages = tuple(
            replace(damage, position=damage.position + self._position)
            for damage in columns.damages
            if keep_last or damage.problem not in ENDS_READING
        )
        return replace(columns, damages=damages)

    def _bytes(self, chunk_bytes: int) -> bytes:
        """Read the next piece: `chunk_bytes`, or more for a longer first batch."""
        descriptor, position = self._file.fileno(), self._position
        try:
            data = os.pread(descriptor, max(chunk_bytes, LOG_OVERHEAD), position)
            batch_bytes = LOG_OVERHEAD + int.from_bytes(data[8:LOG_OVERHEAD], "big", signed=True)
            wanted = min(batch_bytes, os.fstat(descriptor).st_size - position)
            return os.pread(descriptor, wanted, position) if len(data) < wanted else data
        except OSError as error:
            raise LogUnreadable(f"{self.path}: byte {position}: {error.strerror}") from error
