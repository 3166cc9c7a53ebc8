"""Statuses of the core as rows of `group_status`."""

from typing import Any

import pyarrow as pa

from coordinator_core.health import Finding, GroupStatus
from pipelines.tables import definitions


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


def _finding_row(finding: Finding) -> dict[str, Any]:
    topic, partition = finding.partition or (None, None)
    return {**finding._asdict(), "status": str(finding.status), "topic": topic, "partition": partition}
