"""Views of groups and members, as shown in the tables and on the command line."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from coordinator_core.codec.messages.consumer_protocol import ProtocolTopicPartitions
from coordinator_core.codec.messages.modern import TopicPartitions

#: `JoinGroupRequest.UNKNOWN_GENERATION_ID`. No coordinator logs it.
UNKNOWN_GENERATION = -1


@dataclass(frozen=True, slots=True)
class TopicAssignment:
    """Partitions of one topic. Classic groups have topic names, modern ones ids: `topic` is None for an unknown id."""

    topic: str | None
    topic_id: UUID | None
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MemberView:
    """One member. Timeouts in ms, None where the group configuration sets them.

    `subscribed_topics` is None when the subscription cannot be read. `assigned` are the partitions of the member, `target` those
    of the target assignment (modern groups; None when it is unknown, as for some members of a share group that was polled),
    `owned` those that a classic member reported when it joined (KIP-429).
    `standby_tasks` is the number of standby and warm-up tasks of a member of Kafka Streams; None for other members.
    `assignment_problem` is the reason why the assignment of a classic member cannot be read; its partitions are unknown then, and
    `assigned` is empty.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rack_id: str | None
    session_timeout_ms: int | None
    rebalance_timeout_ms: int | None
    subscribed_topics: tuple[str, ...] | None
    subscribed_regex: str | None
    assigned: tuple[TopicAssignment, ...]
    target: tuple[TopicAssignment, ...] | None
    owned: tuple[TopicAssignment, ...]
    member_epoch: int | None
    member_state: str | None
    user_data: bytes | None
    assignment_problem: str | None = None
    standby_tasks: int | None = None


@dataclass(frozen=True, slots=True)
class GroupView:
    """One group in the state after loading. Times in ms; members in the order of their ids.

    `group_type` is `classic`, `simple` (no protocol type, no members: AdminClient's `isSimpleConsumerGroup`), `consumer`, `share`
    or `streams`; `generation` is the group epoch of modern groups,
    and None for a classic group that was polled. `subscribed_topics` are the topics to which
    the coordinator considers the group subscribed; None when unknown, or when the group type has no such rule.
    """

    group_id: str
    group_type: str
    state: str
    generation: int | None
    protocol_type: str | None
    protocol: str | None
    leader: str | None
    state_timestamp: int | None
    members: tuple[MemberView, ...] = ()
    subscribed_topics: tuple[str, ...] | None = None

    @property
    def generation_number(self) -> int:
        """The generation in columns that are never null: UNKNOWN_GENERATION if it is unknown."""
        return UNKNOWN_GENERATION if self.generation is None else self.generation


def simple_group(group_id: str, now_ms: int) -> GroupView:
    """View of a group without a group record; it is Empty since the load."""
    return GroupView(
        group_id=group_id,
        group_type="simple",
        state="Empty",
        generation=0,
        protocol_type=None,
        protocol=None,
        leader=None,
        state_timestamp=now_ms,
    )


def by_name(topics: Iterable[ProtocolTopicPartitions]) -> tuple[TopicAssignment, ...]:
    """Assignments of the classic consumer protocol, sorted."""
    return tuple(sorted((TopicAssignment(t.topic, None, tuple(sorted(t.partitions))) for t in topics), key=_order))


def by_id(topics: Iterable[TopicPartitions], topic_names: Mapping[UUID, str]) -> tuple[TopicAssignment, ...]:
    """Assignments by topic id, sorted, with the names of known ids."""
    named = (TopicAssignment(topic_names.get(t.topic_id), t.topic_id, tuple(sorted(t.partitions))) for t in topics)
    return tuple(sorted(named, key=_order))


def _order(assignment: TopicAssignment) -> tuple[bool, str, int, tuple[int, ...]]:
    topic_id = 0 if assignment.topic_id is None else assignment.topic_id.int
    return assignment.topic is None, assignment.topic or "", topic_id, assignment.partitions
