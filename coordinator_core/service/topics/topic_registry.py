"""All topics of the node, by name and by id: declared ones without data, those with data, and those of the coordinators."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple
from uuid import UUID, uuid5

from coordinator_core.codec.messages.offsets import ZERO_UUID
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.protocol.internal_topics import INTERNAL_TOPICS
from coordinator_core.segment_log.data_partition import DataPartition
from coordinator_core.segment_log.topic_store import DataTopic, TopicStore
from coordinator_core.service.topic_settings import DeclaredTopic

_TOPIC_IDS = UUID("6f9a1c5e-53d8-4c9b-9a3e-2f6f0a7c3b11")

#: Partitions → the highest offset that any group has committed, for partitions with commits.
CommittedOffsets = Callable[[Iterable[TopicPartition]], Mapping[TopicPartition, int]]


class KnownTopic(NamedTuple):
    """A topic: its id, its number of partitions, and its data if it has any."""

    name: str
    topic_id: UUID
    partitions: int
    data: DataTopic | None = None

    @property
    def is_internal(self) -> bool:
        """Whether only the coordinators write to the topic."""
        return self.name in INTERNAL_TOPICS


class TopicRegistry:
    """The topics, which change when a topic with data is created, extended or deleted.

    `declared` are those of the configuration, `store` has those with data, `internal` has partitions and ids of the coordinators'
    topics. `committed` finds committed offsets.
    """

    def __init__(
        self,
        cluster_id: str,
        declared: Mapping[str, DeclaredTopic],
        internal: Mapping[str, tuple[int, UUID]],
        store: TopicStore | None = None,
        committed: CommittedOffsets = lambda _: {},
    ) -> None:
        self.store = store
        self.committed = committed
        self._without_data = {
            name: KnownTopic(name, uuid5(_TOPIC_IDS, f"{cluster_id}/{name}"), topic.partitions)
            for name, topic in declared.items()
            if not topic.has_data
        }
        self._internal = {name: KnownTopic(name, topic_id, partitions) for name, (partitions, topic_id) in internal.items()}
        self._names: dict[UUID, str] = {}
        #: Whether the node has topics for clients, or had some since its start.
        self.has_topics = False
        self.refresh()

    def refresh(self) -> None:
        """Take over created and deleted topics."""
        self._names.clear()
        self._names |= {topic.topic_id: topic.name for topic in self.topics()}
        self.has_topics = self.has_topics or len(self._names) > len(self._internal)

    @property
    def names(self) -> Mapping[UUID, str]:
        """Topic id → topic name; the object stays the same when topics change."""
        return self._names

    def topics(self) -> list[KnownTopic]:
        """Return all topics, those of the configuration first."""
        data = () if self.store is None else self.store.topics.values()
        return [*self._without_data.values(), *map(_known, data), *self._internal.values()]

    def find(self, name: str | None, topic_id: UUID = ZERO_UUID) -> KnownTopic | None:
        """Return the topic of this id or, if it is zero, of this name."""
        wanted = name if topic_id == ZERO_UUID else self._names.get(topic_id)
        if wanted is None:
            return None
        if wanted in self._internal:
            return self._internal[wanted]
        data = None if self.store is None else self.store.topics.get(wanted)
        return self._without_data.get(wanted) if data is None else _known(data)

    def without_data(self, name: str, partition: int) -> bool:
        """Whether this is a partition of a declared topic without data."""
        topic = self._without_data.get(name)
        return topic is not None and 0 <= partition < topic.partitions

    def has_partition(self, name: str, partition: int) -> bool:
        """Whether this node has the partition, with or without data, internal topics included."""
        topic = self.find(name)
        return topic is not None and 0 <= partition < topic.partitions

    def partition(self, name: str, partition: int) -> DataPartition | None:
        """Return a partition with data; None for any other one."""
        topic = None if self.store is None else self.store.topics.get(name)
        return topic.partitions[partition] if topic is not None and 0 <= partition < len(topic.partitions) else None


def _known(topic: DataTopic) -> KnownTopic:
    return KnownTopic(topic.name, topic.topic_id, len(topic.partitions), topic)
