"""Every kind of group that a real client can create, on a live broker, and the broker's own answers about them.

The answers have the form of tests/data/*.expected.json: `committed` group → [topic, partition, offset, metadata, leader epoch],
`described` group → state, assignor, simple, members [client id, instance id, [[topic, partition]…]]; and `high_watermarks`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from patience import PATIENCE_SECONDS

from coordinator_core.sources.kafka import KafkaSource
from pipelines.examples.private.kafka.clients import Clients
from pipelines.examples.private.kafka.distribution import version_tuple

TOPICS = ("orders", "payments", "clicks", "audit.log")
PARTITIONS = 4
SIMPLE_GROUPS = 8

#: Transaction → how each of its rounds ends.
_TRANSACTIONS: dict[str, tuple[tuple[str, int], ...]] = {
    "txn-committed": (("commit", 11),),
    "txn-aborted": (("abort", 22),),
    "txn-mixed": (("commit", 33), ("abort", 44), ("commit", 55), ("abort", 66)),
    "txn-open": (("commit", 77), ("open", 88)),
}


@contextmanager
def played(bootstrap: str, version: str) -> Iterator[dict[str, Any]]:
    """Run every story that a broker of `version` supports; while the context lasts, members live and the answers stay valid."""
    number = version_tuple(version)
    with Clients(bootstrap) as clients:
        clients.create_topics(TOPICS, PARTITIONS)
        for topic in TOPICS:
            clients.produce(topic, PARTITIONS, 1000)
        groups = [*_classic(clients)]
        if number >= (2, 4):
            groups += _static_and_administered(clients)
        if number >= (0, 11):
            groups += [_transactional(clients, name, rounds) for name, rounds in _TRANSACTIONS.items()]
        if number >= (4, 0):
            groups += _consumer_protocol(clients)
        yield answers(clients, bootstrap, groups)


def answers(clients: Clients, bootstrap: str, groups: list[str]) -> dict[str, Any]:
    """The broker's current answers about `groups`."""
    with KafkaSource(f"kafka://{bootstrap}/__consumer_offsets") as log:
        high_watermarks = log.end_offsets()
    return {
        "committed": {group: _committed(clients, group) for group in groups},
        "described": _described(clients, groups),
        "high_watermarks": {str(partition): offset for partition, offset in high_watermarks.items()},
    }


def _everywhere(topic: str, offset: int) -> list[tuple[str, int, int]]:
    return [(topic, partition, offset + partition) for partition in range(PARTITIONS)]


def _classic(clients: Clients) -> Iterator[str]:
    topics = ("orders", "payments")
    members: list[Consumer] = []
    for client_id in ("w1", "w2", "w3"):
        members.append(clients.consumer("billing-workers", topics, client_id=client_id, partition_assignment_strategy="range"))
        clients.settle(members, 2 * PARTITIONS)
        for offset in (10, 20, 30):
            clients.commit_everywhere(members, offset)
    yield "billing-workers"

    member = clients.consumer("nightly-report", ("clicks",), client_id="r")
    clients.settle([member], PARTITIONS)
    clients.commit(member, _everywhere("clicks", 100), "checkpoint é✓")
    clients.leave(member)
    yield "nightly-report"

    member = clients.consumer("idle-roundrobin", ("audit.log",), partition_assignment_strategy="roundrobin")
    clients.settle([member], PARTITIONS)
    clients.leave(member)
    yield "idle-roundrobin"

    for number in range(SIMPLE_GROUPS):
        member = clients.consumer(group := f"simple-{number:03d}")
        for offset in range(3):
            clients.commit(member, [(TOPICS[number % 4], number % PARTITIONS, 7 * offset + number)], "m" * (number * 37 % 300))
        clients.leave(member)
        yield group

    member = clients.consumer("rewound")
    for offset in (900, 950, 20):
        clients.commit(member, [("orders", 0, offset)])
    clients.leave(member)
    yield "rewound"


def _static_and_administered(clients: Clients) -> Iterator[str]:
    settings: dict[str, Any] = {"partition_assignment_strategy": "cooperative-sticky"}
    members = [
        clients.consumer("static-cooperative", ("orders", "clicks"), group_instance_id=f"inst-{n}", **settings) for n in range(2)
    ]
    clients.settle(members, 2 * PARTITIONS)
    clients.commit_everywhere(members, 5)
    yield "static-cooperative"

    member = clients.consumer("to-be-deleted")
    clients.commit(member, [("orders", 1, 3), ("orders", 2, 4)])
    clients.leave(member)
    clients.admin.delete_consumer_groups(["to-be-deleted"])["to-be-deleted"].result(PATIENCE_SECONDS)
    yield "to-be-deleted"

    member = clients.consumer("admin-reset")
    clients.commit(member, [("payments", 0, 333), ("payments", 1, 444)])
    clients.leave(member)
    reset = ConsumerGroupTopicPartitions("admin-reset", [TopicPartition("payments", 0, 1)])
    clients.admin.alter_consumer_group_offsets([reset])["admin-reset"].result(PATIENCE_SECONDS)
    yield "admin-reset"


def _transactional(clients: Clients, group: str, rounds: tuple[tuple[str, int], ...]) -> str:
    member = clients.consumer(group, ("payments",))
    clients.settle([member], PARTITIONS)
    producer = clients.transaction(f"tx-{group}")
    ends = {"commit": producer.commit_transaction, "abort": producer.abort_transaction, "open": lambda _: None}
    for end, offset in rounds:
        clients.send_offsets(producer, member, _everywhere("payments", offset))
        ends[end](30)
    return group


def _consumer_protocol(clients: Clients) -> Iterator[str]:
    members = [
        clients.consumer("next-gen", ("orders", "payments"), group_protocol="consumer", client_id=f"ng{n}") for n in range(2)
    ]
    clients.settle(members, 2 * PARTITIONS)
    clients.commit_everywhere(members, 66)
    yield "next-gen"

    member = clients.consumer("next-gen-left", ("clicks",), group_protocol="consumer")
    clients.settle([member], PARTITIONS)
    clients.commit(member, [("clicks", 0, 12)])
    clients.leave(member)
    yield "next-gen-left"


def _committed(clients: Clients, group: str) -> list[list[Any]]:
    found = clients.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result(PATIENCE_SECONDS)
    return sorted(
        [each.topic, each.partition, each.offset, each.metadata or "", each.leader_epoch]
        for each in found.topic_partitions
        if each.offset >= 0
    )


def _described(clients: Clients, groups: list[str]) -> dict[str, Any]:
    described: dict[str, Any] = {}
    for group, future in clients.admin.describe_consumer_groups(groups, request_timeout=PATIENCE_SECONDS).items():
        try:
            found = future.result(PATIENCE_SECONDS)
        except KafkaException as error:
            described[group] = str(error)
            continue
        described[group] = {
            "state": found.state.name,
            "assignor": found.partition_assignor,
            "simple": found.is_simple_consumer_group,
            "members": sorted((_member(each) for each in found.members), key=str),
        }
    return described


def _member(member: Any) -> list[Any]:
    owned = member.assignment.topic_partitions if member.assignment else []
    return [member.client_id, member.group_instance_id, sorted([each.topic, each.partition] for each in owned)]
