"""One open segment file, read in pieces while a broker may append to it, roll it or delete it."""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from coordinator_core.log.columns import LogEnd, RecordColumns, end_of, parse_columns
from coordinator_core.log.damage import ENDS_READING
from coordinator_core.log.errors import LogUnreadable
from coordinator_core.log.record_batch import LOG_OVERHEAD, NO_LEADER_EPOCH

_OVERHEAD = 12


class SegmentFile:
    """Position in one segment. The handle stays open, so that a deleted file can be read on and its inode is not given away."""

    def __init__(self, path: Path) -> None:
        """Opens `path`; raises `FileNotFoundError` when it has gone, `LogUnreadable` when it cannot be opened."""
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
        """Whether `path` names this very file, not one that compaction put in its place."""
        try:
            return path == self.path and path.stat().st_ino == os.fstat(self._file.fileno()).st_ino
        except OSError:
            return False

    def read(self, start: int, end: int | None, chunk_bytes: int) -> Iterator[RecordColumns]:
        """Everything of the range from where the last call stopped to the present end of the file.

        Damage positions are those in the file. Bytes behind the last whole batch are reported once.
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
                    yield self._placed(columns, keep_last=True)
                return
            yield self._placed(columns, keep_last=False)
            self._position += columns.consumed
            if end is not None and start >= end:
                return

    def scan_end(self, position: int, chunk_bytes: int) -> LogEnd:
        """Where the whole batches from `position` on end, by headers alone."""
        self._position, offset, epoch = position, 0, NO_LEADER_EPOCH
        while data := self._bytes(chunk_bytes):
            found = end_of(data)
            if found.consumed == 0:
                break
            self._position += found.consumed
            offset, epoch = max(offset, found.offset), found.leader_epoch
        return LogEnd(offset, epoch, self._position - position)

    def status(self) -> os.stat_result:
        """Inode, size and time of the open file."""
        return os.fstat(self._file.fileno())

    def close(self) -> None:
        """Closes the handle."""
        self._file.close()

    def _placed(self, columns: RecordColumns, *, keep_last: bool) -> RecordColumns:
        """Damage by position in the file. What ends a piece is no damage yet: the next piece begins with it."""
        damages = tuple(
            replace(damage, position=damage.position + self._position)
            for damage in columns.damages
            if keep_last or damage.problem not in ENDS_READING
        )
        return replace(columns, damages=damages)

    def _bytes(self, chunk_bytes: int) -> bytes:
        """The next piece: `chunk_bytes`, or more where the first batch is longer than that."""
        descriptor, position = self._file.fileno(), self._position
        try:
            data = os.pread(descriptor, max(chunk_bytes, LOG_OVERHEAD), position)
            batch_bytes = LOG_OVERHEAD + int.from_bytes(data[8:LOG_OVERHEAD], "big", signed=True)
            wanted = min(batch_bytes, os.fstat(descriptor).st_size - position)
            return os.pread(descriptor, wanted, position) if len(data) < wanted else data
        except OSError as error:
            raise LogUnreadable(f"{self.path}: byte {position}: {error.strerror}") from error
