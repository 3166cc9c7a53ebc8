"""Classic groups: one record of type 2 holds the whole group (`GroupMetadataManager.readGroupMessageValue`, `ClassicGroup`)."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple
from uuid import UUID

from coordinator_core.codec import (
    Malformed,
    NoAssignment,
    decode_assignment,
    decode_subscription,
    refused_by_loaders,
    subscribed_topics,
)
from coordinator_core.codec.messages.classic import GroupMetadataValue, MemberMetadata
from coordinator_core.codec.messages.consumer_protocol import ConsumerProtocolSubscription
from coordinator_core.codec.streams_assignment import STREAMS_PROTOCOL, task_counts
from coordinator_core.log.entries import LogRecord
from coordinator_core.state.era import Era
from coordinator_core.state.views import UNKNOWN_GENERATION, GroupView, MemberView, TopicAssignment, by_name

CONSUMER_PROTOCOL_TYPE = "consumer"

#: Number of decoded subscriptions and of decoded assignments kept: members repeat the same bytes in every generation.
_CACHED = 4096


class _Subscription(NamedTuple):
    """A decoded subscription; `topics` is None when they cannot be read."""

    topics: tuple[str, ...] | None
    rack_id: str | None
    owned: tuple[TopicAssignment, ...]
    user_data: bytes | None


_UNREAD = _Subscription(None, None, (), None)


class _Assignment(NamedTuple):
    """The partitions of a decoded assignment; or none, and the reason why the bytes cannot be read.

    `standby_tasks` is what the user data has, if Kafka Streams wrote them.
    """

    partitions: tuple[TopicAssignment, ...]
    problem: str | None = None
    standby_tasks: int | None = None


_NOT_A_CONSUMER = _Assignment(())


class _MemberList(NamedTuple):
    """Members, sorted by id, and the topics of all subscriptions: None when one subscription cannot be read."""

    members: tuple[MemberView, ...]
    topics: tuple[str, ...] | None


class LoadedClassicGroup:
    """A classic group as the loader of an era builds it from the group's record.

    `before` is the group of the previous record: members that did not change are not decoded again.
    """

    def __init__(
        self,
        era: Era,
        group_id: str,
        log_record: LogRecord,
        value: GroupMetadataValue,
        value_version: int | None,
        before: "LoadedClassicGroup | None" = None,
    ):
        self.group_id = group_id
        self._era = era
        self._log_record = log_record
        self._value = value
        self._value_version = value_version
        self._members: Mapping[str, MemberMetadata]
        if before is not None and before._value.members == value.members:
            self._members = before._members
        else:
            self._members = {member.member_id: member for member in value.members}
        #: None when the group has none. A group with members has the one in its record, even the empty string.
        self.protocol_type = self._read_protocol_type()
        self._views: dict[str, MemberView] = {}
        self._member_list: _MemberList | None = None
        self._refused: tuple[str, ...] | None = None
        if before is not None and before._reads_as(self):
            self._take_over(before)

    def _reads_as(self, other: "LoadedClassicGroup") -> bool:
        """True if both groups read the bytes of a member in the same way."""
        same_protocol = (self.protocol_type, self._value.protocol) == (other.protocol_type, other._value.protocol)
        return same_protocol and self._value_version == other._value_version

    def _take_over(self, before: "LoadedClassicGroup") -> None:
        """Reuse the views of the members that did not change."""
        if before._members is self._members:
            self._views, self._member_list, self._refused = before._views, before._member_list, before._refused
            return
        same = (m for m, member in self._members.items() if m in before._views and before._members[m] == member)
        self._views = {member_id: before._views[member_id] for member_id in same}

    @property
    def is_polled(self) -> bool:
        """True for a group from the answers of a broker, which have no generation, leader and timeouts of a classic group."""
        return self._value.generation == UNKNOWN_GENERATION

    def _read_protocol_type(self) -> str | None:
        if self._members:
            return self._value.protocol_type
        return (self._value.protocol_type or None) if self._era.empty_groups_keep_protocol_type else None

    @property
    def records(self) -> Mapping[bytes, LogRecord]:
        """The raw record that holds the group, by key."""
        key = self._log_record.key
        return {} if key is None else {key: self._log_record}

    @property
    def value(self) -> GroupMetadataValue:
        """The decoded value of the group's record."""
        return self._value

    @property
    def is_simple(self) -> bool:
        """True for no protocol type and no members: a modern group may replace such a group (`ClassicGroup.isSimpleGroup`)."""
        return not self._value.protocol_type and not self._members

    def duplicate_instance_ids(self) -> tuple[str, ...]:
        """Instance ids that more than one member uses."""
        claims = [m.group_instance_id for m in self._members.values() if m.group_instance_id is not None]
        return tuple(sorted({claim for claim in claims if claims.count(claim) > 1})) if claims else ()

    def refused_subscriptions(self) -> tuple[str, ...]:
        """Describe the subscriptions that fail the load in brokers that decode them."""
        if self._refused is None:
            self._refused = tuple(self._find_refused())
        return self._refused

    def _find_refused(self) -> Iterator[str]:
        if self.protocol_type != CONSUMER_PROTOCOL_TYPE or not self._era.knows_subscriptions:
            return
        for view in self._list_members().members:
            if view.subscribed_topics is None:
                why = refused_by_loaders(self._members[view.member_id].subscription)
                if why is not None:
                    yield f"subscription of member {view.member_id}: {why}"

    def subscribed_topics(self) -> tuple[str, ...] | None:
        """Topics of all subscriptions (`computeSubscribedTopics`); None when unknown: another protocol type, or bytes that
        are not a valid subscription."""
        if self.protocol_type != CONSUMER_PROTOCOL_TYPE:
            return None
        if not self._members:
            return ()
        if self._value.protocol is None:
            return None
        return self._list_members().topics

    def view(self, topic_names: Mapping[UUID, str]) -> GroupView:  # noqa: ARG002 - classic groups name topics themselves
        """The group in the state that a coordinator has after loading."""
        value, version = self._value, self._value_version
        state_timestamp = value.current_state_timestamp if version in self._era.state_timestamp_versions else -1
        protocol_type = self.protocol_type
        return GroupView(
            group_id=self.group_id,
            group_type="simple" if not protocol_type and not self._members else "classic",
            state="Stable" if self._members or not self._era.empty_state else "Empty",
            generation=None if self.is_polled else value.generation,
            protocol_type=protocol_type,
            protocol=value.protocol,
            leader=self._leader(),
            state_timestamp=None if state_timestamp == -1 else state_timestamp,
            members=self._list_members().members,
            subscribed_topics=self.subscribed_topics(),
        )

    def _leader(self) -> str | None:
        if self._value.leader is not None or self.is_polled:
            return self._value.leader
        return next(iter(self._members), None)

    def _list_members(self) -> _MemberList:
        if self._member_list is None:
            members = tuple(self._member(member_id) for member_id in sorted(self._members))
            self._member_list = _MemberList(members, _all_topics(members))
        return self._member_list

    def _member(self, member_id: str) -> MemberView:
        view = self._views.get(member_id)
        if view is None:
            view = self._views[member_id] = self._read_member(self._members[member_id])
        return view

    def _read_member(self, member: MemberMetadata) -> MemberView:
        is_consumer = self.protocol_type == CONSUMER_PROTOCOL_TYPE
        subscription = _subscription(member.subscription) if is_consumer else _UNREAD
        assignment = _assignment(member.assignment) if is_consumer else _NOT_A_CONSUMER
        return MemberView(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rack_id=subscription.rack_id,
            session_timeout_ms=None if self.is_polled else member.session_timeout,
            rebalance_timeout_ms=None if self.is_polled else self._era.rebalance_timeout_ms(member, self._value_version),
            subscribed_topics=subscription.topics,
            subscribed_regex=None,
            assigned=assignment.partitions,
            target=(),
            owned=subscription.owned,
            member_epoch=None,
            member_state=None,
            user_data=subscription.user_data,
            assignment_problem=assignment.problem,
            standby_tasks=assignment.standby_tasks if self._value.protocol == STREAMS_PROTOCOL else None,
        )


