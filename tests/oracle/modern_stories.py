"""Stories of groups of KIP-848, KIP-932 and KIP-1071. The order of records matters here, since the loader checks it.

Two rules of the loader shape them: a partition (or task) belongs to one member at a time, and tombstones appear in the order in
which a coordinator writes them.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from stories import PATIENT_MS, TOPIC_PARTITIONS, TOPICS, Plot, StoryWriter

from coordinator_core.codec import Record, encode_subscription
from coordinator_core.codec.messages.classic import GroupMetadataKey
from coordinator_core.codec.messages.consumer import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
)
from coordinator_core.codec.messages.consumer_protocol import ConsumerProtocolSubscription
from coordinator_core.codec.messages.modern import (
    GroupKey,
    MemberKey,
    TargetAssignmentMemberValue,
    TargetAssignmentMetadataValue,
    TopicPartitions,
)
from coordinator_core.codec.messages.share import (
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataValue,
    TopicPartitionsInfo,
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

TopicAndPartition = tuple[str, int]
_REGEX = "(orders|clicks)"
#: Metadata of a member that still speaks the classic protocol.
_CLASSIC_MEMBER = ClassicMemberMetadata(
    PATIENT_MS, (ClassicProtocol("range", encode_subscription(ConsumerProtocolSubscription(("orders",)))),)
)


@dataclass
class _Group:
    """The part common to all kinds of groups; subclasses add the fields of their records. `free` are unassigned partitions."""

    story: StoryWriter
    group: str
    epoch: int = 0
    target_epoch: int = 0
    members: dict[str, tuple[TopicAndPartition, ...]] = field(default_factory=dict)
    free: list[TopicAndPartition] = field(default_factory=list)

    def group_record(self, record_type: int, value: Any) -> Record:
        return Record(record_type, GroupKey(self.group), value, None if value is None else 0)

    def member_record(self, record_type: int, member: str, value: Any) -> Record:
        return Record(record_type, MemberKey(self.group, member), value, None if value is None else 0)

    def new_member(self) -> str:
        member = f"m{self.story.random.randrange(10**6):06}"
        return member if member not in self.members else self.new_member()

    def take(self) -> tuple[TopicAndPartition, ...]:
        """Take some of the free partitions."""
        count = min(len(self.free), self.story.random.choice((0, 1, 2, 3)))
        return tuple(self.free.pop(self.story.random.randrange(len(self.free))) for _ in range(count))

    def give_back(self, member: str) -> None:
        self.free += self.members.pop(member)

    def by_topic_id(self, partitions: Iterable[TopicAndPartition]) -> tuple[TopicPartitions, ...]:
        return tuple(
            TopicPartitions(self.story.setting.topic_ids[topic], partitions)
            for topic, partitions in _by_topic(partitions).items()
        )

    def chance(self, likely: float) -> bool:
        return self.story.random.random() < likely


def _by_topic(partitions: Iterable[TopicAndPartition]) -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    for topic, partition in sorted(partitions):
        found[topic] = (*found.get(topic, ()), partition)
    return found


def consumer(story: StoryWriter) -> None:
    """A consumer group: before it perhaps offsets or a classic group, at its end perhaps deletion or a classic group again."""
    group = story.groups[0]
    group_story = _ConsumerGroup(story, group, free=[(topic, p) for topic in TOPICS for p in range(TOPIC_PARTITIONS)])
    if group_story.chance(0.3):
        story.commit(group)
    if group_story.chance(0.2):
        story.classic_group()
        story.write(Record(2, GroupMetadataKey(group), None, None))
    for _ in range(story.random.choice((1, 2, 4, 6))):
        group_story.step()
    if group_story.chance(0.25):
        group_story.end()
        if group_story.chance(0.5):
            story.classic_group()
    if group_story.chance(0.3):
        story.commit(group)


class _ConsumerGroup(_Group):
    def step(self) -> None:
        acts: list[Callable[[], None]] = [self.join, self.join, self.reconcile, self.commit]
        if self.members:
            acts += [self.leave, self.commit]
        self.story.random.choice(acts)()

    def join(self) -> None:
        draw = self.story.random
        member, partitions = self.new_member(), self.take()
        uses_regex = self.chance(0.2)
        topics = () if uses_regex else tuple(draw.sample(TOPICS, draw.choice((0, 1, 2))))
        metadata = ConsumerGroupMemberMetadataValue(
            draw.choice((None, f"instance-{member}")),
            draw.choice((None, "rack-1")),
            f"client-{member}",
            "/127.0.0.1",
            topics,
            _REGEX if uses_regex else draw.choice((None, "")),
            PATIENT_MS,
            draw.choice((None, "uniform", "range")),
            draw.choice((None, None, None, _CLASSIC_MEMBER)),
        )
        self.epoch += 1
        resolved = ConsumerGroupRegularExpressionKey(self.group, _REGEX)
        self.story.write(
            self.member_record(5, member, metadata),
            *([Record(16, resolved, ConsumerGroupRegularExpressionValue(("orders", "clicks"), 1, 1), 0)] * uses_regex),
            self.group_record(3, ConsumerGroupMetadataValue(self.epoch)),
        )
        self.members[member] = partitions
        if self.chance(0.85):
            self.target()
        if self.chance(0.85):
            self.current(member)

    def target(self) -> None:
        self.target_epoch = self.epoch
        self.story.write(
            *(self.member_record(7, m, TargetAssignmentMemberValue(self.by_topic_id(p))) for m, p in self.members.items()),
            self.group_record(6, TargetAssignmentMetadataValue(self.target_epoch)),
        )

    def current(self, member: str) -> None:
        draw = self.story.random
        partitions = self.members[member]
        split = draw.choice((0, 0, 1))
        held, revoked = self.since(partitions[split:]), self.since(partitions[:split])
        state = draw.choice((0, 0, 0, 1, 2))
        value = ConsumerGroupCurrentMemberAssignmentValue(self.epoch, self.epoch - 1, state, held, revoked)
        self.story.write(self.member_record(8, member, value))

    def since(self, partitions: Sequence[TopicAndPartition]) -> tuple[TopicPartitions, ...]:
        """A member's partitions, sometimes with the epoch of each beside it (KIP-1251)."""
        held = self.by_topic_id(partitions)
        if self.chance(0.5):
            return held
        return tuple(replace(each, assignment_epochs=(self.epoch,) * len(each.partitions)) for each in held)

    def reconcile(self) -> None:
        """Bring every member to the epoch of the target."""
        self.target()
        for member, partitions in self.members.items():
            value = ConsumerGroupCurrentMemberAssignmentValue(self.epoch, self.epoch, 0, self.by_topic_id(partitions))
            self.story.write(self.member_record(8, member, value))

    def commit(self) -> None:
        producer = self.story.first_producer if self.chance(0.3) else -1
        self.story.commit(self.group, producer)
        if producer != -1 and self.chance(0.6):
            self.story.marker(producer)

    def leave(self) -> None:
        member = self.story.random.choice(sorted(self.members))
        self.give_back(member)
        self.epoch += 1
        self.story.write(
            *(self.member_record(record_type, member, None) for record_type in (8, 7, 5)),
            self.group_record(3, ConsumerGroupMetadataValue(self.epoch)),
        )
        if self.chance(0.7):
            self.target()

    def end(self) -> None:
        members = sorted(self.members)
        self.story.write(
            *(self.member_record(record_type, m, None) for record_type in (8, 7) for m in members),
            self.group_record(6, None),
            *(self.member_record(5, m, None) for m in members),
            Record(16, ConsumerGroupRegularExpressionKey(self.group, _REGEX), None, None),
            self.group_record(4, None),
            self.group_record(3, None),
        )
        self.members.clear()


