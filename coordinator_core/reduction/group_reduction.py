"""Reduction of the group records of a range of one log partition.

The record of a classic group (type 2) holds the whole group, so the group after it does not depend on the group before it. In a
run of such records of one group, without other records of the group between them, the changes of every record but the first are
known here, and only the last record matters for the state after the run. A run becomes

- its first record, which the job folds into the state before the range;
- the changes of the other records;
- its last record and its last removal, which are `state_only`: they count for the state, and their changes are already reported.

All other records are passed on as logged. Memory and result are bounded by groups, changes and records of modern groups, not by
records of classic groups.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from coordinator_core.codec import ClassicGroupDecoder, Record
from coordinator_core.codec.messages.classic import GroupMetadataKey
from coordinator_core.log.entries import LogRecord
from coordinator_core.reduction import schemas
from coordinator_core.reduction.membership_rows import membership_values, ownership_values
from coordinator_core.state.era import Era
from coordinator_core.state.group_fold import GroupChange, GroupFold
from coordinator_core.state.history import UNREADABLE_ASSIGNMENT
from coordinator_core.state.registry import group_id_of

_LOGGED = ("log_offset", "record_timestamp", "producer_id", "key", "value")

#: Number of rows kept as Python objects.
_ROWS_PER_TABLE = 4096


@dataclass(frozen=True, slots=True)
class GroupReduction:
    """The effect of the group records of a range; timestamps in ms.

    Attributes:
        records: the records to fold, as bytes, unordered; they must be folded in log order. The changes of a `state_only`
            record are already reported, those of the others are not. Includes undecodable bytes and records that the era's loader
            does not know
        changes: changes of the state-only and of the omitted records, in columns of `group_history`, and key and value of those
            with an unreadable assignment
        membership: the same for `membership_history`
        ownership: the same for `ownership_history`
    """

    records: pa.Table
    changes: pa.Table
    membership: pa.Table
    ownership: pa.Table


@dataclass(slots=True)
class _Run:
    """The first and the last record of a run so far, and the last tombstone in it."""

    first: LogRecord
    last: LogRecord
    removal: LogRecord | None

    def state_only(self) -> list[LogRecord]:
        """The state-only records of the run: those that count besides its first record."""
        if self.last is self.first:
            return []
        between = self.removal not in (None, self.first, self.last)
        return [self.removal, self.last] if between and self.removal else [self.last]


class _Rows:
    """Rows of a schema, stored as Arrow tables in pieces."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._tables: list[pa.Table] = []
        self._rows: list[tuple[Any, ...]] = []

    def append(self, row: tuple[Any, ...]) -> None:
        self._rows.append(row)
        if len(self._rows) == _ROWS_PER_TABLE:
            self._tables.append(self._as_table(self._rows))
            self._rows = []

    def table(self, more: list[tuple[Any, ...]]) -> pa.Table:
        """All rows so far, and `more`."""
        return pa.concat_tables([*self._tables, self._as_table([*self._rows, *more])])

    def _as_table(self, rows: list[tuple[Any, ...]]) -> pa.Table:
        columns = zip(*rows, strict=True) if rows else ((),) * len(self._schema)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, self._schema, strict=True)]
        return pa.Table.from_arrays(arrays, schema=self._schema)


class GroupReducer:
    """Reduces the group records of one log partition, chunk by chunk in log order."""

    def __init__(self, era: Era, partition: int) -> None:
        self._era = era
        self._partition = partition
        self._decoder = ClassicGroupDecoder()
        self._fold = GroupFold(era)
        self._runs: dict[str, _Run] = {}
        self._records = _Rows(schemas.GROUP_RECORDS)
        self._changes = _Rows(schemas.GROUP_CHANGES)
        self._membership = _Rows(schemas.MEMBERSHIP)
        self._ownership = _Rows(schemas.OWNERSHIP)

    def add(self, others: pa.Table) -> None:
        """Add the next records: the data records of `Reduction.others`."""
        columns = (others[name].to_pylist() for name in _LOGGED)
        for offset, timestamp, producer_id, key, value in zip(*columns, strict=True):
            self._add(LogRecord(self._partition, offset, timestamp, key, value, producer_id))

    def _add(self, log_record: LogRecord) -> None:
        record = self._decoder.decode(log_record.key, log_record.value)
        if not isinstance(record, Record) or not self._era.reads(record.record_type, record.value_version):
            self._keep(log_record)
            return
        group_id = group_id_of(record)
        run = self._runs.get(group_id)
        if not isinstance(record.key, GroupMetadataKey):
            if run is not None:
                self._end_run(group_id, run)
            self._keep(log_record)
            return
        removal = log_record if record.value is None else None
        if run is None:
            self._runs[group_id] = _Run(log_record, log_record, removal)
            self._fold.apply_state_only(log_record, record, {})
            self._keep(log_record)
            return
        run.last, run.removal = log_record, removal or run.removal
        applied = self._fold.apply(log_record, record, {})
        for change in applied.changes:
            self._changes.append(_change_row(change, log_record))
        position = (log_record.offset, log_record.timestamp)
        if applied.membership.membership is not None:
            self._membership.append((*position, *membership_values(applied.membership.membership)))
        for change_of_owner in applied.membership.ownership:
            self._ownership.append((*position, *ownership_values(change_of_owner)))

    def _end_run(self, group_id: str, run: _Run) -> None:
        for log_record in run.state_only():
            self._records.append(_record_row(log_record, is_state_only=True))
        del self._runs[group_id]

    def _keep(self, log_record: LogRecord) -> None:
        self._records.append(_record_row(log_record, is_state_only=False))

    def finish(self) -> GroupReduction:
        """Return the effect of the records so far. The reducer is not changed; more records may follow."""
        left = [_record_row(each, is_state_only=True) for each in self._state_only()]
        reported = (rows.table([]) for rows in (self._changes, self._membership, self._ownership))
        return GroupReduction(self._records.table(left), *reported)

    def _state_only(self) -> Iterator[LogRecord]:
        for run in self._runs.values():
            yield from run.state_only()


def _record_row(record: LogRecord, *, is_state_only: bool) -> tuple[Any, ...]:
    return (record.offset, record.timestamp, record.producer_id, record.key, record.value, is_state_only)


def _change_row(reported: GroupChange, record: LogRecord) -> tuple[Any, ...]:
    group_id, change, group = reported
    state = (None, None, None) if group is None else (group.group_type, group.state, group.generation)
    logged = (record.key, record.value) if change.change == UNREADABLE_ASSIGNMENT else (None, None)
    return (record.offset, record.timestamp, group_id, change.change, change.member_id, *state, change.detail, *logged)
