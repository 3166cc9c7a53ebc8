"""Statuses of groups at an earlier batch, computed from the histories because recorded ones are removed."""

import threading
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cached_property

from pipelines.dashboard.state.moment import Row
from pipelines.lag.past.lag_at import status_time
from pipelines.lag.past.status_at import group_status_at
from pipelines.lag.settings import settings_of
from pipelines.query.engine import Snapshot
from pipelines.tables.store import Batch

#: Estimate of the memory for a row.
_ROW_BYTES = 4_000
_MILLISECOND = timedelta(milliseconds=1)


class ComputedStatuses:
    """Computes each status once. For any number of threads."""

    def __init__(self, newest: Snapshot, batch: Batch) -> None:
        self._newest = newest
        self._batch = batch
        self._lock = threading.Lock()
        self._rows: dict[str, Row] = {}

    @cached_property
    def _at(self) -> datetime:
        # a time in ms that is not before that of the sample
        return status_time(self._newest, self._batch) + _MILLISECOND

    @property
    def nbytes(self) -> int:
        """Estimated bytes of the kept rows."""
        return _ROW_BYTES * len(self._rows)

    def of(self, groups: Sequence[str]) -> dict[str, Row]:
        """The rows of `group_status` of these groups."""
        with self._lock:
            missing = [group for group in groups if group not in self._rows]
            if missing:
                rows = group_status_at(self._newest, self._at, missing, settings_of(self._batch)).to_pylist()
                self._rows |= {row["group_id"]: row for row in rows}
            return {group: self._rows[group] for group in groups if group in self._rows}
