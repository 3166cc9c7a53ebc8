"""The table `share_offsets`: what the coordinators of share groups answer about their partitions, at a sample of log ends."""

from collections.abc import Callable, Collection, Sequence

import pyarrow as pa

from coordinator_core.group_polls.group_poll import ShareOffset
from pipelines.batch.without_records import stored_rows
from pipelines.query.engine import Snapshot
from pipelines.runtime.timestamps import at_ms
from pipelines.tables import definitions

SHARE_OFFSETS = "share_offsets"

#: Asks about groups; raises LogError if no broker answers.
ReadShareOffsets = Callable[[Collection[str]], Sequence[ShareOffset]]

_SHARE_GROUPS = "SELECT group_id FROM groups WHERE group_type = 'share'"


class ShareGroups:
    """Rows of `share_offsets` for the share groups of the tables. For one thread at a time."""

    def __init__(self, read: ReadShareOffsets) -> None:
        self._read = read
        self._has_rows: bool | None = None

    def rows(self, snapshot: Snapshot) -> pa.Table | None:
        """The rows of the table, without the batch; None if the table is empty and stays so.

        Raises:
            LogError: no broker answers.
        """
        groups = snapshot.query(_SHARE_GROUPS)["group_id"].to_pylist()
        if self._has_rows is None:
            self._has_rows = bool(stored_rows(snapshot, SHARE_OFFSETS).num_rows)
        if not groups and not self._has_rows:
            return None
        found = self._read(groups) if groups else []
        self._has_rows = bool(found)
        return _table(found)


def _table(found: Sequence[ShareOffset]) -> pa.Table:
    rows = [{**each._asdict(), "answered_at": at_ms(each.answered_at_ms)} for each in found]
    return pa.Table.from_pylist(rows, definitions.table(SHARE_OFFSETS).unstamped_schema)
