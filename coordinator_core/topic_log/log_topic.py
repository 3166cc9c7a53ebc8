"""The topic of the log: created with the settings that a coordinator's log needs, or checked."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from coordinator_core.log.errors import LogUnreachable
from coordinator_core.segment_log.errors import PartitionsDiffer
from coordinator_core.topic_log.errors import TopicUnsuitable

#: Topics of the cluster's own coordinators, which do not read what others append to them.
_OF_BROKERS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
_MIN_IN_SYNC = 2
#: `message.max.bytes` of brokers and of clients: a record of a group may have this size.
LARGEST_MESSAGE_BYTES = 1_048_588
#: An aborted or deleted record stays readable for a reader that is away for less than this.
_DELETE_RETENTION_MS = 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True)
class LogTopicSettings:
    """Settings of a new topic: `offsets.topic.num.partitions`, `offsets.topic.replication.factor`, `offsets.topic.segment.bytes`.

    A topic has at most as many replicas as there are brokers.
    """

    partitions: int
    replication_factor: int
    segment_bytes: int


def ensure_topic(admin: AdminClient, topic: str, settings: LogTopicSettings, timeout_seconds: float) -> bool:
    """Create the topic if it is missing, else check it. Return whether it was created.

    Raises:
        TopicUnsuitable: it is a topic of the brokers, is not compacted, or may lose records in an unclean leader election
        PartitionsDiffer: it has another number of partitions
        LogUnreachable: no broker answers, or the topic cannot be created
    """
    if topic in _OF_BROKERS:
        raise TopicUnsuitable(
            f"topic {topic} belongs to the coordinators of its cluster, which would not see the records: use a topic of its own, "
            "such as grouplake_offsets"
        )
    try:
        # of all topics: brokers may create a topic that is asked for by name
        found = admin.list_topics(timeout=timeout_seconds)
        known = found.topics.get(topic)
        if known is None:
            _create(admin, topic, settings, len(found.brokers), timeout_seconds)
            return True
        _check_partitions(topic, len(known.partitions), settings.partitions)
        _check_configs(topic, _configs(admin, topic, timeout_seconds))
    except KafkaException as error:
        raise LogUnreachable(f"topic {topic}: {error.args[0].str()}") from None
    return False


def _create(admin: AdminClient, topic: str, settings: LogTopicSettings, brokers: int, timeout_seconds: float) -> None:
    replicas = min(settings.replication_factor, max(brokers, 1))
    new = NewTopic(
        topic,
        num_partitions=settings.partitions,
        replication_factor=replicas,
        config={
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(settings.segment_bytes),
            "min.insync.replicas": str(min(_MIN_IN_SYNC, replicas)),
            "unclean.leader.election.enable": "false",
            "delete.retention.ms": str(_DELETE_RETENTION_MS),
        },
    )
    try:
        admin.create_topics([new], operation_timeout=timeout_seconds)[topic].result(timeout_seconds)
    except KafkaException as error:
        # another node was faster
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise


def _configs(admin: AdminClient, topic: str, timeout_seconds: float) -> Mapping[str, str]:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    entries: Mapping[str, Any] = admin.describe_configs([resource])[resource].result(timeout_seconds)
    return {name: entry.value for name, entry in entries.items()}


def _check_partitions(topic: str, found: int, wanted: int) -> None:
    if found != wanted:
        raise PartitionsDiffer(
            f"topic {topic} has {found} partitions, but {wanted} are configured, which would map groups to other partitions: "
            f"set coordinator.offsets_topic_num_partitions to {found}, or use another topic"
        )


def _check_configs(topic: str, configs: Mapping[str, str]) -> None:
    policy = configs.get("cleanup.policy", "")
    if policy != "compact":
        raise TopicUnsuitable(f"topic {topic} has cleanup.policy {policy}, which deletes records of groups: set it to compact")
    largest = int(configs.get("max.message.bytes", LARGEST_MESSAGE_BYTES))
    if largest < LARGEST_MESSAGE_BYTES:
        raise TopicUnsuitable(
            f"topic {topic} has max.message.bytes {largest}, but a record of a group may have {LARGEST_MESSAGE_BYTES}: "
            "set it to that or more"
        )
    if configs.get("unclean.leader.election.enable") == "true":
        raise TopicUnsuitable(
            f"topic {topic} has unclean.leader.election.enable true, which loses acknowledged commits: set it to false"
        )
