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
    deciding = Finding(
        status.rule or "", status.status, status.partition, status.detail, status.window_rows, status.window_seconds
    )
    return {
        "group_id": status.group_id,
        **finding_columns(deciding),
        "rule": status.rule,
        "findings": [finding_row(finding) for finding in status.findings],
    }


def finding_columns(deciding: Finding) -> dict[str, Any]:
    """The columns of `group_status` about the deciding finding."""
    row = finding_row(deciding)
    return {name: row[name] for name in ("status", "rule", "topic", "partition", "window_rows", "window_seconds", "detail")}


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


def finding_row(finding: Finding) -> dict[str, Any]:
    """An element of `group_status.findings`."""
    topic, partition = finding.partition or (None, None)
    return {**finding._asdict(), "status": str(finding.status), "topic": topic, "partition": partition}
