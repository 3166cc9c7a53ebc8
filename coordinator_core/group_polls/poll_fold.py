"""Fold of polls: the differences between the answers of a poll and the state before it, as the reduction of a range of a log.

A poll is one range of a log that nobody wrote: each difference is a record at an offset of its own, and the last offset of the
range is the poll itself, so that a poll without differences is a range too. Plans, histories and statuses of the tables follow
from it as from a range of `__consumer_offsets`.

- Silence is not absence. A group whose coordinator did not answer, or answered with an error, stays as it is.
- A group is removed by the second complete poll in a row whose coordinator knows neither the group nor an offset of it.
- A committed offset is removed when the coordinator was asked for the partition by name and has no commit.
- Records of a group are `state_only`: the changes of a poll are those between the group before and after it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from coordinator_core.codec import Record, decode, encode
from coordinator_core.codec.messages.offsets import OffsetCommitKey, OffsetCommitValue
from coordinator_core.group_polls.group_poll import POLLED_PARTITION, GroupPoll, PolledGroup, PolledOffset, TopicPartitionKey
from coordinator_core.group_polls.polled_changes import PolledChanges
from coordinator_core.group_polls.polled_records import (
    changed_records,
    commit_version,
    group_records,
    group_removal,
    is_rebalancing,
    is_simple,
    simple_group_records,
    without_members,
)
from coordinator_core.log.columns import columns_of
from coordinator_core.log.entries import LogRecord
from coordinator_core.reduction.partition_reduction import PartitionReducer
from coordinator_core.reduction.range_reduction import RangeReduction
from coordinator_core.reduction.schemas import OTHERS
from coordinator_core.state.era import Era
from coordinator_core.state.group_fold import GroupFold
from coordinator_core.state.history import Change, changes
from coordinator_core.state.membership import membership_changes
from coordinator_core.state.views import GroupView

_OFFSET_COMMIT = 1
_WITH_LEADER_EPOCH = 3


class PollNote(StrEnum):
    """What a poll found out about the answers about a group; a kind of change in `group_history`."""

    #: The coordinator knows neither the group nor an offset of it: the next complete poll that finds the same removes the group.
    MISSING = "poll_missing"
    #: The coordinator answered with an error; `detail` is the reason.
    FAILED = "poll_failed"
    #: The coordinator answers again, and knows the group.
    ANSWERED = "poll_answered"


class NotedAnswer(NamedTuple):
    """The last note about a group."""

    note: PollNote
    detail: str


@dataclass(frozen=True, slots=True)
class StoredGroup:
    """A group before a poll: its records by key, and its committed offsets."""

    records: Mapping[bytes, bytes] = field(default_factory=dict)
    offsets: Mapping[TopicPartitionKey, PolledOffset] = field(default_factory=dict)


@dataclass(frozen=True)
class PolledRange:
    """The effect of a poll. `next_offset` is the first offset after it, `topic_names` those of the ids in changed groups."""

    reduction: RangeReduction
    start_offset: int
    next_offset: int
    asked_at_ms: int
    is_complete: bool
    topic_names: Mapping[UUID, str]


class PollFold:
    """The groups after the last poll. `notes` has the last note about each group that has one, other than `ANSWERED`."""

    def __init__(
        self, era: Era, groups: Mapping[str, StoredGroup] | None = None, notes: Mapping[str, NotedAnswer] | None = None
    ) -> None:
        self._era = era
        self._groups = dict(groups or {})
        self._notes = dict(notes or {})

    @property
    def groups(self) -> Mapping[str, StoredGroup]:
        """The groups that exist after the last poll."""
        return self._groups

    @property
    def notes(self) -> Mapping[str, NotedAnswer]:
        """The last note about each group that is missing, or whose coordinator answers with an error."""
        return self._notes

    def apply(self, poll: GroupPoll, start_offset: int) -> PolledRange:
        """Apply a poll, whose range starts at `start_offset`."""
        writing = _PolledRangeWriter(self._era, start_offset, poll)
        for group_id in sorted(poll.groups.keys() | poll.failures.keys()):
            answer = poll.groups.get(group_id)
            if answer is None:
                self._note(group_id, NotedAnswer(PollNote.FAILED, poll.failures[group_id]), writing)
            elif answer.is_absent:
                self._absent(group_id, poll, writing)
            else:
                self._answered(group_id, answer, writing)
        is_blind = any(group_id in self._groups for group_id in poll.failures)
        return writing.finish(is_complete=poll.is_complete and not is_blind)

    def _note(self, group_id: str, note: NotedAnswer, writing: "_PolledRangeWriter") -> None:
        """A note is a row once, until another one replaces it."""
        before = self._notes.get(group_id)
        if before == note:
            return
        if note.note is PollNote.ANSWERED:
            if before is None:
                return
            del self._notes[group_id]
        else:
            self._notes[group_id] = note
        stored = self._groups.get(group_id, StoredGroup())
        writing.note(group_id, note, stored.records)

    def _absent(self, group_id: str, poll: GroupPoll, writing: "_PolledRangeWriter") -> None:
        stored = self._groups.get(group_id)
        if stored is None or not poll.is_complete:
            return
        noted = self._notes.get(group_id)
        if noted is None or noted.note is not PollNote.MISSING:
            self._note(group_id, NotedAnswer(PollNote.MISSING, "the coordinator knows no such group, and no offset"), writing)
            return
        for key in sorted(stored.offsets):
            writing.remove_offset(group_id, key)
        writing.change_group(group_id, stored.records, {}, group_removal(group_id, stored.records))
        del self._groups[group_id], self._notes[group_id]

    def _answered(self, group_id: str, answer: PolledGroup, writing: "_PolledRangeWriter") -> None:
        self._note(group_id, NotedAnswer(PollNote.ANSWERED, "the coordinator answers again"), writing)
        stored = self._groups.get(group_id, StoredGroup())
        records = self._records(group_id, stored, answer)
        if records != stored.records:
            writing.change_group(group_id, stored.records, records, changed_records(stored.records, records))
        offsets = dict(stored.offsets)
        # a group that was deleted and has come back by its offsets alone: the tombstone of its records hides the earlier commits
        known = {} if stored.records and not records else stored.offsets
        for key, answered in sorted(answer.offsets.items()):
            offset = self._as_stored(answered)
            if known.get(key) != offset:
                writing.commit(group_id, key, offset)
                offsets[key] = offset
        for key in sorted(answer.without_commit & offsets.keys()):
            writing.remove_offset(group_id, key)
            del offsets[key]
        if records or offsets or group_id in self._groups:
            self._groups[group_id] = StoredGroup(records, offsets)

    def _records(self, group_id: str, stored: StoredGroup, answer: PolledGroup) -> Mapping[bytes, bytes]:
        if answer.description is None:
            return without_members(self._era, group_id, stored.records)
        if is_rebalancing(answer.description):
            return stored.records
        if is_simple(answer.description):
            return self._simple_records(group_id, stored, answer)
        return group_records(self._era, group_id, answer.description)

    def _simple_records(self, group_id: str, stored: StoredGroup, answer: PolledGroup) -> Mapping[bytes, bytes]:
        """The records of a simple group: none if it exists by its offsets, and one, which stays, if it is new without any.

        The Java coordinator creates a group at a commit, and keeps it if the transaction of the commit is aborted. Scala brokers
        have no such group after a load.
        """
        is_kept_without_offsets = self._era.hides_offsets_without_group and not (answer.offsets or answer.has_unread_offsets)
        if not stored.records and (group_id in self._groups or not is_kept_without_offsets):
            return {}
        record = simple_group_records(self._era, group_id)
        return record if is_kept_without_offsets or stored.records == record else {}

    def _as_stored(self, offset: PolledOffset) -> PolledOffset:
        """Commits of eras before 2.1 have no leader epoch: a newer broker would differ from the tables in each first poll."""
        return offset if commit_version(self._era) >= _WITH_LEADER_EPOCH else offset._replace(leader_epoch=-1)


class _PolledRangeWriter:
    """Collects the records and changes of one poll."""

    def __init__(self, era: Era, start_offset: int, poll: GroupPoll) -> None:
        self._era = era
        self._start = self._next = start_offset
        self._poll = poll
        self._names = poll.topic_names
        self._offset_records: list[LogRecord] = []
        self._changes = PolledChanges(poll.answered_at_ms)
        self._used_ids: set[UUID] = set()

    def commit(self, group_id: str, key: TopicPartitionKey, offset: PolledOffset) -> None:
        """A commit, whose time is not known."""
        value = OffsetCommitValue(offset.offset, offset.leader_epoch, offset.metadata)
        self._offset_record(OffsetCommitKey(group_id, key.topic, key.partition), value)

    def remove_offset(self, group_id: str, key: TopicPartitionKey) -> None:
        """A removal of a committed offset."""
        self._offset_record(OffsetCommitKey(group_id, key.topic, key.partition), None)

    def change_group(
        self,
        group_id: str,
        before: Mapping[bytes, bytes],
        after: Mapping[bytes, bytes],
        records: list[tuple[bytes, bytes | None]],
    ) -> None:
        """The records that change a group, and the changes from the group before to the group after them, at the last record."""
        for key, value in records:
            self._changes.record(self._take_offset(), key, value)
        at = self._next - 1
        was, now = self._view(group_id, before), self._view(group_id, after)
        shown = now or was
        for change in changes(was, now):
            self._changes.change(at, group_id, change, shown)
        self._changes.membership(at, membership_changes(was, now))
        for view in (was, now):
            if view is not None:
                parts = (part for member in view.members for part in (*member.assigned, *(member.target or ())))
                self._used_ids.update(part.topic_id for part in parts if part.topic_id is not None)

    def note(self, group_id: str, note: NotedAnswer, records: Mapping[bytes, bytes]) -> None:
        """A note about the answers about a group."""
        change = Change(note.note, None, note.detail)
        self._changes.change(self._take_offset(), group_id, change, self._view(group_id, records))

    def finish(self, *, is_complete: bool) -> PolledRange:
        """The range, with the offset of the poll itself at its end."""
        next_offset = self._next + 1
        reducer = PartitionReducer(self._era, POLLED_PARTITION)
        if self._offset_records:
            reducer.add(columns_of(self._offset_records, next_offset=next_offset))
        offsets = replace(reducer.finish(), records_read=next_offset - 1 - self._start, others=OTHERS.empty_table())
        return PolledRange(
            # the time of the last record is that up to which the tables are complete
            RangeReduction(
                offsets, self._changes.reduction(), OTHERS.empty_table(), self._poll.answered_at_ms if is_complete else None
            ),
            self._start,
            next_offset,
            self._poll.asked_at_ms,
            is_complete,
            {topic_id: self._names[topic_id] for topic_id in self._used_ids if topic_id in self._names},
        )

    def _offset_record(self, key: OffsetCommitKey, value: OffsetCommitValue | None) -> None:
        record = Record(_OFFSET_COMMIT, key, value, None if value is None else commit_version(self._era))
        encoded, content = encode(record)
        at = self._take_offset()
        self._offset_records.append(LogRecord(POLLED_PARTITION, at, self._poll.answered_at_ms, encoded, content, batch_offset=at))

    def _take_offset(self) -> int:
        taken, self._next = self._next, self._next + 1
        return taken

    def _view(self, group_id: str, records: Mapping[bytes, bytes]) -> GroupView | None:
        return group_view(self._era, group_id, records, self._names)


def group_view(era: Era, group_id: str, records: Mapping[bytes, bytes], names: Mapping[UUID, str]) -> GroupView | None:
    """The group that a loader makes from records in any order; None without records."""
    fold = GroupFold(era)
    for log_record in _log_records(records):
        record = decode(log_record.key, log_record.value)
        if isinstance(record, Record):
            fold.apply_state_only(log_record, record, names)
    return fold.view(group_id, names)


def _log_records(records: Mapping[bytes, bytes]) -> Iterator[LogRecord]:
    for offset, (key, value) in enumerate(records.items()):
        yield LogRecord(POLLED_PARTITION, offset, 0, key, value)
