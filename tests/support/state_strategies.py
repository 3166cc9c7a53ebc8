"""Hypothesis strategies for logs in which few groups, members and producers meet often."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from hypothesis import strategies as st
from log_builder import Log, member
from record_strategies import records as any_records
from record_strategies import tombstones as any_tombstones

from coordinator_core.codec import Record, encode
from coordinator_core.codec.messages.consumer import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
)
from coordinator_core.codec.messages.modern import (
    PartitionMetadataValue,
    TargetAssignmentMemberValue,
    TargetAssignmentMetadataValue,
    TopicPartitions,
)
from coordinator_core.codec.messages.share import (
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataValue,
)
from coordinator_core.codec.messages.streams import (
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTopologyValue,
    Subtopology,
    TaskIds,
)

Step = Callable[[Log], object]

GROUPS = st.sampled_from(["a", "b"])
MEMBERS = st.sampled_from(["m1", "m2"])
PRODUCERS = st.sampled_from([-1, -1, 1, 2])
EPOCHS = st.integers(0, 3)
TIMES = st.integers(0, 20)
TARGET = (TopicPartitions(UUID(int=1), (0, 1)),)
TASKS = (TaskIds("0", (0,)),)

MODERN_VALUES: dict[int, Callable[[int], Any]] = {
    3: lambda epoch: ConsumerGroupMetadataValue(epoch),
    4: lambda _: PartitionMetadataValue(),
    5: lambda epoch: ConsumerGroupMemberMetadataValue(None, None, f"client-{epoch}", "/h", ("t",), classic_member_metadata=None),
    6: lambda epoch: TargetAssignmentMetadataValue(epoch),
    7: lambda _: TargetAssignmentMemberValue(TARGET),
    8: lambda epoch: ConsumerGroupCurrentMemberAssignmentValue(epoch, 0, epoch % 3, TARGET),
    10: lambda epoch: ShareGroupMemberMetadataValue(None, f"client-{epoch}", "/h", ("t",)),
    11: lambda epoch: ShareGroupMetadataValue(epoch, 0),
    12: lambda epoch: TargetAssignmentMetadataValue(epoch),
    13: lambda _: TargetAssignmentMemberValue(TARGET),
    14: lambda epoch: ShareGroupCurrentMemberAssignmentValue(epoch, 0, 0, TARGET),
    15: lambda _: ShareGroupStatePartitionMetadataValue(),
    17: lambda epoch: StreamsGroupMetadataValue(epoch, 0, epoch),
    19: lambda epoch: StreamsGroupMemberMetadataValue(None, None, f"client-{epoch}", "/h", -1, 0, "p"),
    20: lambda epoch: TargetAssignmentMetadataValue(epoch),
    21: lambda _: StreamsGroupTargetAssignmentMemberValue(TASKS),
    22: lambda epoch: StreamsGroupCurrentMemberAssignmentValue(epoch, 0, epoch % 3, TASKS),
    23: lambda epoch: StreamsGroupTopologyValue(epoch, (Subtopology("0", ("t",)),)),
}


@st.composite
def commits(draw: st.DrawFn, producers: st.SearchStrategy[int] = PRODUCERS, version: int = 1) -> Step:
    """An offset commit at a small time, sometimes with an expire time."""
    group, partition, offset, producer = draw(GROUPS), draw(st.integers(0, 1)), draw(st.integers(0, 99)), draw(producers)
    at, expires = draw(TIMES), draw(st.just(-1) | TIMES)
    return lambda log: log.commit(partition, offset, group=group, producer=producer, at=at, expires=expires, version=version)


@st.composite
def offset_tombstones(draw: st.DrawFn, producers: st.SearchStrategy[int] = PRODUCERS) -> Step:
    group, partition, producer = draw(GROUPS), draw(st.integers(0, 1)), draw(producers)
    return lambda log: log.offset_tombstone(partition, group=group, producer=producer)


@st.composite
def markers(draw: st.DrawFn) -> Step:
    producer, control_type = draw(st.sampled_from([1, 2])), draw(st.sampled_from([0, 1, 1, 2]))
    return lambda log: log.marker(producer, control_type)


@st.composite
def classic_groups(draw: st.DrawFn, version: int = 1) -> Step:
    """A group record: with members or without, of any protocol type."""
    group, generation, timestamp = draw(GROUPS), draw(EPOCHS), draw(st.just(-1) | TIMES)
    members = [member(m, topics=[draw(st.sampled_from(["foo", "t"]))]) for m in draw(st.sets(MEMBERS))]
    protocol_type = draw(st.sampled_from(["consumer", "consumer", "connect", ""]))
    return lambda log: log.group(
        members, group=group, generation=generation, protocol_type=protocol_type, timestamp=timestamp, version=version
    )


@st.composite
def modern_records(draw: st.DrawFn) -> Step:
    """Any record of a modern group, or its tombstone."""
    record_type = draw(st.sampled_from(sorted(MODERN_VALUES)))
    value = MODERN_VALUES[record_type](draw(EPOCHS)) if draw(st.booleans()) else None
    group, member_id = draw(GROUPS), draw(MEMBERS)
    return lambda log: log.modern(record_type, value, group=group, member=member_id)


@st.composite
def regular_expressions(draw: st.DrawFn) -> Step:
    key = ConsumerGroupRegularExpressionKey(draw(GROUPS), draw(st.sampled_from(["f.*", "t"])))
    value = ConsumerGroupRegularExpressionValue(("foo",), 1, 1) if draw(st.booleans()) else None
    return lambda log: log.append(Record(16, key, value, None if value is None else 0))


def strange_records() -> st.SearchStrategy[Step]:
    """Any record that the layouts can express, and bytes that are not a record."""
    encoded = (any_records() | any_tombstones()).map(encode)
    blobs = st.none() | st.binary(max_size=12)
    return (encoded | st.tuples(blobs, blobs)).map(lambda pair: lambda log: log.raw(*pair))


def group_tombstones() -> st.SearchStrategy[Step]:
    return GROUPS.map(lambda group: lambda log: log.group_tombstone(group))


def any_steps() -> st.SearchStrategy[Step]:
    """All kinds of records at any time, including those that a coordinator would not write."""
    return st.one_of(
        commits(),
        offset_tombstones(),
        markers(),
        classic_groups(),
        classic_groups(version=3),
        group_tombstones(),
        modern_records(),
        regular_expressions(),
        strange_records(),
    )


def logs(steps: st.SearchStrategy[Step], max_size: int = 25) -> st.SearchStrategy[Log]:
    return st.lists(steps, max_size=max_size).map(written)


def written(steps: Iterable[Step]) -> Log:
    log = Log()
    for step in steps:
        step(log)
    return log


@dataclass
class WellBehavedGroup:
    """Writes the records of one group in the order in which coordinators write them."""

    group_id: str
    java: bool
    version: int
    kind: str = "none"
    epoch: int = 0
    members: tuple[str, ...] = ()

    def become_classic(self, log: Log, member_ids: frozenset[str]) -> None:
        """Complete a rebalance of a classic group."""
        if self.kind == "consumer":
            self.delete(log)
        self.kind, self.epoch = "classic", self.epoch + 1
        members = [member(m) for m in sorted(member_ids)]
        log.group(members, group=self.group_id, generation=self.epoch, version=self.version, timestamp=self.epoch)

    def join(self, log: Log, member_id: str) -> None:
        """A member of the consumer protocol joins and is assigned all partitions."""
        if not self.java:
            return
        if self.kind == "classic":
            self.delete(log)
        self.kind, self.epoch = "consumer", self.epoch + 1
        self.members = tuple(sorted({*self.members, member_id}))
        for record_type in (5, 3, 7, 6, 8):
            log.modern(record_type, MODERN_VALUES[record_type](self.epoch), group=self.group_id, member=member_id)

    def leave(self, log: Log, member_id: str) -> None:
        if self.kind == "consumer" and member_id in self.members:
            self.members = tuple(m for m in self.members if m != member_id)
            for record_type in (8, 7, 5):
                log.modern(record_type, None, group=self.group_id, member=member_id)
            self.epoch += 1
            log.modern(3, ConsumerGroupMetadataValue(self.epoch), group=self.group_id)

    def delete(self, log: Log) -> None:
        if self.kind == "classic":
            log.group_tombstone(self.group_id)
        if self.kind == "consumer":
            for member_id in self.members:
                self.leave(log, member_id)
            for record_type in (6, 4, 3):
                log.modern(record_type, None, group=self.group_id)
        self.kind, self.members = "none", ()


@st.composite
def well_behaved_logs(draw: st.DrawFn, *, java: bool, transactions: bool, version: int, most_steps: int = 20) -> Log:
    """A log as a coordinator of the era writes it. Two in a row are none: the second one does not delete groups of the first.

    Offset tombstones are written outside of transactions, as by every coordinator. For Scala, they also avoid partitions with a
    pending commit: there the loader itself gives another answer once the log is cleaned.
    """
    log = Log()
    groups = {group_id: WellBehavedGroup(group_id, java, version) for group_id in ("a", "b")}
    open_keys: dict[int, set[tuple[str, int]]] = {}
    for _ in range(draw(st.integers(0, most_steps))):
        group_id, partition = draw(GROUPS), draw(st.integers(0, 1))
        group = groups[group_id]
        action = draw(st.sampled_from(["commit", "transact", "end", "tombstone", "classic", "join", "leave", "delete"]))
        if action == "commit":
            log.commit(partition, draw(st.integers(0, 9)), group=group_id, version=1)
        elif action == "transact" and transactions:
            producer = draw(st.sampled_from([1, 2]))
            open_keys.setdefault(producer, set()).add((group_id, partition))
            log.commit(partition, draw(st.integers(0, 9)), group=group_id, version=1, producer=producer)
        elif action == "end" and open_keys:
            producer = draw(st.sampled_from(sorted(open_keys)))
            del open_keys[producer]
            log.marker(producer, draw(st.sampled_from([0, 1])))
        elif action == "tombstone" and (java or not any((group_id, partition) in keys for keys in open_keys.values())):
            log.offset_tombstone(partition, group=group_id)
        elif action == "classic":
            group.become_classic(log, draw(st.frozensets(MEMBERS)))
        elif action == "join":
            group.join(log, draw(MEMBERS))
        elif action == "leave":
            group.leave(log, draw(MEMBERS))
        elif action == "delete":
            group.delete(log)
    return log
