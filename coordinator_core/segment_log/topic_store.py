"""The topics with data in a log directory: their partitions, configs and ids, which survive a restart."""

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID, uuid4

from coordinator_core.log.checkpoint_file import read_offsets, write_lines
from coordinator_core.log.partition_metadata import format_topic_id
from coordinator_core.producers.rules import ProducerRules
from coordinator_core.segment_log.cleaner import CleanResult
from coordinator_core.segment_log.cleaner_offsets import read_cleaner_offsets, remove_cleaner_offsets, write_cleaner_offsets
from coordinator_core.segment_log.data_partition import DataPartition
from coordinator_core.segment_log.errors import PartitionFailed, SegmentLogError
from coordinator_core.segment_log.flushing import flush_together
from coordinator_core.segment_log.segment import sync_folder
from coordinator_core.segment_log.segment_log import new_topic_id
from coordinator_core.segment_log.topic_config import TopicConfig
from coordinator_core.segment_log.topics_file import TOPICS_FILE, StoredTopic, read_topics, write_topics

START_OFFSETS = "log-start-offset-checkpoint"
_DELETED = "-delete"


@dataclass(slots=True)
class DataTopic:
    """A topic with data. `is_declared`: its existence is part of the configuration."""

    name: str
    topic_id: UUID
    config: TopicConfig
    partitions: list[DataPartition] = field(default_factory=list)
    is_declared: bool = False


