"""Commits of a group through another client, and a coordinator's answers: committed offsets, state and members."""

from collections.abc import Mapping

from confluent_kafka import (
    Consumer,
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from eventually import eventually
from live_kafka import QUIET
from patience import PATIENCE_SECONDS

_STARTING = (KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.NOT_COORDINATOR)


def commit_offsets(bootstrap: str, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
    """Commit (topic, partition) → offset in a group without members, again while its coordinator starts, loads or moves."""
    sent, outcomes = 0, list[KafkaError | None]()
    settings = {"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False, **QUIET}
    member = Consumer({**settings, "on_commit": lambda error, _: outcomes.append(error)})

    def is_committed() -> bool:
        # a synchronous commit to a coordinator that has ended does not return, not even for a signal
        nonlocal sent
        if len(outcomes) == sent:
            member.commit(offsets=[TopicPartition(*at, offset) for at, offset in offsets.items()], asynchronous=True)
            sent += 1
        member.poll(0.05)
        # not `None in outcomes`: an error of librdkafka cannot be compared with None
        return any(error is None for error in outcomes)

    eventually(f"the commit of {group}", is_committed)
    member.close()


def committed(admin: AdminClient, group: str) -> dict[tuple[str, int], int]:
    """(topic, partition) → offset of everything that the group has committed, once its coordinator has loaded it."""

    def answer() -> list[TopicPartition] | None:
        request = [ConsumerGroupTopicPartitions(group)]
        try:
            found: list[TopicPartition] = (
                admin.list_consumer_group_offsets(request, request_timeout=PATIENCE_SECONDS)[group].result().topic_partitions
            )
        except KafkaException as error:
            if error.args[0].code() not in _STARTING:
                raise
            return None
        return found

    found = eventually(f"the offsets of {group}", answer, lambda offsets: offsets is not None)
    return {(each.topic, each.partition): each.offset for each in found or ()}


def group_state(admin: AdminClient, group: str) -> tuple[ConsumerGroupState, list[str]]:
    """The state, and the client ids of the members in alphabetical order."""
    described = admin.describe_consumer_groups([group], request_timeout=PATIENCE_SECONDS)[group].result()
    return described.state, sorted(member.client_id for member in described.members)
