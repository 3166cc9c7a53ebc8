"""A partition of a topic, as keys of offset commits and as items of assignments (`org.apache.kafka.common.TopicPartition`)."""

from typing import NamedTuple


class TopicPartition(NamedTuple):
    """Name of the topic and number of the partition."""

    topic: str
    partition: int
