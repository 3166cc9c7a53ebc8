"""A scenario for any group coordinator: third-party clients create groups of every kind, step by step.

Each step waits for its effects, so that the scenario leaves the same records at any speed of the machine. Each group is one
story. The sweep may run at any time, also while a group waits for its first member to return with the member id that it was
given. Therefore a group has an offset before that, or its first member gets no id in advance.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, TopicPartition
from eventually import at_least, equal_to, eventually
from kafka import KafkaConsumer
from kafka import TopicPartition as PythonPartition
from kafka.admin import KafkaAdminClient, MemberToRemove
from kafka.structs import OffsetAndMetadata
from patience import PATIENCE_SECONDS
from protocol_member import NEW, NONE, OLD, STATIC, Age, ProtocolMember, finish_rebalance
from transactional_commits import TransactionalCommits

from coordinator_core.protocol.error_code import ErrorCode
from pipelines.examples.private.kafka.clients import Clients

TOPICS: Mapping[str, int] = {"orders": 4, "payments": 4, "clicks": 4}
#: Longer than everything that a test does with a coordinator: members alive at the end of the scenario stay alive.
PATIENT_MS = 300_000
SWEEP_INTERVAL_MS = 500
#: Required settings of a coordinator: no delay for a group's first members, short sessions, frequent sweeps.
COORDINATOR_SETTINGS: Mapping[str, int] = {
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 100,
    "group.max.session.timeout.ms": PATIENT_MS,
    "offsets.retention.check.interval.ms": SWEEP_INTERVAL_MS,
}
#: A late member is late by this.
_SHORT_MS = 2500
#: kafka-python 3.0 joins again if its join is answered while it is not in `poll`.
LONG_POLL_MS = 3_000
_CONNECT = {"sessioned": b"\x01\x02", "compatible": b"\x00\xff" * 20}
_SUBSCRIPTION = bytes.fromhex("0001 00000001 0006 6f7264657273 ffffffff 00000000")


@dataclass
class Stage:
    """The clients of a scenario; everything opened here stays open until the context of `stage` ends."""

    bootstrap: str
    clients: Clients
    admin: KafkaAdminClient
    open: ExitStack = field(default_factory=ExitStack)

    def member(self, group: str, client_id: str, protocols: Mapping[str, bytes], **settings: object) -> ProtocolMember:
        """A member that sends only the requests that the scenario asks for."""
        given: dict[str, Any] = {"session_ms": PATIENT_MS, **settings}
        member = ProtocolMember(self.bootstrap, group, client_id, protocols, **given)
        return self.open.enter_context(member)

    def first_offset(self, group: str) -> None:
        """Create the group and protect it from the sweep."""
        simple = self.clients.consumer(group)
        self.clients.commit(simple, [("orders", 0, 1)])
        self.clients.leave(simple)

    def state(self, group: str) -> str:
        """The state, from DescribeGroups."""
        return str(self.admin.describe_groups([group])[group]["group_state"])

    def await_state(self, group: str, state: str) -> None:
        """Wait until the group is in a state; Dead means deleted."""
        eventually(f"{group} is {state}", lambda: self.state(group), equal_to(state))

    def await_offsets(self, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
        """Wait until exactly these offsets are committed."""
        wanted = dict(offsets)
        eventually(f"{group} has {wanted}", lambda: self.offsets(group), equal_to(wanted))

    def offsets(self, group: str) -> dict[tuple[str, int], int]:
        """The offsets, from OffsetFetch."""
        found = self.admin.list_group_offsets(group)[group]
        return {(tp.topic, tp.partition): each.offset for tp, each in found.items() if each.offset >= 0}


@contextmanager
def stage(bootstrap: str) -> Iterator[Stage]:
    """Clients of a coordinator whose topics exist.

    Members of `Stage.member` do not leave when the context ends; consumers do, unless the coordinator has stopped.
    """
    with ExitStack() as opened:
        clients = opened.enter_context(Clients(bootstrap))
        admin = KafkaAdminClient(bootstrap_servers=bootstrap)
        opened.callback(admin.close)
        yield Stage(bootstrap, clients, admin, opened)


def play(on: Stage, version: tuple[int, ...]) -> list[str]:
    """Run every story that brokers of a version support; return the names of the groups."""
    stories = [*_STORIES, *(_STORIES_SINCE_4_3 if version >= (4, 3) else ())]
    for story in stories:
        story(on, _name(story))
    return [_name(story) for story in stories]


def _name(story: Callable[[Stage, str], None]) -> str:
    return story.__name__.strip("_").replace("_", "-")


def _everywhere(topic: str, offset: int) -> list[tuple[str, int, int]]:
    return [(topic, partition, offset + partition) for partition in range(TOPICS[topic])]


# ---- confluent-kafka


def _confluent_range(on: Stage, group: str) -> None:
    """Two members join one after the other and leave one after the other; an eager protocol."""
    on.first_offset(group)
    topics = ("orders", "payments")
    settings: dict[str, Any] = {"partition_assignment_strategy": "range", "session_timeout_ms": PATIENT_MS}
    first = on.clients.consumer(group, topics, client_id="range-1", **settings)
    on.clients.settle([first], 8)
    on.clients.commit_everywhere([first], 10)
    second = on.clients.consumer(group, topics, client_id="range-2", **settings)
    on.clients.settle([first, second], 8)
    on.clients.commit_everywhere([first, second], 20, "with metadata é✓ 𝄞")
    on.clients.leave(second)
    on.clients.settle([first], 8)
    first.commit(offsets=[TopicPartition("orders", 3, 33, "of an epoch", 7)], asynchronous=False)
    on.clients.leave(first)


def _confluent_cooperative(on: Stage, group: str) -> None:
    """The same with incremental rebalances: a partition is revoked in one rebalance and assigned in the next."""
    on.first_offset(group)
    settings: dict[str, Any] = {"partition_assignment_strategy": "cooperative-sticky", "session_timeout_ms": PATIENT_MS}
    first = on.clients.consumer(group, ("clicks",), client_id="cooperative-1", **settings)
    on.clients.settle([first], 4)
    second = on.clients.consumer(group, ("clicks",), client_id="cooperative-2", **settings)
    on.clients.settle([first, second], 4)
    on.clients.commit_everywhere([first, second], 5)
    on.clients.leave(first)
    on.clients.settle([second], 4)
    on.clients.leave(second)


def _confluent_static(on: Stage, group: str) -> None:
    """A static member returns under the same id; when it does not return again, an admin removes it."""

    def member(number: int) -> Consumer:
        return on.clients.consumer(
            group,
            ("orders",),
            client_id=f"static-{number}",
            group_instance_id=f"instance-{number}",
            session_timeout_ms=PATIENT_MS,
            partition_assignment_strategy="roundrobin",
        )

    first = member(1)
    on.clients.settle([first], 4)
    second = member(2)
    on.clients.settle([first, second], 4)
    on.clients.commit_everywhere([first, second], 50)
    on.clients.leave(second)
    second = member(2)
    on.clients.settle([first, second], 4)
    on.clients.leave(second)
    on.admin.remove_group_members(group, [MemberToRemove(group_instance_id="instance-2")])
    on.clients.settle([first], 4)
    on.clients.leave(first)
    assert on.state(group) == "Stable"


def _confluent_simple(on: Stage, group: str) -> None:
    """Commits without a group: to greater and to lower offsets, with long metadata."""
    member = on.clients.consumer(group)
    for offset in (900, 950, 20):
        on.clients.commit(member, [("orders", 0, offset), ("clicks", 1, 2**62 + offset)])
    on.clients.commit(member, [("orders", 1, 0)], "m" * 4000)
    on.clients.leave(member)


def _confluent_altered(on: Stage, group: str) -> None:
    """An admin resets offsets of a group whose members have left."""
    on.first_offset(group)
    member = on.clients.consumer(group, ("payments",), client_id="altered", session_timeout_ms=PATIENT_MS)
    on.clients.settle([member], 4)
    on.clients.commit(member, _everywhere("payments", 300))
    on.clients.leave(member)
    to = ConsumerGroupTopicPartitions(group, [TopicPartition("payments", 0, 1), TopicPartition("clicks", 2, 2)])
    on.clients.admin.alter_consumer_group_offsets([to])[group].result(PATIENCE_SECONDS)


def _confluent_deleted(on: Stage, group: str) -> None:
    """A group that had members is deleted, with offsets of several topics."""
    on.first_offset(group)
    member = on.clients.consumer(group, ("payments",), client_id="deleted", session_timeout_ms=PATIENT_MS)
    on.clients.settle([member], 4)
    on.clients.commit(member, [*_everywhere("payments", 1), ("clicks", 3, 9), ("orders", 2, 9)])
    on.clients.leave(member)
    on.clients.admin.delete_consumer_groups([group])[group].result(PATIENCE_SECONDS)


def _confluent_simple_deleted(on: Stage, group: str) -> None:
    """A group that only ever had offsets is deleted and created again."""
    member = on.clients.consumer(group)
    on.clients.commit(member, _everywhere("payments", 1))
    on.clients.admin.delete_consumer_groups([group])[group].result(PATIENCE_SECONDS)
    on.clients.commit(member, [("payments", 2, 4)])
    on.clients.leave(member)


# ---- kafka-python


def _python_consumer(on: Stage, group: str) -> None:
    """The consumer and the admin of another client; an offset of an empty group is deleted."""
    on.first_offset(group)
    consumer = KafkaConsumer(
        bootstrap_servers=on.bootstrap,
        client_id="python",
        group_id=group,
        enable_auto_commit=False,
        session_timeout_ms=PATIENT_MS,
        request_timeout_ms=PATIENT_MS + 5000,
        connections_max_idle_ms=PATIENT_MS + 10_000,
        heartbeat_interval_ms=200,
    )
    consumer.subscribe(["clicks"])
    # metadata that arrived after it has led its group would make it join again
    consumer.topics()

    def assigned() -> int:
        consumer.poll(timeout_ms=LONG_POLL_MS)
        return len(consumer.assignment())

    eventually(f"{group} has an assignment", assigned, at_least(4), pause_seconds=0)
    consumer.commit({tp: OffsetAndMetadata(40 + tp.partition, "", 3) for tp in sorted(consumer.assignment())})
    consumer.commit({PythonPartition("payments", 0): OffsetAndMetadata(1, "not mine", -1)})
    consumer.close()
    on.admin.delete_group_offsets(group, [PythonPartition("clicks", 1), PythonPartition("payments", 0)])


def _python_altered(on: Stage, group: str) -> None:
    """Offsets of a group that did not exist, set and deleted by an admin; the next sweep removes the group without offsets."""
    offsets = {PythonPartition("orders", 0): OffsetAndMetadata(5, "by hand", -1)}
    on.admin.alter_group_offsets(group, offsets)
    on.admin.delete_group_offsets(group, list(offsets))
    on.await_state(group, "Dead")


# ---- requests one by one


def _two_of_connect(on: Stage, group: str) -> None:
    """Another protocol type: a vote, members with an empty assignment, a member with new metadata, a leader that leaves."""
    ages = (STATIC, NEW)
    on.first_offset(group)
    one, two = (on.member(group, f"worker-{n}", _CONNECT, protocol_type="connect", age=age) for n, age in enumerate(ages))
    _alone(one, b"all")
    two.protocols.pop("sessioned")
    two.send_join()
    one.await_rebalance()
    one.send_join()
    finish_rebalance([one, two], [b"a", b"b" * 300])
    one.protocols["compatible"] = b"changed"
    one.send_join()
    two.await_rebalance()
    two.send_join()
    finish_rebalance([one, two], [b"a", None])
    assert one.commit([("orders", 0, 8, 2, "mine"), ("orders", 1, 9, -1, None)]) == {("orders", 0): NONE, ("orders", 1): NONE}
    assert one.leave() == [NONE]
    two.await_rebalance()
    _alone(two, b"all of it")


def _together_and_apart(on: Stage, group: str) -> None:
    """Members of three ages of the protocol; two leave with one request, then the last one alone."""
    members = [on.member(group, f"m-{n}", {"range": _SUBSCRIPTION}, age=age) for n, age in enumerate((OLD, STATIC, NEW))]
    _gather(members)
    assert members[0].commit([("clicks", 0, 5, -1, "kept for an hour")], retention_ms=3_600_000) == {("clicks", 0): NONE}
    assert members[2].commit([("clicks", 1, 6, 4, "")]) == {("clicks", 1): NONE}
    assert members[2].leave(members[1]) == [NONE, NONE]
    members[0].await_rebalance()
    _alone(members[0], b"alone")
    assert members[0].leave() == [NONE]


def _static_members(on: Stage, group: str) -> None:
    """A follower and then the leader restart while the group is Stable, and stay members."""

    def member(number: int, age: Age = NEW) -> ProtocolMember:
        return on.member(group, f"s-{number}", {"range": _SUBSCRIPTION}, age=age, instance_id=f"i-{number}")

    members = [member(1), member(2, STATIC)]
    _gather(members)
    again = member(2, STATIC)
    again.join()
    again.sync()
    leader = member(1)
    leader.join()
    leader.sync()
    assert leader.commit([("payments", 1, 12, 1, "")]) == {("payments", 1): NONE}


def _session_ends(on: Stage, group: str) -> None:
    """A member whose session ends without a heartbeat."""
    member = on.member(group, "silent", {"range": _SUBSCRIPTION}, age=OLD, session_ms=_SHORT_MS)
    _alone(member, b"all")
    assert member.commit([("payments", 3, 1, -1, "last words")]) == {("payments", 3): NONE}
    on.await_state(group, "Empty")


def _two_hasty_members(on: Stage, group: str) -> list[ProtocolMember]:
    return [
        on.member(group, f"m-{n}", {"range": _SUBSCRIPTION}, age=age, rebalance_ms=_SHORT_MS) for n, age in enumerate((OLD, NEW))
    ]


def _does_not_join(on: Stage, group: str) -> None:
    """A rebalance completes without the member that takes too long to join."""
    members = _two_hasty_members(on, group)
    _gather(members)
    members[0].join()
    members[0].sync({members[0].member_id: b"of both"})


def _does_not_sync(on: Stage, group: str) -> None:
    """A member that joins and does not sync is removed after the rebalance timeout (KAFKA-12890)."""
    one, two = _two_hasty_members(on, group)
    _alone(one, b"all")
    two.send_join()
    one.await_rebalance()
    one.send_join()
    one.receive_join()
    two.receive_join()
    assert one.leads
    one.sync({one.member_id: b"1", two.member_id: b"2"})
    one.await_rebalance()
    _alone(one, b"all again")


def _alone(member: ProtocolMember, assignment: bytes) -> None:
    member.send_join()
    finish_rebalance([member], [assignment])


def _gather(members: Sequence[ProtocolMember]) -> None:
    """Members join one after the other, each a Stable group; the first leads."""
    for count, joining in enumerate(members, 1):
        joining.send_join()
        for member in members[: count - 1]:
            member.await_rebalance()
            member.send_join()
        finish_rebalance(members[:count], [b"%d of %d" % (n, count) for n in range(count)])


# ---- what the sweep takes


def _offsets_expire(on: Stage, group: str) -> None:
    """Offsets with an expire time of their own (before KIP-211), of which some have expired."""
    simple = on.member(group, "old", {}, age=OLD)
    assert set(simple.commit([("orders", 0, 1, -1, "for a day")], retention_ms=86_400_000).values()) == {NONE}
    expiring = [("orders", 2, 3, -1, ""), ("clicks", 0, 4, -1, ""), ("orders", 1, 2, -1, "")]
    assert set(simple.commit(expiring, retention_ms=1).values()) == {NONE}
    on.await_offsets(group, {("orders", 0): 1})


def _group_expires(on: Stage, group: str) -> None:
    """All offsets of a group without members expire, and the group with them."""
    simple = on.member(group, "old", {}, age=OLD)
    assert set(simple.commit([("orders", 2, 3, -1, ""), ("clicks", 0, 4, -1, "")], retention_ms=1).values()) == {NONE}
    on.await_state(group, "Dead")


def _left_without_offsets(on: Stage, group: str) -> None:
    """A group whose members have left without a commit is removed."""
    member = on.member(group, "short", {"range": _SUBSCRIPTION}, age=OLD)
    _alone(member, b"all")
    assert member.leave() == [NONE]
    on.await_state(group, "Dead")


# ---- transactions


def _in_transactions(on: Stage, group: str) -> None:
    """Committed, aborted, refused for stale epochs, committed again, and still open."""
    commits = on.open.enter_context(TransactionalCommits(on.bootstrap, group, producer_id=4711))
    commits.commit([("payments", 0, 10, 1, "one"), ("payments", 1, 20, -1, None)])
    commits.end(committed=True)
    commits.commit([("payments", 0, 11, -1, "two")])
    assert commits.marker_error(committed=True, producer_epoch=1) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert commits.marker_error(committed=True, coordinator_epoch=4) == ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert commits.commit_errors([("payments", 0, 12, -1, "stale")], 1) == {ErrorCode.INVALID_PRODUCER_EPOCH}
    commits.end(committed=False)
    simple = on.member(group, "beside", {})
    assert simple.commit([("payments", 2, 1, -1, "b" * 4096)]) == {("payments", 2): NONE}
    commits.commit([("payments", 1, 21, -1, "three"), ("clicks", 0, 1, -1, "three")])


# ---- since 4.3


def _by_topic_id(on: Stage, group: str) -> None:
    """OffsetCommit v10, which names topics by id."""
    ids = {topic["name"]: topic["topic_id"] for topic in on.admin.describe_topics(list(TOPICS))}
    member = on.member(group, "by-id", {}, age=replace(NEW, commit=10), topic_ids=ids)
    assert set(member.commit([("clicks", 0, 5, 2, "by id"), ("orders", 3, 6, -1, None)]).values()) == {NONE}


_STORIES: Sequence[Callable[[Stage, str], None]] = (
    _offsets_expire,
    _group_expires,
    _left_without_offsets,
    _session_ends,
    _confluent_range,
    _confluent_cooperative,
    _confluent_static,
    _confluent_simple,
    _confluent_altered,
    _confluent_deleted,
    _confluent_simple_deleted,
    _python_consumer,
    _python_altered,
    _two_of_connect,
    _together_and_apart,
    _static_members,
    _does_not_join,
    _does_not_sync,
    _in_transactions,
)
_STORIES_SINCE_4_3: Sequence[Callable[[Stage, str], None]] = (_by_topic_id,)
