"""Rows of the histories for a change of the source: the differences between the state by the old source and that by the new one.

Values that only one of the two knows are no differences, such as the generation of a classic group, which no poll has
(docs/adr/0072). Each group of the new state has a row `source_changed`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from uuid import UUID

import pyarrow as pa

from coordinator_core.codec.uuids import uuid_from_text
from coordinator_core.group_polls.group_poll import POLLED_PARTITION
from coordinator_core.group_polls.poll_fold import group_view
from coordinator_core.log.entries import LogRecord
from coordinator_core.log.partitioner import partition_for
from coordinator_core.state.group_fold import GroupChange
from coordinator_core.state.history import Change, changes
from coordinator_core.state.membership import DEAD, membership_changes
from coordinator_core.state.views import UNKNOWN_GENERATION, GroupView
from pipelines.batch.context import BatchContext
from pipelines.batch.groups_plan import as_table, history_row, membership_row, ownership_row
from pipelines.batch.offsets_plan import KEY, history_rows
from pipelines.batch.without_records import stored_rows
from pipelines.query.engine import Snapshot
from pipelines.runtime.timestamps import to_time
from pipelines.source.changes import SCHEMA
from pipelines.source.ranges import Offsets
from pipelines.tables.writers.table_write import TableWrite

#: The kind of change in `group_history`.
SOURCE_CHANGED = "source_changed"

_COMPARED = ("committed_offset", "leader_epoch", "metadata")
_OF_PRODUCER = ("state", "producer_id", "producer_epoch")
_COUNTS = ("records", "initializations", "commits", "aborts")
_Row = dict[str, Any]


class _Place(NamedTuple):
    partition: int
    offset: int


@dataclass(frozen=True)
class ChangedSource:
    """The tables by the old source, and by the new one. `detail` names both, and `at_ms` is the time of the new state."""

    before: Snapshot
    after: Snapshot
    detail: str
    at_ms: int

    def other_writes(self, context: BatchContext) -> Iterator[TableWrite]:
        """Rows of the histories of groups, and of transactional ids if the new state has them."""
        yield from self._group_writes(context)
        if self.after.batch.transaction_offsets is not None:
            yield TableWrite("transaction_history", as_table("transaction_history", [*self._transaction_rows(context)]))

    def offset_rows(self, context: BatchContext) -> pa.Table:
        """Rows of `offset_history`."""
        before, after = stored_rows(self.before, "offsets"), stored_rows(self.after, "offsets")
        known, present = set(_tuples(before, (*KEY, *_COMPARED))), set(_tuples(after, KEY))
        is_new = [row not in known for row in _tuples(after, (*KEY, *_COMPARED))]
        removed = [
            {**dict(zip(KEY, key, strict=True)), "commits": 0, **self._end(str(key[0]), self.after.batch.next_offsets)}
            for key in _tuples(before, KEY)
            if key not in present
        ]
        tombstones = pa.Table.from_pylist(removed, SCHEMA)
        return history_rows(SCHEMA.empty_table(), tombstones, after.filter(pa.array(is_new, pa.bool_())), context)

    def _end(self, key: str, next_offsets: Offsets) -> _Row:
        """The position of what the new source does not have: the end of its partition."""
        place = _end_of(key, next_offsets)
        return {"log_partition": place.partition, "log_offset": place.offset, "record_timestamp": to_time(self.at_ms)}

    def _group_writes(self, context: BatchContext) -> Iterator[TableWrite]:
        groups = {row["group_id"]: row for row in stored_rows(self.after, "groups").to_pylist()}
        # ids of one source may have names that only the other one knows
        names = _topic_names(self.before) | _topic_names(self.after)
        before, after = _records(self.before), _records(self.after)
        rows: dict[str, list[_Row]] = {"group_history": [], "membership_history": [], "ownership_history": []}
        for group_id in sorted(before.keys() | groups.keys()):
            group = groups.get(group_id)
            end = _end_of(group_id, self.after.batch.next_offsets)
            place = _Place(group["log_partition"], group["log_offset"]) if group else end
            record = LogRecord(place.partition, place.offset, self.at_ms, None, None)
            was, now = (group_view(context.era, group_id, records.get(group_id, {}), names) for records in (before, after))
            if was is not None and now is not None:
                was = _as_known_to_both(was, now)
            if group is not None:
                rows["group_history"].append(self._changed(group, record, context))
            reported = (GroupChange(group_id, change, now or was) for change in changes(was, now))
            rows["group_history"] += [history_row(change, record, context) for change in reported]
            membership, ownership = membership_changes(was, now)
            if membership is not None:
                rows["membership_history"].append(membership_row(membership, record, context))
            rows["ownership_history"] += [ownership_row(change, record, context) for change in ownership]
        yield from (TableWrite(name, as_table(name, found)) for name, found in rows.items())

    def _changed(self, group: _Row, record: LogRecord, context: BatchContext) -> _Row:
        row = history_row(GroupChange(group["group_id"], Change(SOURCE_CHANGED, None, self.detail), None), record, context)
        generation = None if group["generation"] == UNKNOWN_GENERATION else group["generation"]
        return {**row, "group_type": group["group_type"], "state": group["state"], "generation": generation}

    def _transaction_rows(self, context: BatchContext) -> Iterator[_Row]:
        """A row for each id, which has no records of its own: an id is in the state of its newest row of the history."""
        offsets = self.after.batch.transaction_offsets or {}
        before, after = (
            {row["transactional_id"]: row for row in stored_rows(found, "transactions").to_pylist()}
            for found in (self.before, self.after)
        )
        for name in sorted(before.keys() | after.keys()):
            was, now = before.get(name), after.get(name)
            yield {
                **(now or {"transactional_id": name, "state": DEAD, **self._end(name, offsets)}),
                **{f"previous_{column}": None if was is None else was[column] for column in _OF_PRODUCER},
                **dict.fromkeys(_COUNTS, 0),
                "batch_id": context.batch_id,
            }


def _as_known_to_both(was: GroupView, now: GroupView) -> GroupView:
    """The view by the old source, with the values that polls do not have as they are now: nothing is known of their change."""
    is_known = was.generation is not None and now.generation is not None
    generation = was.generation if is_known else now.generation
    return replace(was, generation=generation, leader=now.leader, state_timestamp=now.state_timestamp)


def _end_of(key: str, next_offsets: Offsets) -> _Place:
    """The last offset in the partition of a group or transactional id."""
    partition = POLLED_PARTITION if POLLED_PARTITION in next_offsets else partition_for(key, len(next_offsets))
    return _Place(partition, max(0, next_offsets.get(partition, 0) - 1))


def _topic_names(snapshot: Snapshot) -> dict[UUID, str]:
    rows = stored_rows(snapshot, "topic_ids").to_pylist()
    return {uuid_from_text(row["topic_id"]): row["topic"] for row in rows if row["topic"] is not None}


def _records(snapshot: Snapshot) -> Mapping[str, Mapping[bytes, bytes]]:
    rows = stored_rows(snapshot, "group_records").sort_by([("log_partition", "ascending"), ("log_offset", "ascending")])
    found: dict[str, dict[bytes, bytes]] = {}
    for group_id, key, value in _tuples(rows, ("group_id", "key", "value")):
        found.setdefault(group_id, {})[key] = value
    return found


def _tuples(rows: pa.Table, names: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
    return zip(*(rows[name].to_pylist() for name in names), strict=True)
