"""A topic as the coordinator's log: its partitions, of which other nodes own some."""

import time
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from coordinator_core.segment_log.errors import PartitionFailed
from coordinator_core.sources.kafka import KafkaSource
from coordinator_core.sources.kafka_options import parse_address
from coordinator_core.topic_log.client_options import client_options
from coordinator_core.topic_log.group_requests import GroupRequests
from coordinator_core.topic_log.log_topic import LARGEST_MESSAGE_BYTES, LogTopicSettings, ensure_topic
from coordinator_core.topic_log.owned_partition import OwnedPartition

_ADMIN_SECONDS = 30.0
#: Bounds how long the open transaction of a killed owner holds back readers, if no node takes over.
_TRANSACTION_TIMEOUT_MS = 15_000
#: Of one reader, in seconds: a load that fails is started again.
_RETRY_SECONDS = "5"
_ZERO = UUID(int=0)


class TopicLog:
    """The log `kafka://SERVERS/TOPIC`. `append_timeout_ms` bounds an append, as `offsets.commit.timeout.ms` does in brokers.

    The topic is created or checked. Raises the errors of `ensure_topic` and of `KafkaSource`.
    """

    #: Loads and appends wait for brokers: the threads of each.
    load_threads = 4
    append_threads = 32
    #: Partitions are assigned to nodes after the start.
    owned_at_start: Sequence[int] = ()

    def __init__(self, address: str, options: Mapping[str, str], settings: LogTopicSettings, append_timeout_ms: int) -> None:
        self.address = parse_address(address)
        self._options = {**options, "retry_seconds": _RETRY_SECONDS}
        self._append_ms = append_timeout_ms
        self.was_created = ensure_topic(AdminClient(self.client_options()), self.address.topic, settings, _ADMIN_SECONDS)
        self._expected_id: UUID | None = None
        with self._source("read_uncommitted") as source:
            self._expected_id = source.topic_id
        self.topic_id = self._expected_id or _ZERO
        self._partitions = [
            OwnedPartition(self.address.topic, number, self._producer, self._source, append_timeout_ms / 1000)
            for number in range(settings.partitions)
        ]

    @property
    def partitions(self) -> int:
        """Number of partitions."""
        return len(self._partitions)

    @property
    def numbers(self) -> Sequence[int]:
        """All partitions: any node may own them."""
        return range(len(self._partitions))

    def partition(self, number: int) -> OwnedPartition:
        """Return the partition of this number."""
        return self._partitions[number]

    def flush(self, partitions: Sequence[int]) -> Sequence[PartitionFailed | None]:
        """Do nothing: a committed transaction is on all replicas in sync."""
        return [None] * len(partitions)

    def clean(self, now_ms: int) -> object:  # noqa: ARG002 - of `CoordinatorLog`
        """Do nothing: the brokers compact the topic."""
        return None

    def close(self) -> None:
        """Give up all partitions."""
        for partition in self._partitions:
            partition.release()

    def client_options(self) -> dict[str, Any]:
        """Return the configuration of a client of the cluster."""
        return client_options(self.address.servers, self._options, time.time)

    def group_requests(self) -> GroupRequests:
        """Return the requests about groups of the cluster."""
        return GroupRequests(self.address.servers, self._options)

    def _source(self, isolation_level: str) -> KafkaSource:
        options = {**self._options, "isolation_level": isolation_level}
        # a new topic takes a moment to reach all brokers
        return KafkaSource(str(self.address), options, expected_topic_id=self._expected_id, seen_before=True)

    def _producer(self, transactional_id: str) -> Producer:
        return Producer(
            {
                **self.client_options(),
                "transactional.id": transactional_id,
                "transaction.timeout.ms": _TRANSACTION_TIMEOUT_MS,
                "acks": "all",
                # a turn of the partition's loop is a batch already
                "linger.ms": 0,
                "compression.type": "none",
                # the brokers decide; the library counts more bytes per message than they do
                "message.max.bytes": 2 * LARGEST_MESSAGE_BYTES,
                "socket.nagle.disable": True,
                "topic.metadata.refresh.interval.ms": 10_000,
                "reconnect.backoff.max.ms": 1_000,
            }
        )
