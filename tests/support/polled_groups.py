"""Groups of a cluster in memory, the polls of it, and tables of offsets and group records that follow the polls."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from coordinator_core.codec import Record, decode
from coordinator_core.group_polls.group_poll import (
    ClassicGroupAnswer,
    ClassicMemberAnswer,
    ConsumerGroupAnswer,
    ConsumerMemberAnswer,
    GroupAnswer,
    GroupPoll,
    PolledGroup,
    PolledOffset,
    ShareGroupAnswer,
    ShareMemberAnswer,
    StreamsGroupAnswer,
    StreamsMemberAnswer,
    SubtopologyAnswer,
    TasksAnswer,
    TopicPartitionKey,
    TopologyAnswer,
)
from coordinator_core.group_polls.poll_fold import PolledRange
from coordinator_core.state.registry import group_id_of

TOPIC_ID = UUID(int=7)
NAMES = {TOPIC_ID: "orders"}


def classic(*members: str, state: str | None = None, protocol_type: str = "consumer") -> ClassicGroupAnswer:
    """A classic group with these members, Stable or Empty unless given."""
    shown = state or ("Stable" if members else "Empty")
    answers = (
        ClassicMemberAnswer(each, None, "client", "/127.0.0.1", *((b"s", b"a") if shown == "Stable" else (b"", b"")))
        for each in sorted(members)
    )
    return ClassicGroupAnswer(shown, protocol_type, "range" if shown == "Stable" else "", tuple(answers))


def consumer(epoch: int, *members: str) -> ConsumerGroupAnswer:
    """A group of KIP-848 that is reconciled: each member has the partition of its number."""
    answers = tuple(
        ConsumerMemberAnswer(
            each, None, None, epoch, "client", "/127.0.0.1", ("orders",), None, ((TOPIC_ID, (n,)),), ((TOPIC_ID, (n,)),)
        )
        for n, each in enumerate(sorted(members))
    )
    return ConsumerGroupAnswer("Stable" if members else "Empty", epoch, epoch, "uniform", answers)


def share(epoch: int, *members: str, behind: str | None = None) -> ShareGroupAnswer:
    """A share group whose members all have partition 0; the member `behind` has not reached the assignment epoch."""
    answers = tuple(
        ShareMemberAnswer(
            each, None, epoch - 1 if each == behind else epoch, "client", "/127.0.0.1", ("orders",), ((TOPIC_ID, (0,)),)
        )
        for each in sorted(members)
    )
    return ShareGroupAnswer("Stable" if members else "Empty", epoch, epoch, answers)


def streams(epoch: int, *members: str, state: str | None = None) -> StreamsGroupAnswer:
    """A streams group with one subtopology that reads `orders`: each member has the task of its number, and one standby task."""
    answers = []
    for number, each in enumerate(sorted(members)):
        tasks = TasksAnswer((("0", (number,)),), (("0", (number + 1,)),))
        endpoint = ("host", 8080) if number else None
        answers.append(
            StreamsMemberAnswer(
                *(each, None, None, epoch, "client", "/127.0.0.1", 1, "process", endpoint, (("zone", "a"),)), tasks, tasks
            )
        )
    topology = TopologyAnswer(1, (SubtopologyAnswer("0", ("orders",), (), ("repartition",)),))
    return StreamsGroupAnswer(state or ("Stable" if members else "Empty"), epoch, epoch, topology, tuple(answers))


def offsets(**positions: int) -> dict[TopicPartitionKey, PolledOffset]:
    """Offsets by topic, of partition 0."""
    return {TopicPartitionKey(topic, 0): PolledOffset(at, -1, "") for topic, at in positions.items()}


@dataclass
class PolledCluster:
    """The groups that coordinators have: description and offsets."""

    groups: dict[str, tuple[GroupAnswer, dict[TopicPartitionKey, PolledOffset]]] = field(default_factory=dict)

    def answers(self, asked: Mapping[str, Iterable[TopicPartitionKey]]) -> dict[str, PolledGroup]:
        """The answers about all groups, and about those that are asked for by name, with partitions."""
        found = {}
        for group_id in self.groups.keys() | asked.keys():
            description, committed = self.groups.get(group_id, (None, {}))
            absent = frozenset(asked.get(group_id, ())) - committed.keys()
            found[group_id] = PolledGroup(description, dict(committed), absent)
        return found

    def poll(
        self,
        asked: Mapping[str, Iterable[TopicPartitionKey]],
        silent: Iterable[str] = (),
        failed: Iterable[str] = (),
        at_ms: int = 1_000,
    ) -> GroupPoll:
        """A poll in which the coordinators of some groups are silent, and those of others give an error."""
        left_out = {*silent, *failed}
        groups = {group_id: each for group_id, each in self.answers(asked).items() if group_id not in left_out}
        failures = dict.fromkeys(failed, "NOT_COORDINATOR")
        return GroupPoll(at_ms, at_ms + 10, groups, failures, {"broker-1": "timeout"} if silent else {}, NAMES)


@dataclass
class FollowedPolls:
    """Offsets and records as a merge of the ranges of polls gives them; `changes` has the changes of groups in order."""

    offsets: dict[tuple[str, str, int], tuple[int, str]] = field(default_factory=dict)
    records: dict[bytes, bytes] = field(default_factory=dict)
    #: Group → log offset of its last commit, and of the last removal of a record of it.
    committed_at: dict[str, int] = field(default_factory=dict)
    removed_at: dict[str, int] = field(default_factory=dict)
    changes: list[tuple[str, str, str | None]] = field(default_factory=list)
    next_offset: int = 0

    def merge(self, polled: PolledRange) -> None:
        """Apply a range, which must continue where the last one ended."""
        assert polled.start_offset == self.next_offset
        assert polled.next_offset > polled.start_offset
        self.next_offset = polled.next_offset
        reduced = polled.reduction
        for row in reduced.offsets.commits.to_pylist():
            assert row["commit_timestamp"] == -1
            self.offsets[row["group_id"], row["topic"], row["partition"]] = (row["committed_offset"], row["metadata"])
            self.committed_at[row["group_id"]] = row["log_offset"]
        for row in reduced.offsets.tombstones.to_pylist():
            del self.offsets[row["group_id"], row["topic"], row["partition"]]
        for row in sorted(reduced.groups.records.to_pylist(), key=lambda each: each["log_offset"]):
            if row["value"] is None:
                self.records.pop(row["key"], None)
                self.removed_at[_group_of(row["key"])] = row["log_offset"]
            else:
                self.records[row["key"]] = row["value"]
        self.changes += [(row["group_id"], row["change"], row["member_id"]) for row in reduced.groups.changes.to_pylist()]

    def has_group(self, group_id: str) -> bool:
        """True if the Java coordinator has the group after a load: it has a record, or a commit after its removal."""
        has_record = any(_group_of(key) == group_id for key in self.records)
        return has_record or self.committed_at.get(group_id, -1) > self.removed_at.get(group_id, -1)


def _group_of(key: bytes) -> str:
    """The group that a record with this key is about."""
    record = decode(key, None)
    assert isinstance(record, Record)
    return group_id_of(record)