class TopicStore:
    """The topics with data of one log directory, which another object has locked.

    One thread calls everything except `flush` and `clean`. Folders of other topics in the directory stay untouched.
    """

    def __init__(
        self,
        directory: str | Path,
        declared: Mapping[str, tuple[int, TopicConfig]],
        rules: ProducerRules,
        producer_id_expiration_ms: int,
    ) -> None:
        """Recover the topics, and create the declared ones that are missing: name → partitions and configs.

        A declared topic has at least these partitions, and these configs. Raises the errors of `PartitionLog`, LogDamaged if the
        list of topics is unreadable, OSError.
        """
        self.directory = Path(directory)
        self._rules = rules
        self._expiration_ms = producer_id_expiration_ms
        self.topics: dict[str, DataTopic] = {}
        self._remove_deleted()
        self._start_offsets = read_offsets(self.directory / START_OFFSETS)
        try:
            for name, (topic_id, partitions, config) in read_topics(self.directory / TOPICS_FILE).items():
                self.topics[name] = self._opened(name, topic_id, partitions, config)
            for name, (partitions, config) in declared.items():
                self._declare(name, partitions, config)
        except BaseException:
            self.close_files()
            raise

    def _declare(self, name: str, partitions: int, config: TopicConfig) -> None:
        topic = self.topics.get(name) or self.create(name, partitions, config)
        topic.is_declared = True
        if partitions > len(topic.partitions):
            self.add_partitions(name, partitions)
        if dict(config.values) != dict(topic.config.values):
            self.configure(name, config)

    def _opened(self, name: str, topic_id: UUID, partitions: int, config: TopicConfig) -> DataTopic:
        topic = DataTopic(name, topic_id, config)
        dirty = read_cleaner_offsets(self.directory, name)
        for number in range(partitions):
            folder = self._folder_of(name, number)
            if not folder.exists():
                self._make_folder(folder, topic_id)
            start = self._start_offsets.get((name, number), 0)
            topic.partitions.append(
                DataPartition(
                    folder,
                    config,
                    self._rules,
                    self._expiration_ms,
                    first_dirty_offset=dirty.get(number, 0),
                    log_start_offset=start,
                )
            )
        return topic

    # ---- changes

    def create(self, name: str, partitions: int, config: TopicConfig) -> DataTopic:
        """Create a topic. Raises OSError."""
        topic_id = new_topic_id()
        for number in range(partitions):
            folder = self._folder_of(name, number)
            if folder.exists():
                # left by a creation that was killed, or by another writer: its records belong to no topic of the list
                self._retire(folder)
            self._make_folder(folder, topic_id)
        sync_folder(self.directory)
        topic = self._opened(name, topic_id, partitions, config)
        self.topics[name] = topic
        self._write_topics()
        return topic

    def delete(self, name: str) -> None:
        """Delete a topic with its data. Raises OSError."""
        topic = self.topics.pop(name)
        self._write_topics()
        for partition in topic.partitions:
            partition.log.close()
        retired = [self._retire(self._folder_of(name, number)) for number in range(len(topic.partitions))]
        sync_folder(self.directory)
        for folder in retired:
            shutil.rmtree(folder, ignore_errors=True)
        # a topic of the same name begins without them
        remove_cleaner_offsets(self.directory, name)
        self.store_start_offsets()

    def add_partitions(self, name: str, total: int) -> None:
        """Add partitions to a topic, up to this total. Raises OSError."""
        topic = self.topics[name]
        old = topic.partitions
        added = range(len(old), total)
        for number in added:
            self._make_folder(self._folder_of(name, number), topic.topic_id)
        sync_folder(self.directory)
        topic.partitions = old + [
            DataPartition(self._folder_of(name, number), topic.config, self._rules, self._expiration_ms) for number in added
        ]
        self._write_topics()

    def configure(self, name: str, config: TopicConfig) -> None:
        """Replace the configs of a topic. Raises OSError."""
        topic = self.topics[name]
        topic.config = config
        for partition in topic.partitions:
            partition.configure(config)
        self._write_topics()

    def store_start_offsets(self) -> None:
        """Store the starts of the logs that are not those of their first segments. Raises OSError."""
        self._start_offsets = {
            (topic.name, number): partition.log_start_offset
            for topic in self.topics.values()
            for number, partition in enumerate(topic.partitions)
            if partition.log_start_offset > partition.log.segments[0].base_offset
        }
        lines = [f"{name} {number} {offset}" for (name, number), offset in sorted(self._start_offsets.items())]
        write_lines(self.directory / START_OFFSETS, lines, durable=True)
        sync_folder(self.directory)

    # ---- upkeep

    def partitions(self) -> Iterable[DataPartition]:
        """Yield the partitions of all topics."""
        for topic in list(self.topics.values()):
            yield from topic.partitions

    def flush(self, partitions: Sequence[DataPartition]) -> list[PartitionFailed | None]:
        """Fsync these partitions; return each one's error, or None. May run in another thread."""
        return flush_together([partition.log for partition in partitions])

    def clean(self, now_ms: int) -> CleanResult | None:
        """Compact the dirtiest partition of the compacted topics; None if none is dirty enough. May run in another thread.

        Raises CleanFailed, OSError.
        """
        candidates = [
            (partition.log.cleanable_ratio(now_ms), topic, number)
            for topic in list(self.topics.values())
            if topic.config.is_compacted
            for number, partition in enumerate(topic.partitions)
        ]
        ratio, topic, number = max(candidates, key=lambda candidate: candidate[0], default=(0.0, None, 0))
        if topic is None or ratio <= float(topic.config.text("min.cleanable.dirty.ratio")):
            return None
        result = topic.partitions[number].log.clean(now_ms)
        dirty = {at: partition.log.first_dirty_offset for at, partition in enumerate(topic.partitions)}
        write_cleaner_offsets(self.directory, topic.name, dirty)
        return result

    def remove_old_segments(self, now_ms: int, report: Callable[[DataPartition, SegmentLogError], None]) -> int:
        """Delete segments by retention in all topics, and expired producers; return the number of segments. Raises OSError.

        Errors of single partitions are passed to `report`. Failed partitions keep their segments.
        """
        removed = 0
        for partition in self.partitions():
            partition.producers.remove_expired(now_ms, self._expiration_ms)
            if partition.log.failure is None:
                try:
                    removed += partition.remove_old_segments(now_ms)
                except SegmentLogError as error:
                    report(partition, error)
        if removed:
            self.store_start_offsets()
        return removed

    def close(self) -> None:
        """Store snapshots of the producers and close the files, without a flush. Raises OSError."""
        for partition in self.partitions():
            partition.close()

    def close_files(self) -> None:
        """Close the files."""
        for partition in self.partitions():
            partition.log.close()

    # ---- files

    def _folder_of(self, name: str, partition: int) -> Path:
        return self.directory / f"{name}-{partition}"

    def _make_folder(self, folder: Path, topic_id: UUID) -> None:
        folder.mkdir()
        (folder / "partition.metadata").write_text(format_topic_id(topic_id))

    def _retire(self, folder: Path) -> Path:
        """Rename a folder, as brokers do before they delete it."""
        retired = folder.with_name(f"{folder.name}.{uuid4().hex}{_DELETED}")
        if folder.exists():
            folder.rename(retired)
        return retired

    def _remove_deleted(self) -> None:
        for path in self.directory.glob(f"*{_DELETED}"):
            shutil.rmtree(path, ignore_errors=True)

    def _write_topics(self) -> None:
        stored = {topic.name: StoredTopic(topic.topic_id, len(topic.partitions), topic.config) for topic in self.topics.values()}
        write_topics(self.directory / TOPICS_FILE, stored)
        sync_folder(self.directory)
