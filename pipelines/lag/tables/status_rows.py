"""Statuses of the core as rows of `group_status`."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.health import Fact, Finding, GroupStatus, Status
from pipelines.runtime.timestamps import at_ms as timestamp
from pipelines.runtime.timestamps import to_ms
from pipelines.tables import definitions

#: The columns of a group without findings and facts.
NOTHING_FOUND: dict[str, Any] = {"findings": [], "facts": []}


def status_schema(name: str) -> pa.Schema:
    """Schema of `group_status` or `partition_status` without the batch."""
    return definitions.table(name).unstamped_schema


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
        "facts": [fact_row(fact) for fact in status.facts],
    }


def finding_columns(deciding: Finding) -> dict[str, Any]:
    """The columns of `group_status` about the deciding finding; its status is that of the group."""
    row = finding_row(deciding)
    return {name: row[name] for name in ("status", "rule", "topic", "partition", "window_rows", "window_seconds", "detail")}


def fact_row(fact: Fact) -> dict[str, Any]:
    """An element of `group_status.facts`."""
    return {
        "fact": str(fact.kind),
        "topic": fact.topic,
        "partition": fact.partition,
        "partitions": fact.partitions,
        "since": _time(fact.since_ms),
        "due": _time(fact.due_ms),
        "interval_seconds": None if fact.interval_ms is None else fact.interval_ms / 1000,
        "detail": fact.detail,
    }


def finding_row(finding: Finding) -> dict[str, Any]:
    """An element of `group_status.findings`."""
    topic, partition = finding.partition or (None, None)
    return {
        **finding._asdict(),
        "status": str(finding.status),
        "topic": topic,
        "partition": partition,
        "since": _time(finding.since_ms),
        "due": _time(finding.due_ms),
    }


def finding_of(row: Mapping[str, Any]) -> Finding:
    """The finding of an element of `group_status.findings`, also of an earlier layout."""
    partition = None if row["topic"] is None else TopicPartition(row["topic"], row["partition"])
    since, due = row.get("since"), row.get("due")
    return Finding(
        **{name: row[name] for name in _SAME_NAME if name in row},
        rule=row["rule"],
        status=Status(row["status"]),
        partition=partition,
        since_ms=None if since is None else to_ms(since),
        due_ms=None if due is None else to_ms(due),
    )


_SAME_NAME = [name for name in Finding._fields if name not in ("rule", "status", "partition", "since_ms", "due_ms")]


def _time(ms: int | None) -> datetime | None:
    return None if ms is None else timestamp(ms)
