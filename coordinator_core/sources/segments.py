"""`segments:DIR`: a topic in the log directory of a broker, in a copy of it, or in a directory of the coordinator."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from coordinator_core.log.columns import RecordColumns
from coordinator_core.log.damage import TornEnd
from coordinator_core.log.errors import LogNotFound, LogTruncated, LogUnreadable, RecordsDeleted
from coordinator_core.log.leader_epochs import EpochEntry, first_begun_after, read_leader_epochs
from coordinator_core.log.partition_metadata import partition_of, read_topic_ids
from coordinator_core.log.record_batch import NO_LEADER_EPOCH
from coordinator_core.sources.segment_file import SegmentFile
from coordinator_core.sources.source import one_after_another

CONSUMER_OFFSETS = "__consumer_offsets"
CHUNK_BYTES = 4 * 1024 * 1024

#: Attempts to open a segment that the cleaner may delete after it was listed.
_ATTEMPTS = 5
_SEGMENT_NAME = re.compile(r"(\d{20})\.log")


@dataclass(frozen=True, slots=True)
class _End:
    """A scanned segment: `position` and `offset` after its last whole batch, and the leader epoch of that batch."""

    inode: int
    size: int
    modified: int
    position: int = 0
    offset: int = 0
    leader_epoch: int = NO_LEADER_EPOCH
    #: All leader epochs of the partition at the time of the scan.
    epochs: tuple[EpochEntry, ...] = ()


class SegmentSource:
    """The partitions of `topic`, the folders `TOPIC-N` in `directory`; implements `LogSource`.

    `directory` may also be one such folder. A broker may append to files, roll, compact or delete them during reads. Raises
    `LogNotFound` if the directory or such a folder is missing, `LogUnreadable` for other errors of the file system.
    """

    def __init__(self, directory: str | Path, topic: str = CONSUMER_OFFSETS) -> None:
        self._directory = Path(directory)
        self._topic = topic
        self._ends: dict[Path, _End] = {}
        #: The newest segment of each partition at the last call of `end_offsets`.
        self._newest: dict[int, _End] = {}
        if not self._folders():
            raise LogNotFound(f"{self._directory}: no {topic}-N folder in this directory")

    def partitions(self) -> tuple[int, ...]:
        """Partition numbers, ascending, including partitions without segments."""
        return tuple(sorted(self._folders()))

    def earliest_offsets(self) -> dict[int, int]:
        """Base offset of the first segment of each partition."""
        return {partition: self._earliest_offset(partition) for partition in self.partitions()}

    def end_offsets(self) -> dict[int, int]:
        """The offset after the last whole batch of each partition: its log end offset, even if the high watermark is lower."""
        return {partition: self._end_offset(partition) for partition in self.partitions()}

    def read_columns(
        self, partition: int, start: int, end: int | None = None, *, chunk_bytes: int = CHUNK_BYTES
    ) -> Iterator[RecordColumns]:
        """Yield the records from `start` up to, not including, `end` (None: to the end), in pieces of about `chunk_bytes`.

        A `start` of 0 is the start of the log at any offset. Raises `LogTruncated` if the partition ends before `start`, or,
        after yielding its records, before `end`; `RecordsDeleted` if it starts after `start`.
        """
        self._check_start(partition, start)
        self._check_end(partition, start)
        next_offset = max(start, 0)
        open_file: SegmentFile | None = None
        try:
            while end is None or next_offset < end:
                bases = list(self._segments(partition))
                if not bases:
                    break
                index = max(bisect_right(bases, next_offset) - 1, 0)
                next_offset = before = max(next_offset, bases[index])
                open_file = self._opened(partition, next_offset, open_file)
                for columns in open_file.read(next_offset, end, chunk_bytes):
                    next_offset = columns.next_offset
                    yield columns
                # Read a segment again until it has no new records: compaction may have merged the next one into it.
                if next_offset == before:
                    if index + 1 == len(bases):
                        break
                    next_offset = bases[index + 1]
        finally:
            if open_file is not None:
                open_file.close()
        if end is not None and next_offset < end:
            self._check_end(partition, end)

    def read_many(self, wanted: Mapping[int, tuple[int, int]]) -> Iterator[tuple[int, RecordColumns]]:
        """Read several partitions in sequence; see `LogSource`."""
        return one_after_another(self.read_columns, wanted)

    def torn_ends(self) -> tuple[TornEnd, ...]:
        """Bytes after the last whole batch of the newest segments. In older segments, reading reports them as damage."""
        return tuple(end for partition in self.partitions() if (end := self._torn_end(partition)) is not None)

    def topic_ids(self) -> dict[UUID, str]:
        """Topic ids from the `partition.metadata` files of all topics in the directory."""
        return read_topic_ids(self._directory.parent if self._is_folder() else self._directory)

    @property
    def topic_id(self) -> UUID | None:
        """None: a log moved to the folder of another topic, as when a broker takes it over, is still the same log."""
        return None

    def partition_count(self) -> None:
        """None: the files may be those of one broker of several."""

    def leader_epochs(self) -> dict[int, int]:
        """Leader epoch of the last batch of each partition at the last `end_offsets`.

        Without partitions whose newest segment has no batches, or batches of formats without epochs.
        """
        return {p: end.leader_epoch for p, end in self._newest.items() if end.leader_epoch != NO_LEADER_EPOCH}

    def truncated_partitions(self, positions: Mapping[int, tuple[int, int]]) -> dict[int, int]:
        """Find logs that were truncated below a position, even if they have grown beyond it since; see `LogSource`.

        A process that opens the log for writing starts a leader epoch at its end (`LeaderEpochFileCache`). A start below a
        position of an earlier epoch means that the records in between are lost.
        """
        folders = self._folders()
        begun = {
            partition: first_begun_after(epoch, read_leader_epochs(folders[partition]))
            for partition, (_, epoch) in positions.items()
            if partition in folders
        }
        return {p: offset for p, offset in begun.items() if offset is not None and offset < positions[p][0]}

    def close(self) -> None:
        """Do nothing: files are open only during a call."""

    def _is_folder(self) -> bool:
        named = partition_of(self._directory.name)
        return named is not None and named[0] == self._topic

    def _folders(self) -> dict[int, Path]:
        candidates = [self._directory] if self._is_folder() else self._listed(self._directory)
        named = ((partition_of(path.name), path) for path in candidates)
        return {name[1]: path for name, path in named if name is not None and name[0] == self._topic and path.is_dir()}

    def _folder(self, partition: int) -> Path:
        """The folder of a partition, found by its name: a broker's directory has the folders of all topics."""
        name = f"{self._topic}-{partition}"
        folder = self._directory if self._is_folder() else self._directory / name
        if folder.name != name or not folder.is_dir():
            raise LogNotFound(f"{self._directory}: no folder {name} in this directory")
        return folder

    def _segments(self, partition: int) -> dict[int, Path]:
        """Segment files of a partition by base offset, ascending."""
        folder = self._folder(partition)
        matches = ((_SEGMENT_NAME.fullmatch(path.name), path) for path in self._listed(folder))
        return dict(sorted((int(match[1]), path) for match, path in matches if match))

    @staticmethod
    def _listed(folder: Path) -> list[Path]:
        try:
            return list(folder.iterdir())
        except (FileNotFoundError, NotADirectoryError) as error:
            raise LogNotFound(f"{folder}: no such directory") from error
        except OSError as error:
            raise LogUnreadable(f"{folder}: {error.strerror}") from error

    def _opened(self, partition: int, offset: int, open_file: SegmentFile | None) -> SegmentFile:
        """Return the segment of `offset`: `open_file` if it still is that, else a newly opened one, closing `open_file`."""
        for _ in range(_ATTEMPTS):
            segments = self._segments(partition)
            path = segments.get(max((base for base in segments if base <= offset), default=min(segments, default=-1)))
            if path is None:
                continue
            if open_file is not None and open_file.is_still(path):
                return open_file
            try:
                opened = SegmentFile(path)
            except FileNotFoundError:
                continue
            if open_file is not None:
                open_file.close()
            return opened
        raise LogUnreadable(
            f"{self._directory}: the segment of partition {partition} with offset {offset} was deleted before it could be opened "
            f"({_ATTEMPTS} attempts); run again"
        )

    def _check_start(self, partition: int, offset: int) -> None:
        first = self._earliest_offset(partition)
        if 0 < offset < first:
            raise RecordsDeleted(
                f"{self._directory}: partition {partition} now starts at offset {first}, but offset {offset} is needed; "
                "the records in between were deleted"
            )

    def _check_end(self, partition: int, offset: int) -> None:
        actual = self._end_offset(partition)
        if actual < offset:
            raise LogTruncated(
                f"{self._directory}: partition {partition} ends at offset {actual}, before offset {offset}: "
                "the log was truncated, recreated or restored since it was last read"
            )

    def _earliest_offset(self, partition: int) -> int:
        return next(iter(self._segments(partition)), 0)

    def _end_offset(self, partition: int) -> int:
        segments = self._segments(partition)
        if not segments:
            return 0
        base, path = list(segments.items())[-1]
        self._newest[partition] = end = self._scanned(path)
        return max(base, end.offset)

    def _torn_end(self, partition: int) -> TornEnd | None:
        segments = self._segments(partition)
        if not segments:
            return None
        base, path = list(segments.items())[-1]
        end = self._scanned(path)
        size = end.size - end.position
        return TornEnd(str(path), partition, max(base, end.offset), end.position, size) if size > 0 else None

    def _scanned(self, path: Path) -> _End:
        """Find the end of one segment; a file that only grew is scanned from the end of the last scan.

        A truncated file may have grown to its former size since, but then the log has a new leader epoch.
        """
        try:
            file = SegmentFile(path)
        except FileNotFoundError as error:
            raise LogUnreadable(f"{path}: deleted while its end was read") from error
        try:
            status, known = file.status(), self._ends.get(path)
            stamp = status.st_ino, status.st_size, status.st_mtime_ns
            if known is not None and (known.inode, known.size, known.modified) == stamp:
                return known
            epochs = tuple(read_leader_epochs(path.parent))
            if known is None or (known.inode, known.epochs) != (status.st_ino, epochs) or status.st_size < known.size:
                known = _End(*stamp)
            further = file.scan_end(known.position, CHUNK_BYTES)
        finally:
            file.close()
        epoch = further.leader_epoch if further.consumed else known.leader_epoch
        self._ends[path] = end = _End(*stamp, known.position + further.consumed, max(known.offset, further.offset), epoch, epochs)
        return end
