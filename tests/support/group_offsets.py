"""A coordinator's answers about a group, through another client: committed offsets, state and members."""

from confluent_kafka import ConsumerGroupState, ConsumerGroupTopicPartitions
from confluent_kafka.admin import AdminClient
from patience import PATIENCE_SECONDS


def committed(admin: AdminClient, group: str) -> dict[tuple[str, int], int]:
    """(topic, partition) → offset of everything that the group has committed."""
    answer = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)], request_timeout=PATIENCE_SECONDS)
    return {(each.topic, each.partition): each.offset for each in answer[group].result().topic_partitions}


def group_state(admin: AdminClient, group: str) -> tuple[ConsumerGroupState, list[str]]:
    """The state, and the client ids of the members in alphabetical order."""
    described = admin.describe_consumer_groups([group], request_timeout=PATIENCE_SECONDS)[group].result()
    return described.state, sorted(member.client_id for member in described.members)
