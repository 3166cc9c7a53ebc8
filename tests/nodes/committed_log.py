"""What the log topic has in the end, and the answers of a coordinator that has loaded it."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from confluent_kafka.admin import AdminClient
from eventually import eventually
from group_offsets import committed
from live_kafka import QUIET
from patience import PATIENCE_SECONDS

from coordinator_core.codec import decode
from coordinator_core.codec.messages.classic import GroupMetadataKey, GroupMetadataValue
from coordinator_core.codec.messages.offsets import OffsetCommitKey, OffsetCommitValue
from coordinator_core.codec.records import Record
from coordinator_core.log.columns import to_log_records
from coordinator_core.log.entries import LogRecord
from coordinator_core.sources.kafka import KafkaSource

#: (topic, partition) → offset
Offsets = Mapping[tuple[str, int], int]


@dataclass
class CommittedLog:
    """The committed records, in the order of the log."""

    #: (group, partition, offset) of every commit.
    commits: set[tuple[str, int, int]] = field(default_factory=set)
    #: (group, partition) → number of commits, repeated ones included.
    counts: Counter[tuple[str, int]] = field(default_factory=Counter)
    offsets: dict[str, dict[tuple[str, int], int]] = field(default_factory=lambda: defaultdict(dict))
    #: Generations of groups, in the order of the log.
    generations: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    records: int = 0
    #: Log partition → its end.
    ends: Mapping[int, int] = field(default_factory=dict)
    #: Commits that were followed by one with a lower offset, which had been sent before.
    overtaken: int = 0

    def take(self, record: LogRecord) -> None:
        self.records += 1
        decoded = decode(record.key, record.value)
        assert isinstance(decoded, Record), decoded
        key, value = decoded.key, decoded.value
        if isinstance(key, OffsetCommitKey) and isinstance(value, OffsetCommitValue):
            offsets, place = self.offsets[key.group], (key.topic, key.partition)
            self.overtaken += offsets.get(place, 0) > value.offset
            offsets[place] = value.offset
            self.commits.add((key.group, key.partition, value.offset))
            self.counts[key.group, key.partition] += 1
        elif isinstance(key, GroupMetadataKey) and isinstance(value, GroupMetadataValue):
            self.generations[key.group].append(value.generation)


def committed_log(address: str) -> CommittedLog:
    """Read the log with read_committed."""
    found = CommittedLog()
    with KafkaSource(address, {"isolation_level": "read_committed"}) as source:
        starts, found.ends = source.earliest_offsets(), source.end_offsets()
        for number, end in found.ends.items():
            for columns in source.read_columns(number, starts[number], end):
                assert columns.damages == ()
                for record in to_log_records(columns, number):
                    found.take(record)
    return found


class MemberAnswer(NamedTuple):
    member_id: str
    client_id: str
    partitions: tuple[int, ...]


class GroupAnswer(NamedTuple):
    """A described group."""

    state: str
    members: tuple[MemberAnswer, ...]

    @property
    def partitions(self) -> list[int]:
        """Assigned partitions of all members."""
        return sorted(partition for member in self.members for partition in member.partitions)


def group_answers(admin: AdminClient, groups: Sequence[str]) -> dict[str, GroupAnswer]:
    """Group → its description, of groups that can be described now."""
    found = {}
    for group, described in admin.describe_consumer_groups(list(groups), request_timeout=PATIENCE_SECONDS).items():
        if described.exception(PATIENCE_SECONDS) is None:
            answer = described.result()
            owned = {each.member_id: [at.partition for at in each.assignment.topic_partitions] for each in answer.members}
            members = (
                MemberAnswer(each.member_id, each.client_id, tuple(sorted(owned[each.member_id]))) for each in answer.members
            )
            found[group] = GroupAnswer(answer.state.name, tuple(sorted(members)))
    return found


def stable_groups(bootstrap: str, sizes: Mapping[str, int], partitions: int) -> dict[str, GroupAnswer]:
    """Wait until each group is stable, with this number of members that own all partitions."""
    answers: dict[str, GroupAnswer] = {}

    def unstable() -> dict[str, tuple[str, int, int]]:
        nonlocal answers
        # a new client each time: an old one keeps asking the coordinator that it has found once, also after NOT_COORDINATOR
        answers = group_answers(AdminClient({"bootstrap.servers": bootstrap, **QUIET}), list(sizes))
        looked = {group: answers.get(group, GroupAnswer("unknown", ())) for group in sizes}
        return {
            group: (found.state, len(found.members), len(found.partitions))
            for group, found in looked.items()
            if (found.state, len(found.members), found.partitions) != ("STABLE", sizes[group], list(range(partitions)))
        }

    eventually("all groups are stable", unstable, lambda left: not left, pause_seconds=0.5)
    return answers


def offset_answers(admin: AdminClient, groups: Sequence[str]) -> dict[str, dict[tuple[str, int], int]]:
    """Group → its committed offsets."""
    return {group: committed(admin, group) for group in groups}
