"""Rebalances, owners and resets by a walk over the records of a log, record after record: the slow and plain way."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from log_builder import Log

from coordinator_core.codec import Record, decode
from coordinator_core.codec.messages.consumer import ConsumerGroupMetadataValue
from coordinator_core.codec.uuids import uuid_text
from coordinator_core.health import MembershipEvent
from coordinator_core.log.entries import LogRecord
from coordinator_core.state.era import Era
from coordinator_core.state.registry import GroupRegistry, group_id_of
from coordinator_core.state.views import GroupView, MemberView

#: Topic (id or name) and partition.
Place = tuple[str, int]


@dataclass
class Step:
    """A record of a group, with the group before and after it."""

    record: LogRecord
    decoded: Record
    before: GroupView | None
    after: GroupView | None


def steps(log: Log, era: Era) -> Iterator[tuple[str, Step]]:
    """Every group record with its group id."""
    registry = GroupRegistry(era)
    for log_record in log.records:
        decoded = None if log_record.is_control else decode(log_record.key, log_record.value)
        if isinstance(decoded, Record) and decoded.record_type > 1:
            group_id = group_id_of(decoded)
            before = view_of(registry, group_id)
            registry.apply(log_record, decoded)
            yield group_id, Step(log_record, decoded, before, view_of(registry, group_id))


def view_of(registry: GroupRegistry, group_id: str) -> GroupView | None:
    group = registry.groups.get(group_id)
    return None if group is None else group.view({})


def members_of(view: GroupView | None) -> tuple[MemberView, ...]:
    return () if view is None else view.members


def identity(member: MemberView) -> str:
    return member.group_instance_id or member.member_id


def owners(view: GroupView | None) -> dict[Place, MemberView]:
    return {
        (uuid_text(part.topic_id) if part.topic_id else str(part.topic), partition): member
        for member in members_of(view)
        for part in member.assigned
        for partition in part.partitions
    }


@dataclass
class Counters:
    """Changes since the last rebalance."""

    joined: int = 0
    left: int = 0
    replaced: int = 0
    subscriptions: int = 0
    topics: bool = False


@dataclass
class Walk:
    """The walk over the records of one group; each record is in the batch with the number of `cuts` up to its offset."""

    group_id: str
    cuts: Collection[int] = ()
    rebalances: list[dict[str, Any]] = field(default_factory=list)
    #: Rows (topic or id, partition, member, client, since, until).
    ownership: list[dict[str, Any]] = field(default_factory=list)
    memberships: list[MembershipEvent] = field(default_factory=list)
    _counters: Counters = field(default_factory=Counters)
    _current: dict[str, Any] | None = None
    _lost_at: dict[Place, int] = field(default_factory=dict)
    _hash: int | None = None

    def add(self, step: Step) -> None:
        before, after, at = step.before, step.after, step.record.timestamp
        if after is None and before is None:
            return
        self._count(step)
        if after is None:
            self._end("deleted")
            self._counters, self._hash = Counters(), None
            self.memberships.append(MembershipEvent(at, "Dead", 0, 0, **self._place_of(step)))
        else:
            with_partitions = sum(1 for member in after.members if member.assigned)
            self.memberships.append(MembershipEvent(at, after.state, len(after.members), with_partitions, **self._place_of(step)))
            if after.generation != before.generation if before is not None else bool(after.members):
                self._begin(step)
        self._move(step)
        is_open = self._current is not None and self._current["finished_at"] is None
        if self._current is not None and is_open and after is not None and after.state in ("Stable", "Empty"):
            self._current |= {"finished_at": at, "outcome": "completed"}

    def _place_of(self, step: Step) -> dict[str, Any]:
        offset = step.record.offset
        return {"batch_id": sum(cut <= offset for cut in self.cuts), "log_offset": offset}

    def _count(self, step: Step) -> None:
        old, new = ({identity(m): m for m in members_of(view)} for view in (step.before, step.after))
        counters = self._counters
        counters.joined += len(new.keys() - old.keys())
        counters.left += len(old.keys() - new.keys())
        for name in old.keys() & new.keys():
            counters.replaced += old[name].member_id != new[name].member_id
            counters.subscriptions += old[name].subscribed_topics != new[name].subscribed_topics
        value = step.decoded.value
        if isinstance(value, ConsumerGroupMetadataValue):
            counters.topics |= self._hash is not None and self._hash != value.metadata_hash
            self._hash = value.metadata_hash

    def _begin(self, step: Step) -> None:
        before, after, at = step.before, step.after, step.record.timestamp
        assert after is not None
        self._end("superseded")
        counters, is_known = self._counters, before is not None or (after.generation or 0) <= 1
        is_classic = after.group_type == "classic"
        started_at = after.state_timestamp if is_classic else at
        self._current = {
            "from_generation": before.generation if before else None,
            "to_generation": after.generation,
            "trigger": self._trigger(step) if is_known else "unknown",
            "outcome": "in_progress",
            "started_at": started_at,
            "finished_at": None,
            "members_before": len(after.members) - counters.joined + counters.left if is_known else None,
            "members_after": len(after.members),
            "members_joined": counters.joined if is_known else None,
            "members_left": counters.left if is_known else None,
            "partitions_moved": 0,
            "seconds_without_owner": None,
        }
        self.rebalances.append(self._current)
        self._counters = Counters()

    def _trigger(self, step: Step) -> str:
        counters = self._counters
        if counters.joined and counters.left:
            return "members_changed"
        had, has = owners(step.before), owners(step.after)
        gained = sum(1 for place, member in has.items() if place not in had or identity(had[place]) != identity(member))
        lost = sum(1 for place, member in had.items() if place not in has or identity(has[place]) != identity(member))
        assert step.after is not None
        for trigger, applies in (
            ("member_joined", counters.joined),
            ("member_left", counters.left),
            ("member_replaced", counters.replaced),
            ("subscription_changed", counters.subscriptions),
            ("topics_changed", counters.topics),
            ("topics_changed", step.after.group_type == "classic" and gained != lost),
        ):
            if applies:
                return trigger
        return "unknown"

    def _end(self, outcome: str) -> None:
        if self._current is not None and self._current["outcome"] == "in_progress":
            self._current["outcome"] = outcome
        self._current = None

    def _move(self, step: Step) -> None:
        had, has, at = owners(step.before), owners(step.after), step.record.timestamp
        for place, member in had.items():
            if place not in has or has[place].member_id != member.member_id:
                next(row for row in reversed(self.ownership) if row["place"] == place)["until"] = at
            if place not in has:
                self._lost_at[place] = at
        for place, member in has.items():
            if place not in had or had[place].member_id != member.member_id:
                row = {"place": place, "member_id": member.member_id, "client_id": member.client_id, "since": at, "until": None}
                self.ownership.append(row)
            if place in had and identity(had[place]) == identity(member):
                continue
            if self._current is None:
                continue
            self._current["partitions_moved"] += 1
            gaps = [self._current["seconds_without_owner"]]
            if place in had:
                assert step.after is not None
                gaps.append(None if step.after.state_timestamp is None else (at - step.after.state_timestamp) / 1000)
            elif place in self._lost_at:
                gaps.append((at - self._lost_at[place]) / 1000)
            self._current["seconds_without_owner"] = max((gap for gap in gaps if gap is not None), default=None)


def walks(log: Log, era: Era, cuts: Collection[int] = ()) -> dict[str, Walk]:
    """The walk over each group in a log that is cut into batches."""
    found: dict[str, Walk] = {}
    for group_id, step in steps(log, era):
        found.setdefault(group_id, Walk(group_id, set(cuts))).add(step)
    for walk in found.values():
        for row in walk.rebalances:
            if not row["partitions_moved"]:
                row["seconds_without_owner"] = 0.0
    return found
