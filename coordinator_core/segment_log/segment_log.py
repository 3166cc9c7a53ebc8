"""The log of a topic without brokers: a folder per partition, in the format of a broker's log directory."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from uuid import UUID, uuid4

from coordinator_core.codec.uuids import uuid_text
from coordinator_core.log.partition_metadata import format_topic_id, parse_topic_id, partition_of
from coordinator_core.segment_log.cleaner import CleanResult
from coordinator_core.segment_log.cleaner_offsets import read_cleaner_offsets, write_cleaner_offsets
from coordinator_core.segment_log.errors import PartitionFailed, PartitionsDiffer
from coordinator_core.segment_log.flushing import flush_together
from coordinator_core.segment_log.lock import FolderLock
from coordinator_core.segment_log.partition_log import PartitionLog
from coordinator_core.segment_log.recovery import CutTail
from coordinator_core.segment_log.segment import segment_paths, sync_folder
from coordinator_core.segment_log.settings import SegmentLogSettings

_METADATA = "partition.metadata"


class SegmentLog:
    """All partitions of a topic, in a folder that is locked while this object is open. Created by `open`."""

    #: Loads use the processor, appends are writes to the page cache.
    load_threads = 1
    append_threads = 0

    def __init__(
        self,
        directory: Path,
        topic: str,
        topic_id: UUID,
        lock: FolderLock | None,
        partitions: int,
        opened: Mapping[int, PartitionLog],
        settings: SegmentLogSettings,
    ) -> None:
        self.directory = directory
        self.topic = topic
        self.topic_id = topic_id
        #: Number of partitions of the topic.
        self.partitions = partitions
        self._lock = lock
        self._opened = opened
        self._settings = settings

    @classmethod
    def open(
        cls,
        directory: str | Path,
        topic: str,
        partitions: int,
        settings: SegmentLogSettings,
        *,
        is_locked: bool = False,
        numbers: Sequence[int] | None = None,
    ) -> "SegmentLog":
        """Lock the folder unless it `is_locked`, create missing partitions, and recover those of these numbers (None: all).

        A folder is locked by an open log of another topic there, which must be closed last, or by the parent process.

        Raises:
            LogInUse: another process or object holds the lock
            PartitionsDiffer: the folder has records and another number of partitions
            LogDamaged: damage in a segment that is not the last of its partition
            OldMessages: records in a format from before Kafka 0.11
            PartitionFailed: existing records cannot be made durable
            OSError: a file operation failed
        """
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        lock = None if is_locked else FolderLock(folder)
        opened: dict[int, PartitionLog] = {}
        try:
            topic_id = create_partitions(folder, topic, partitions)
            dirty = read_cleaner_offsets(folder, topic)
            for number in range(partitions) if numbers is None else numbers:
                opened[number] = PartitionLog(_folder_of(folder, topic, number), settings, dirty.get(number, 0))
            # compile the flush now, not during the first request
            flush_together([])
        except BaseException:
            for partition in opened.values():
                partition.close()
            if lock is not None:
                lock.release()
            raise
        return cls(folder, topic, topic_id, lock, partitions, opened, settings)

    @property
    def numbers(self) -> Sequence[int]:
        """The partitions that are open."""
        return tuple(self._opened)

    @property
    def owned_at_start(self) -> Sequence[int]:
        """The open partitions: the lock of the folder keeps other coordinators out."""
        return self.numbers

    def partition(self, number: int) -> PartitionLog:
        """Return the open partition of this number."""
        return self._opened[number]

    def flush(self, partitions: Sequence[int]) -> list[PartitionFailed | None]:
        """Flush several partitions (`PartitionLog.flush`); return each one's error, or None."""
        return flush_together([self._opened[number] for number in partitions])

    def cut_tails(self) -> tuple[CutTail, ...]:
        """Bytes that recovery cut off, of all partitions."""
        return tuple(each.cut_tail for each in self._opened.values() if each.cut_tail is not None)

    def dirtiest(self, now_ms: int) -> PartitionLog | None:
        """Return the partition with the greatest cleanable ratio, None if that is at most `min_cleanable_dirty_ratio`."""
        ratio, number = max((each.cleanable_ratio(now_ms), -each.partition) for each in self._opened.values())
        return self._opened[-number] if ratio > self._settings.min_cleanable_dirty_ratio else None

    def cleaning(self, partition: PartitionLog, now_ms: int) -> Iterator[CleanResult]:
        """Clean a partition in slices (`PartitionLog.cleaning`) and store its cleaner offset. Raises CleanFailed, OSError."""
        yield from partition.cleaning(now_ms)
        dirty = {number: each.first_dirty_offset for number, each in self._opened.items()}
        write_cleaner_offsets(self.directory, self.topic, dirty)

    def clean(self, now_ms: int) -> CleanResult | None:
        """Clean the dirtiest partition; None if none is dirty enough. May run in a separate thread, one call at a time."""
        partition = self.dirtiest(now_ms)
        result = None if partition is None else CleanResult(partition.partition)
        for result in () if partition is None else self.cleaning(partition, now_ms):  # noqa: B007
            pass
        return result

    def close(self) -> None:
        """Close all files, without a flush, and release the lock unless it belongs to another log."""
        for partition in self._opened.values():
            partition.close()
        if self._lock is not None:
            self._lock.release()


def _folder_of(directory: Path, topic: str, partition: int) -> Path:
    return directory / f"{topic}-{partition}"


def create_partitions(directory: Path, topic: str, partitions: int) -> UUID:
    """Create missing partitions in a locked folder, and return the topic id. Raises PartitionsDiffer, OSError."""
    _expect_partitions(directory, topic, partitions)
    return _made(directory, topic, partitions)


def _expect_partitions(directory: Path, topic: str, partitions: int) -> None:
    named = {path: partition_of(path.name) for path in directory.iterdir() if path.is_dir()}
    found = {name[1]: path for path, name in named.items() if name is not None and name[0] == topic}
    is_whole = found.keys() == set(range(partitions))
    has_records = any(path.stat().st_size for folder in found.values() for path in segment_paths(folder).values())
    if found and not is_whole and (has_records or max(found) >= partitions):
        raise PartitionsDiffer(
            f"{directory}: {topic} has {len(found)} partitions, but {partitions} are configured, which would map groups to other "
            "partitions: set the number of partitions to that of the folder, or use another folder"
        )


def _made(directory: Path, topic: str, partitions: int) -> UUID:
    """Create missing folders and metadata files, and return the topic id."""
    paths = [_folder_of(directory, topic, number) / _METADATA for number in range(partitions)]
    known = [parse_topic_id(path.read_text(errors="replace")) for path in paths if path.exists()]
    topic_id = next((found for found in known if found is not None), None) or new_topic_id()
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        if not path.exists() or parse_topic_id(path.read_text(errors="replace")) is None:
            path.write_text(format_topic_id(topic_id))
    sync_folder(directory)
    return topic_id


def new_topic_id() -> UUID:
    """Return a random id whose text does not begin with a dash, as Kafka requires."""
    while uuid_text(topic_id := uuid4()).startswith("-"):
        pass
    return topic_id
