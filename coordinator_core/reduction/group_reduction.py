"""What the group records of a range of one log partition do, as far as the range alone tells.

The record of a classic group (type 2) is the whole group: what it leaves does not depend on what stood before. So in a run of
such records of one group, with no other record of the group between them, each but the first changes what the one before it left,
which is known here, and only the last counts for what follows. A run is handed on as

- its first record, to be folded into whatever stood before;
- what the others changed, told;
- its last record and its last removal, settled: they count for the state, and what they changed is told already.

All other records are handed on as logged. Memory and result are bounded by groups, changes and records of modern groups, not by
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
from coordinator_core.state.era import Era
from coordinator_core.state.group_fold import GroupFold, Told
from coordinator_core.state.registry import group_id_of

_LOGGED = ("log_offset", "record_timestamp", "producer_id", "key", "value")

#: Rows that are Python objects at one time.
_ROWS_AT_ONCE = 4096


@dataclass(frozen=True, slots=True)
class GroupReduction:
    """The effect of the group records of a range; timestamps in ms.

    Attributes:
        records: as bytes, in no order, what is left to be folded in log order: of a `settled` record only the state that it
            leaves, the others are to be told as well. Bytes that are no record, and records that the era's loader does not
            read, are among them
        changes: what the settled records changed, and those that are left out; columns of `group_history`
    """

    records: pa.Table
    changes: pa.Table


@dataclass(slots=True)
class _Run:
    """The first and the last record of a run so far, and the last that removed the group."""

    first: LogRecord
    last: LogRecord
    removal: LogRecord | None

    def settled(self) -> list[LogRecord]:
        """What the run leaves, besides its first record."""
        if self.last is self.first:
            return []
        between = self.removal not in (None, self.first, self.last)
        return [self.removal, self.last] if between and self.removal else [self.last]


class _Rows:
    """Rows of a schema, few of them as objects."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._tables: list[pa.Table] = []
        self._rows: list[tuple[Any, ...]] = []

    def append(self, row: tuple[Any, ...]) -> None:
        self._rows.append(row)
        if len(self._rows) == _ROWS_AT_ONCE:
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

    def add(self, others: pa.Table) -> None:
        """Takes the next records: the data records among `Reduction.others`."""
        columns = (others[name].to_pylist() for name in _LOGGED)
        for offset, timestamp, producer_id, key, value in zip(*columns, strict=True):
            self._add(LogRecord(self._partition, offset, timestamp, key, value, producer_id))

    def _add(self, log_record: LogRecord) -> None:
        record = self._decoder.decode(log_record.key, log_record.value)
        if not isinstance(record, Record) or not self._era.reads(record.record_type, record.value_version):
            self._hand_on(log_record)
            return
        group_id = group_id_of(record)
        run = self._runs.get(group_id)
        if not isinstance(record.key, GroupMetadataKey):
            if run is not None:
                self._end_run(group_id, run)
            self._hand_on(log_record)
            return
        removal = log_record if record.value is None else None
        if run is None:
            self._runs[group_id] = _Run(log_record, log_record, removal)
            self._fold.settle(log_record, record, {})
            self._hand_on(log_record)
            return
        run.last, run.removal = log_record, removal or run.removal
        for told in self._fold.apply(log_record, record, {}):
            self._changes.append(_change_row(told, log_record))

    def _end_run(self, group_id: str, run: _Run) -> None:
        for log_record in run.settled():
            self._records.append(_record_row(log_record, settled=True))
        del self._runs[group_id]

    def _hand_on(self, log_record: LogRecord) -> None:
        self._records.append(_record_row(log_record, settled=False))

    def finish(self) -> GroupReduction:
        """What the range did. The reducer is not changed, more records may follow."""
        left = [_record_row(each, settled=True) for each in self._settled()]
        return GroupReduction(self._records.table(left), self._changes.table([]))

    def _settled(self) -> Iterator[LogRecord]:
        for run in self._runs.values():
            yield from run.settled()


def _record_row(record: LogRecord, *, settled: bool) -> tuple[Any, ...]:
    return (record.offset, record.timestamp, record.producer_id, record.key, record.value, settled)


def _change_row(told: Told, record: LogRecord) -> tuple[Any, ...]:
    group_id, change, group = told
    state = (None, None, None) if group is None else (group.group_type, group.state, group.generation)
    return (record.offset, record.timestamp, group_id, change.change, change.member_id, *state, change.detail)
