"""The newest batch once it is older than expected: what it counted is shown with its time, but no status of a group is known."""

from collections.abc import Sequence

import pyarrow as pa

from pipelines.dashboard.state.moment import BatchState, Row
from pipelines.dashboard.state.partition_decisions import with_decisions
from pipelines.dashboard.state.state_view import StateView
from pipelines.query.unknown_status import unknown_status, unknown_statuses


class OldState(StateView):
    """`state` with statuses that are unknown for `reason`."""

    def __init__(self, state: BatchState, reason: str) -> None:
        super().__init__(state)
        self._reason = reason

    def summaries(self) -> pa.Table:
        return unknown_statuses(self._state.summaries(), self._reason)

    def statuses(self, groups: Sequence[str]) -> dict[str, Row]:
        return {group: unknown_status(row, self._reason) for group, row in self._state.statuses(groups).items()}

    def lag(self, group_id: str) -> list[Row]:
        return with_decisions(self._state.lag(group_id), self.statuses([group_id]))
