"""Statuses of the core as rows of `group_status`."""

from typing import Any

import pyarrow as pa

from coordinator_core.health import Finding, GroupEvidence, GroupStatus
from pipelines.tables import definitions
from pipelines.timestamps import at_ms as timestamp


def status_schema(name: str) -> pa.Schema:
    """Schema of `group_status` or `partition_status` without the batch."""
    return pa.schema([field for field in definitions.table(name).schema if field.name != "batch_id"])


def status_columns(status: GroupStatus) -> dict[str, Any]:
    """The columns of `group_status` about the status and its findings."""
    topic, partition = status.partition or (None, None)
    return {
        "group_id": status.group_id,
        "status": str(status.status),
        "rule": status.rule,
        "topic": topic,
        "partition": partition,
        "window_rows": status.window_rows,
        "window_seconds": status.window_seconds,
        "detail": status.detail,
        "findings": [_finding_row(finding) for finding in status.findings],
    }


def status_row(status: GroupStatus, evidence: GroupEvidence) -> dict[str, Any]:
    """A row of `group_status`, without the batch."""
    most = status.max_lag
    return {
        **status_columns(status),
        "burrow_status": str(status.burrow_status),
        "partitions": len(evidence.partitions),
        "unknown_partitions": sum(partition.lag.lag is None for partition in evidence.partitions),
        "complete": status.complete,
        "total_lag": None if most is None else status.total_lag,
        "max_lag": None if most is None else most.current_lag,
        "max_lag_topic": None if most is None else most.partition.topic,
        "max_lag_partition": None if most is None else most.partition.partition,
        "evaluated_at": timestamp(status.at_ms),
    }


def _finding_row(finding: Finding) -> dict[str, Any]:
    topic, partition = finding.partition or (None, None)
    return {**finding._asdict(), "status": str(finding.status), "topic": topic, "partition": partition}
