"""The finding that decides the status of each partition of a group, for `grouplake lag --status`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from coordinator_core.health import Finding, Status, text_of
from pipelines.lag.reports.incidents import incident_row, incidents_of
from pipelines.query.engine import Snapshot
from pipelines.runtime.errors import RemovedState
from pipelines.runtime.timestamps import to_ms
from pipelines.tables.store import is_in

_CURRENT = "SELECT * FROM group_status"


class Decision(NamedTuple):
    """Status of a partition: the most severe finding about it or its group, and the sentence about the cause of that."""

    status: str
    rule: str | None
    detail: str | None = None


class PartitionFindings:
    """Findings of groups: those about a partition, and those about the whole group."""

    def __init__(self, groups: Iterable[Mapping[str, Any]]) -> None:
        """`groups` are rows of `group_status`."""
        self._rows = {row["group_id"]: row for row in groups}
        self._found: dict[str, _GroupFindings] = {}

    @classmethod
    def of(cls, snapshot: Snapshot, groups: Sequence[str]) -> "PartitionFindings":
        """Findings of the last sample until the batch of `snapshot`, from the histories once its files are removed."""
        if "group_status" not in snapshot.batch.versions:
            return cls(())
        named = f" WHERE {is_in('group_id', groups)}" if groups else ""
        try:
            return cls(snapshot.query(_CURRENT + named).to_pylist())
        except RemovedState:
            from pipelines.lag.past.lag_at import status_time
            from pipelines.lag.past.status_at import group_status_at
            from pipelines.lag.settings import settings_of

            newest = snapshot.newest()
            at = status_time(newest, snapshot.batch)
            return cls(group_status_at(newest, at, groups or None, settings_of(snapshot.batch)).to_pylist())

    def decision(self, group: str, topic: str, partition: int) -> Decision:
        """The status of a partition; OK without a finding.

        A group without a status, as before the first sample, has UNKNOWN.
        """
        if group not in self._rows:
            return Decision(str(Status.UNKNOWN), None)
        if group not in self._found:
            self._found[group] = _GroupFindings(self._rows[group])
        return self._found[group].decision(topic, partition)

    def incidents(self, group: str) -> list[dict[str, Any]]:
        """The incidents of a group in words, the most severe one first."""
        row = self._rows.get(group)
        return [] if row is None else [incident_row(each, row["evaluated_at"]) for each in incidents_of(row["findings"] or ())]

    def facts(self, group: str) -> list[str]:
        """Sentences about what is no defect; none in tables of a layout before 1.6."""
        return [fact["detail"] for fact in self._rows.get(group, {}).get("facts") or ()]


class _GroupFindings:
    """Findings of one group by partition, in the order of its incidents: each cause before its symptoms."""

    def __init__(self, row: Mapping[str, Any]) -> None:
        self._at_ms = to_ms(row["evaluated_at"])
        found = [finding for incident in incidents_of(row["findings"] or ()) for finding in incident.findings]
        self._of_group: list[tuple[int, Finding]] = []
        self._by_partition: dict[tuple[str, int], list[tuple[int, Finding]]] = {}
        for number, finding in enumerate(found):
            if finding.partition is None:
                self._of_group.append((number, finding))
            else:
                self._by_partition.setdefault((finding.partition.topic, finding.partition.partition), []).append(
                    (number, finding)
                )

    def decision(self, topic: str, partition: int) -> Decision:
        found = sorted([*self._of_group, *self._by_partition.get((topic, partition), ())], key=lambda each: each[0])
        if not found:
            return Decision(str(Status.OK), None)
        worst = max((finding.status for _, finding in found), key=lambda status: status.severity)
        deciding = found[0][1]
        return Decision(str(worst), deciding.rule, text_of([deciding], self._at_ms).detail)
