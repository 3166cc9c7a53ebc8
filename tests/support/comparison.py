"""Differences between a broker's answers and the tables, group by group and in words."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from broker_queries import BrokerAnswers, DescribedGroup, Member, Offsets
from generations import Generation
from table_answers import Answers

from coordinator_core.codec import Malformed, NoAssignment, Record, decode, decode_assignment, subscribed_topics
from coordinator_core.log.entries import LogRecord
from coordinator_core.state.era import Era
from coordinator_core.state.expiry import expire
from coordinator_core.state.group_state import GroupState
from coordinator_core.state.registry import group_id_of

_WITH_LEADER_EPOCH = 5


@dataclass(frozen=True)
class Difference:
    group: str
    what: str
    broker: Any
    tables: Any

    def __str__(self) -> str:
        return f"{self.group}: {self.what}: the broker has {self.broker!r}, the tables {self.tables!r}"


def differences(generation: Generation, groups: Collection[str], broker: BrokerAnswers, tables: Answers) -> list[Difference]:
    """Differences for these groups."""
    return [found for group in sorted(groups) for found in _of_group(generation, group, broker, tables)]


def tombstone_differences(
    generation: Generation, records: Iterable[LogRecord], appended: Iterable[LogRecord], retention_ms: int, now_ms: int
) -> list[Difference]:
    """Tombstones that the broker's sweep wrote into its log, compared with those that our sweep would write for the same log."""
    state = GroupState(Era.named(generation.era), now_ms, retention_ms)
    for record in records:
        state.apply(record, None if record.is_control else decode(record.key, record.value))
    ours = {swept.group_id: sorted(key for key, _ in swept.tombstones) for swept in expire(state, now_ms) if swept.tombstones}
    theirs: dict[str, list[bytes]] = {}
    found = []
    for record in appended:
        decoded = decode(record.key, record.value)
        assert isinstance(decoded, Record)
        assert record.key is not None
        group = group_id_of(decoded)
        if decoded.value is not None:
            found.append(Difference(group, "written while it swept", decoded, None))
        theirs.setdefault(group, []).append(record.key)
    for group in sorted(ours.keys() | theirs.keys()):
        reported, have = sorted(theirs.get(group, [])), ours.get(group, [])
        if reported != have:
            found.append(Difference(group, "tombstones", reported, have))
    return found


def _of_group(generation: Generation, group: str, broker: BrokerAnswers, tables: Answers) -> Iterator[Difference]:
    def same(what: str, reported: Any, have: Any) -> Iterator[Difference]:
        if reported != have:
            yield Difference(group, what, reported, have)

    yield from same("offsets", broker.offsets.get(group, {}), _without_epochs(generation, tables.offsets.get(group, {})))
    listed, row = broker.listed.get(group), tables.groups.get(group)
    yield from same("exists", listed is not None, row is not None)
    if row is not None and generation.offset_fetch >= 7:
        yield from same("open transactions", _partitions(broker.unstable, group), _partitions(tables.pending, group))
    if listed is None or row is None:
        return
    yield from same("protocol type", listed.protocol_type, row["protocol_type"] or "")
    if listed.state is not None:
        yield from same("state", listed.state, row["state"])
    if listed.group_type is not None:
        yield from same("type", listed.group_type, "classic" if row["group_type"] == "simple" else row["group_type"])
    members = tables.members.get(group, {})
    if row["group_type"] in ("simple", "classic"):
        yield from _classic(same, group, broker.classic[group], row, members, tables)
    else:
        yield from _modern(same, group, broker.modern[group], row, members, tables)


def _classic(
    same: Any, group: str, reported: DescribedGroup, row: Mapping[str, Any], members: Mapping[str, Any], tables: Answers
) -> Iterator[Difference]:
    yield from same("described state", reported.state, row["state"])
    yield from same("described protocol type", reported.protocol_type, row["protocol_type"] or "")
    yield from same("protocol", reported.protocol, row["protocol"] or "")
    yield from same("members", {m.member_id for m in reported.members}, set(members))
    yield from same("member count", len(reported.members), row["member_count"])
    speaks_consumer = row["protocol_type"] == "consumer"
    for member in reported.members:
        have = members.get(member.member_id)
        if have is None:
            continue
        yield from _identity(same, member, have)
        if speaks_consumer:
            assigned = tables.assigned.get((group, member.member_id), frozenset())
            yield from same(f"assignment of {member.member_id}", _assigned(member.assigned), assigned)
            yield from same(f"subscription of {member.member_id}", _subscribed(member.subscribed), have["subscribed_topics"])


def _modern(
    same: Any, group: str, reported: DescribedGroup, row: Mapping[str, Any], members: Mapping[str, Any], tables: Answers
) -> Iterator[Difference]:
    yield from same("described state", reported.state, row["state"])
    yield from same("group epoch", reported.epoch, row["generation"])
    if reported.protocol is not None:
        yield from same("assignor", reported.protocol, row["protocol"])
    yield from same("members", {m.member_id for m in reported.members}, set(members))
    for member in reported.members:
        have = members.get(member.member_id)
        if have is None:
            continue
        yield from _identity(same, member, have)
        assigned = tables.assigned.get((group, member.member_id), frozenset())
        yield from same(f"assignment of {member.member_id}", frozenset(member.assigned), assigned)
        if member.target is not None:
            yield from same(f"target of {member.member_id}", set(member.target), _flat(have["target"]))
        if member.subscribed is not None:
            yield from same(f"subscription of {member.member_id}", list(member.subscribed), have["subscribed_topics"])
        yield from same(f"epoch of {member.member_id}", member.epoch, have["member_epoch"])
        # a missing regular expression is null or empty in a record, and always null in the tables
        yield from same(f"regex of {member.member_id}", member.regex or None, have["subscribed_regex"])
        yield from same(f"rack of {member.member_id}", member.rack, have["rack_id"])


def _identity(same: Any, member: Member, have: Mapping[str, Any]) -> Iterator[Difference]:
    reported = (member.instance_id, member.client_id, member.client_host)
    yield from same(
        f"instance id, client id and host of {member.member_id}",
        reported,
        (have["group_instance_id"], have["client_id"], have["client_host"]),
    )


def _without_epochs(generation: Generation, offsets: Offsets) -> Offsets:
    if generation.offset_fetch >= _WITH_LEADER_EPOCH:
        return offsets
    return {partition: (offset, -1, metadata) for partition, (offset, _, metadata) in offsets.items()}


def _partitions(found: Collection[tuple[str, str, int]], group: str) -> set[tuple[str, int]]:
    return {(topic, partition) for name, topic, partition in found if name == group}


def _assigned(data: bytes) -> frozenset[tuple[str, int]]:
    decoded = decode_assignment(data)
    if isinstance(decoded, (NoAssignment, Malformed)):
        return frozenset()
    return frozenset((each.topic, partition) for each in decoded.assigned_partitions for partition in each.partitions)


def _subscribed(data: bytes) -> list[str] | None:
    topics = subscribed_topics(data)
    return None if isinstance(topics, Malformed) else sorted(set(topics))


def _flat(assignment: list[dict[str, Any]] | None) -> set[tuple[str, int]]:
    return {(part["topic"], partition) for part in assignment or [] for partition in part["partitions"]}
