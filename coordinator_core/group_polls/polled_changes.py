"""Group records of a poll and the changes that it shows, in the columns of a reduction of group records."""

from typing import Any

import pyarrow as pa

from coordinator_core.reduction import schemas
from coordinator_core.reduction.group_reduction import GroupReduction
from coordinator_core.reduction.membership_rows import membership_values, ownership_values
from coordinator_core.state.history import Change
from coordinator_core.state.membership import MembershipChanges
from coordinator_core.state.views import GroupView

_NO_PRODUCER = -1


class PolledChanges:
    """Rows of one poll, all with the time of its last answer (ms)."""

    def __init__(self, answered_at_ms: int) -> None:
        self._at_ms = answered_at_ms
        self._records: list[tuple[Any, ...]] = []
        self._changes: list[tuple[Any, ...]] = []
        self._membership: list[tuple[Any, ...]] = []
        self._ownership: list[tuple[Any, ...]] = []

    def record(self, offset: int, key: bytes, value: bytes | None) -> None:
        """A group record whose changes are reported by `change` and `membership`."""
        self._records.append((offset, self._at_ms, _NO_PRODUCER, key, value, True))

    def change(self, offset: int, group_id: str, change: Change, group: GroupView | None) -> None:
        """A change; `group` is the group after it, before it for a removal."""
        state = (None, None, None) if group is None else (group.group_type, group.state, group.generation)
        self._changes.append(
            (offset, self._at_ms, group_id, str(change.change), change.member_id, *state, change.detail, None, None)
        )

    def membership(self, offset: int, changes: MembershipChanges) -> None:
        """The changes of members and owners."""
        if changes.membership is not None:
            self._membership.append((offset, self._at_ms, *membership_values(changes.membership)))
        self._ownership.extend((offset, self._at_ms, *ownership_values(change)) for change in changes.ownership)

    def reduction(self) -> GroupReduction:
        """All rows."""
        return GroupReduction(
            _table(schemas.GROUP_RECORDS, self._records),
            _table(schemas.GROUP_CHANGES, self._changes),
            _table(schemas.MEMBERSHIP, self._membership),
            _table(schemas.OWNERSHIP, self._ownership),
        )


def _table(schema: pa.Schema, rows: list[tuple[Any, ...]]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else ((),) * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)