@lru_cache(_CACHED)
def _subscription(data: bytes) -> _Subscription:
    subscribed, read = subscribed_topics(data), decode_subscription(data)
    topics = None if isinstance(subscribed, Malformed) else tuple(sorted(set(subscribed)))
    if not isinstance(read, ConsumerProtocolSubscription):
        return _UNREAD._replace(topics=topics)
    return _Subscription(topics, read.rack_id or None, by_name(read.owned_partitions), read.user_data)


@lru_cache(_CACHED)
def _assignment(data: bytes) -> _Assignment:
    """Read an assignment as `ConsumerProtocol.deserializeAssignment` does.

    It throws SchemaException for bytes of another form, such as those of old Sarama clients, which leave out the user data. Other
    clients read some of these, so the partitions of the member are unknown, not none.
    """
    decoded = decode_assignment(data)
    if isinstance(decoded, Malformed):
        return _Assignment((), decoded.reason)
    if isinstance(decoded, NoAssignment):
        return _Assignment(())
    tasks = task_counts(decoded.user_data or b"")
    return _Assignment(by_name(decoded.assigned_partitions), standby_tasks=None if tasks is None else tasks.standby)


def _all_topics(members: tuple[MemberView, ...]) -> tuple[str, ...] | None:
    topics: set[str] = set()
    for member in members:
        if member.subscribed_topics is None:
            return None
        topics.update(member.subscribed_topics)
    return tuple(sorted(topics))
