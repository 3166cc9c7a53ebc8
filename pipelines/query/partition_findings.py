"""The finding that decides the status of each partition of a group, for `grouplake lag --status`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from coordinator_core.health.status import Status
from pipelines.query.engine import Snapshot
from pipelines.tables.store import is_in

_CURRENT = "SELECT group_id, status, findings FROM group_status"

#: Status and rule.
Decision = tuple[str, str | None]


class PartitionFindings:
    """Findings of groups: those about a partition, and those about the whole group."""

    def __init__(self, groups: Iterable[Mapping[str, Any]]) -> None:
        """`groups` are rows of `group_status`."""
        self._findings = {row["group_id"]: row["findings"] or [] for row in groups}

    @classmethod
    def of(cls, snapshot: Snapshot, groups: Sequence[str]) -> "PartitionFindings":
        """Findings at the batch of `snapshot`: of the last sample, or derived from the histories for an earlier batch."""
        newest = snapshot.newest()
        if newest.batch.batch_id > snapshot.batch.batch_id and "group_status" in newest.batch.versions:
            from pipelines.lag.status_at import group_status_at

            return cls(group_status_at(newest, snapshot.batch.finished_at, groups or None).to_pylist())
        if "group_status" not in snapshot.batch.versions:
            return cls(())
        named = f" WHERE {is_in('group_id', groups)}" if groups else ""
        return cls(snapshot.query(_CURRENT + named).to_pylist())

    def decision(self, group: str, topic: str, partition: int) -> Decision:
        """The most severe finding about a partition or its whole group; OK without one.

        A group without a status, as before the first sample, has UNKNOWN.
        """
        if group not in self._findings:
            return str(Status.UNKNOWN), None
        found = [
            finding
            for finding in self._findings[group]
            if finding["topic"] is None or (finding["topic"], finding["partition"]) == (topic, partition)
        ]
        if not found:
            return str(Status.OK), None
        worst = max(found, key=lambda finding: Status(finding["status"]).severity)
        return worst["status"], worst["rule"]