def share(story: StoryWriter) -> None:
    """A share group; its offsets are not in this topic."""
    group_story = _ShareGroup(story, story.groups[0], free=[(topic, p) for topic in TOPICS for p in range(TOPIC_PARTITIONS)])
    for _ in range(story.random.choice((1, 2, 4))):
        group_story.join() if not group_story.members or group_story.chance(0.6) else group_story.leave()
    if group_story.chance(0.2):
        group_story.end()


class _ShareGroup(_Group):
    def join(self) -> None:
        draw = self.story.random
        member, partitions = self.new_member(), self.take()
        self.epoch += 1
        topics = tuple(draw.sample(TOPICS, draw.choice((0, 1, 2))))
        assigned = self.by_topic_id(partitions)
        states = tuple(TopicPartitionsInfo(self.story.setting.topic_ids[topic], topic, (0, 1)) for topic in topics)
        metadata = ShareGroupMemberMetadataValue(draw.choice((None, "rack-1")), f"client-{member}", "/127.0.0.1", topics)
        self.story.write(self.member_record(10, member, metadata), self.group_record(11, ShareGroupMetadataValue(self.epoch, 0)))
        self.members[member] = partitions
        if self.chance(0.85):
            self.story.write(
                self.member_record(13, member, TargetAssignmentMemberValue(assigned)),
                self.group_record(12, TargetAssignmentMetadataValue(self.epoch)),
                self.member_record(14, member, ShareGroupCurrentMemberAssignmentValue(self.epoch, self.epoch - 1, 0, assigned)),
            )
        if states and self.chance(0.5):
            self.story.write(self.group_record(15, ShareGroupStatePartitionMetadataValue(initialized_topics=states)))

    def leave(self) -> None:
        member = self.story.random.choice(sorted(self.members))
        self.give_back(member)
        self.epoch += 1
        self.story.write(
            *(self.member_record(record_type, member, None) for record_type in (14, 13, 10)),
            self.group_record(11, ShareGroupMetadataValue(self.epoch, 0)),
        )

    def end(self) -> None:
        members = sorted(self.members)
        self.story.write(
            *(self.member_record(record_type, m, None) for record_type in (14, 13) for m in members),
            self.group_record(12, None),
            *(self.member_record(10, m, None) for m in members),
            self.group_record(15, None),
            self.group_record(11, None),
        )
        self.members.clear()


