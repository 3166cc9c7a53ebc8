"""Commits of a group through another client, and a coordinator's answers: committed offsets, state and members."""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

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

T = TypeVar("T")

#: Errors of a coordinator that starts, loads or moves.
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


def once_coordinated(what: str, request: Callable[[], T]) -> T:
    """The answer to a request, sent again while its coordinator starts, loads or moves."""
    answers: list[T] = []

    def error() -> str:
        try:
            answers.append(request())
        except KafkaException as failed:
            if failed.args[0].code() not in _STARTING:
                raise
            return str(failed)
        return ""

    eventually(what, error, lambda found: not found)
    return answers[0]


def committed(admin: AdminClient, group: str) -> dict[tuple[str, int], int]:
    """(topic, partition) → offset of everything that the group has committed, once its coordinator has loaded it."""
    request = [ConsumerGroupTopicPartitions(group)]
    found = once_coordinated(
        f"the offsets of {group}",
        lambda: admin.list_consumer_group_offsets(request, request_timeout=PATIENCE_SECONDS)[group].result().topic_partitions,
    )
    return {(each.topic, each.partition): each.offset for each in found}


def committed_at(bootstrap: str, group: str, places: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
    """(topic, partition) → offset of those of the partitions that the group has committed, also while its coordinator moves.

    `committed` must not be used then: at NOT_COORDINATOR the admin client of librdkafka ends the process (librdkafka#5040).
    """
    wanted = [TopicPartition(*place) for place in places]
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False, **QUIET})
    found = once_coordinated(f"the offsets of {group}", lambda: reader.committed(wanted, PATIENCE_SECONDS))
    reader.close()
    return {(each.topic, each.partition): each.offset for each in found if each.offset >= 0}


def group_state(admin: AdminClient, group: str) -> tuple[ConsumerGroupState, list[str]]:
    """The state, and the client ids of the members in alphabetical order."""
    described = admin.describe_consumer_groups([group], request_timeout=PATIENCE_SECONDS)[group].result()
    return described.state, sorted(member.client_id for member in described.members)
