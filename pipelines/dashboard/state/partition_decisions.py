"""Status and rule of each partition of a group."""

from collections.abc import Mapping

from pipelines.dashboard.state.moment import Row
from pipelines.lag.reports.partition_findings import PartitionFindings


def with_decisions(lag: list[Row], statuses: Mapping[str, Row]) -> list[Row]:
    """The rows of `lag` with `status` and `rule`: the most severe finding about the partition or its group."""
    findings = PartitionFindings(statuses.values())
    decided = []
    for row in lag:
        decision = findings.decision(row["group_id"], row["topic"], row["partition"])
        decided.append({**row, "status": decision.status, "rule": decision.rule})
    return decided