def streams(story: StoryWriter) -> None:
    """A streams group with one subtopology."""
    group = story.groups[0]
    group_story = _StreamsGroup(story, group, free=[("0", task) for task in range(TOPIC_PARTITIONS)])
    if group_story.chance(0.3):
        story.commit(group)
    group_story.topology()
    for _ in range(story.random.choice((1, 2, 4))):
        group_story.join() if not group_story.members or group_story.chance(0.6) else group_story.leave()
        if group_story.chance(0.5):
            story.commit(group)
    if group_story.chance(0.2):
        group_story.end()


class _StreamsGroup(_Group):
    def topology(self) -> None:
        draw = self.story.random
        sources = tuple(draw.sample(TOPICS, draw.choice((1, 2))))
        self.epoch += 1
        self.story.write(
            self.group_record(17, StreamsGroupMetadataValue(self.epoch, 0, draw.choice((-1, 0, 0)))),
            self.group_record(23, StreamsGroupTopologyValue(0, (Subtopology("0", sources),))),
        )

    def join(self) -> None:
        draw = self.story.random
        member, tasks = self.new_member(), self.take()
        self.epoch += 1
        active = tuple(TaskIds(subtopology, partitions) for subtopology, partitions in _by_topic(tasks).items())
        metadata = StreamsGroupMemberMetadataValue(
            draw.choice((None, f"instance-{member}")),
            draw.choice((None, "rack-1")),
            f"client-{member}",
            "/127.0.0.1",
            PATIENT_MS,
            0,
            f"process-{member}",
        )
        self.story.write(
            self.member_record(19, member, metadata),
            self.group_record(17, StreamsGroupMetadataValue(self.epoch, 0, draw.choice((-1, 0, 0, 0)))),
        )
        self.members[member] = tasks
        if self.chance(0.85):
            self.story.write(
                self.member_record(21, member, StreamsGroupTargetAssignmentMemberValue(active)),
                self.group_record(20, TargetAssignmentMetadataValue(self.epoch)),
            )
        # always: StreamsGroupDescribe of 4.3 fails with a NullPointerException over a member without current assignment
        state = draw.choice((1, 1, 1, 2, 3))
        value = StreamsGroupCurrentMemberAssignmentValue(self.epoch, self.epoch - 1, state, active)
        self.story.write(self.member_record(22, member, value))

    def leave(self) -> None:
        member = self.story.random.choice(sorted(self.members))
        self.give_back(member)
        self.epoch += 1
        self.story.write(
            *(self.member_record(record_type, member, None) for record_type in (22, 21, 19)),
            self.group_record(17, StreamsGroupMetadataValue(self.epoch, 0, 0)),
        )

    def end(self) -> None:
        members = sorted(self.members)
        self.story.write(
            *(self.member_record(record_type, m, None) for record_type in (22, 21) for m in members),
            self.group_record(20, None),
            *(self.member_record(19, m, None) for m in members),
            self.group_record(17, None),
            self.group_record(23, None),
        )
        self.members.clear()


MODERN_PLOTS: Sequence[tuple[int, str, Plot]] = ((5, "consumer", consumer), (2, "share", share), (2, "streams", streams))
