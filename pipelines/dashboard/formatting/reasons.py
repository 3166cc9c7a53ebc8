"""The reasons for a status: the incidents of a group in the words of `coordinator_core.health.finding_text`."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from coordinator_core.health import Unconsumed, lag_reason, rule_label
from coordinator_core.health.finding_phrases import partition_name
from pipelines.lag.reports.incidents import incident_row, incidents_of

__all__ = ["STOPPED", "lag_reason", "partition_name", "reasons", "rule_label", "unconsumed_words"]

#: Rule of partitions whose commits have stopped.
STOPPED = "stopped"
_UNCONSUMED = {str(Unconsumed.UNKNOWN_PARTITION): lag_reason(str(Unconsumed.UNKNOWN_PARTITION))}


def unconsumed_words(reason: str) -> str:
    """`not subscribed`: why no member can read a position."""
    return _UNCONSUMED.get(reason, reason.replace("_", " "))


def reasons(findings: Sequence[Mapping[str, Any]], at: datetime) -> list[dict[str, Any]]:
    """One entry per incident with its sentences, the most severe one first. `at` is the time of the evaluation."""
    return [incident_row(incident, at) for incident in incidents_of(findings)]
