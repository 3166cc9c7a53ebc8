"""Events of the batches of one cluster, and the one event for a reader that has seen a certain batch."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pipelines.dashboard.live.changed_groups import changed_groups
from pipelines.query.snapshots.memory_snapshot import MemorySnapshot
from pipelines.tables.data_age import DataAge

#: Changed groups in an event; above this number a page loads all of its groups again.
MAX_GROUPS = 200
#: Events that are kept for readers that reconnect.
_KEPT = 64


@dataclass(frozen=True)
class BatchEvent:
    """A new batch. `groups` are those that changed since batch `after`; None if they are too many or unknown."""

    after: int | None
    batch_id: int
    at: datetime
    groups: frozenset[str] | None

    def data(self, may_see: Callable[[str], bool] = lambda _: True) -> dict[str, Any]:
        """The event as JSON, with the groups that its reader may see."""
        groups = None if self.groups is None else sorted(filter(may_see, self.groups))
        return {"batch_id": self.batch_id, "at": self.at.isoformat(), "groups": groups}


@dataclass(frozen=True)
class AgeEvent:
    """The newest batch has become older than expected, by another minute, or is no longer old."""

    batch_id: int
    age: DataAge

    def data(self, _may_see: Callable[[str], bool] = lambda _: True) -> dict[str, Any]:
        """The event as JSON."""
        return {"batch_id": self.batch_id, "age": {**self.age.as_json(), "since": self.age.since.isoformat()}}


#: The age that a reader has seen, as `BatchEvents.age_key`.
SeenAge = tuple[object, ...] | None


class BatchEvents:
    """The events of one cluster. For one writing thread; `since` may be called by others."""

    def __init__(self, changed: Callable[[MemorySnapshot, MemorySnapshot], frozenset[str]] = changed_groups) -> None:
        self._changed = changed
        self._snapshot: MemorySnapshot | None = None
        self._events: tuple[BatchEvent, ...] = ()
        self._age: DataAge | None = None

    def set_age(self, age: DataAge) -> None:
        """Replace the age of the newest batch."""
        self._age = age

    @property
    def age_key(self) -> SeenAge:
        """The key of the age; None unless the data is old."""
        return self._age.key if self._age is not None and self._age.is_old else None

    def age_since(self, seen: SeenAge) -> AgeEvent | None:
        """The event for a reader that has seen this age; None if it is the present one."""
        newest, age = self.newest, self._age
        return None if newest is None or age is None or self.age_key == seen else AgeEvent(newest, age)

    def add(self, snapshot: MemorySnapshot) -> bool:
        """Add the event of a snapshot; False if it is of the same batch."""
        old, self._snapshot = self._snapshot, snapshot
        if old is not None and old.batch == snapshot.batch:
            return False
        is_next = old is not None and old.batch.batch_id < snapshot.batch.batch_id
        groups = _bounded(self._changed(old, snapshot)) if old is not None and is_next else None
        after = old.batch.batch_id if old is not None and is_next else None
        event = BatchEvent(after, snapshot.batch.batch_id, snapshot.lag_at, groups)
        # a folder that begins again with batch 0 has another history
        self._events = tuple(deque((*(self._events if is_next else ()), event), _KEPT))
        return True

    @property
    def newest(self) -> int | None:
        """The newest batch; None before the first."""
        events = self._events
        return events[-1].batch_id if events else None

    def since(self, batch_id: int | None) -> BatchEvent | None:
        """One event for all batches since `batch_id`; None if that is the newest one. None as batch: nothing was seen."""
        events = self._events
        if not events or events[-1].batch_id == batch_id:
            return None
        newest = events[-1]
        if batch_id is None:
            return BatchEvent(None, newest.batch_id, newest.at, None)
        missed = [event for event in events if event.batch_id > batch_id]
        is_complete = bool(missed) and missed[0].after is not None and missed[0].after <= batch_id
        parts = [event.groups for event in missed]
        if not is_complete or any(part is None for part in parts):
            return BatchEvent(batch_id, newest.batch_id, newest.at, None)
        groups = frozenset().union(*(part for part in parts if part is not None))
        return BatchEvent(batch_id, newest.batch_id, newest.at, _bounded(groups))


def _bounded(groups: frozenset[str]) -> frozenset[str] | None:
    return groups if len(groups) <= MAX_GROUPS else None
