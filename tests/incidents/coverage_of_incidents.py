"""Which reader found which incident, when, and whether it named cause, owner and start."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from positions import Bounds
from scenario import Limits
from statements import Statement, reports_latest_start, seconds
from truth import NAMED, Incident, Truth

#: Readers that must find every incident of a group.
READERS = ("page groups", "page group", "page topic", "lag", "sql status", "alerts", "agent")
#: The page of a topic compares partitions over ten minutes, not over the window of the job.
_PAGE_COMPARES_SECONDS = 720.0
#: Kinds that have no row of their own in a reader.
_ELSEWHERE: Mapping[str, frozenset[str]] = {
    # one row per partition, with what decides
    "lag": frozenset({"storm", "data_lost", "expiring", "rewound", "reset"}),
    # that of the topic with the hot partition is looked at
    "page topic": frozenset(NAMED) - {"hot"},
}
_ISO = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)?")
_CLOCK = re.compile(r"\b\d\d:\d\d:\d\d\b|\b\d\d:\d\d(?= UTC)")
_LATE_SECONDS = 2.0


@dataclass(frozen=True)
class Finding:
    """An incident in a reader, with times since its begin in seconds with the job running.

    - `delay`: until the first look that shows it; None if it was not found.
    - `missed`: until the last look before that one, 0 without one. It is late if that look came after `limit`: how seldom the
      reader is asked, which takes longer on a busy machine, is not its delay.
    """

    incident: Incident
    reader: str
    delay: float | None
    missed: float
    has_cause: bool
    has_owner: bool
    has_start: bool
    limit: float
    text: str = ""

    @property
    def missing(self) -> list[str]:
        """What the reader did not tell."""
        where = f"{self.incident.name} in {self.reader}"
        if self.delay is None:
            return [f"{where}: not found within {self.limit:.0f} s"]
        late = [f"{where}: not seen after {self.missed:.0f} s, limit {self.limit:.0f} s"] if self.missed > self.limit else []
        parts = {"cause": self.has_cause, "owner": self.has_owner, "start": self.has_start}
        return [*late, *(f"{where}: without {name}: {self.text}" for name, told in parts.items() if not told)]


def found_incidents(statements: Sequence[Statement], truth: Truth, limits: Limits) -> list[Finding]:
    """A row for each incident and each reader that had enough time to find it."""
    told: dict[tuple[str, str | None], list[Statement]] = {}
    looks: dict[tuple[str, str | None], set[float]] = {}
    for statement in statements:
        looks.setdefault((statement.reader, statement.group), set()).add(statement.at)
        if statement.kind in ("finding", "alert"):
            told.setdefault((statement.reader, statement.group), []).append(statement)
    rows = []
    for incident in truth.incidents:
        for reader in READERS:
            if incident.kind in truth.unseen or incident.kind in _ELSEWHERE.get(reader, ()):
                continue
            key = reader, incident.group
            row = _found(incident, reader, told.get(key, []), sorted(looks.get(key, ())), truth, limits)
            if row is not None:
                rows.append(row)
    return rows


def job_alerts_missing(statements: Sequence[Statement], truth: Truth, limits: Limits) -> list[str]:
    """Times without the job for which no alert reported that it had stopped."""
    at = [s.about for s in statements if s.kind == "alert" and s.value["alert"]["labels"]["alertname"] == "JobStopped"]
    return [
        f"the job that was killed at {gap.low - truth.started:+.0f} s in alerts: not found"
        for gap, back in zip(truth.away, truth.restarts, strict=True)
        if back - gap.low > limits.stale + limits.delay and not any(gap.low <= each <= gap.high for each in at)
    ]


def hot_partitions_missing(statements: Sequence[Statement], truth: Truth, limits: Limits) -> list[str]:
    """Hot partitions that the series or the list of the topic's page had time to show, and did not."""
    shown = {(each.reader, each.topic, each.partition) for each in statements if each.kind == "hot"}
    limit_of = {"metrics": limits.found["hot"], "page topic": _PAGE_COMPARES_SECONDS}
    return [
        f"{incident.name} in {reader}, as a hot partition: not found within {limit:.0f} s"
        for incident in truth.incidents
        for reader, limit in limit_of.items()
        if incident.kind == "hot" and truth.had_seconds_to_find(incident, limits.sample) > limit
        if (reader, incident.facts["topic"], incident.partition) not in shown
    ]


def _found(
    incident: Incident, reader: str, told: Sequence[Statement], looks: Sequence[float], truth: Truth, limits: Limits
) -> Finding | None:
    limit = limits.found[incident.kind]
    matching = [each for each in told if _names(each, incident, limits)]
    if not matching and reader == "alerts" and any(each.at <= incident.since.high + limit for each in told):
        # an alert that has fired for another reason is not sent again for a further one
        return None
    if not matching:
        had_time = truth.had_seconds_to_find(incident, limits.sample) > limit
        return Finding(incident, reader, None, 0.0, False, False, False, limit) if had_time else None
    first = max(incident.since.high, min(each.at for each in matching))
    delay = truth.seconds_to_find(incident, first, limits.sample)
    # a notification of an alert is not a look: it is sent when there is something to report
    before = first if reader == "alerts" else max((at for at in looks if at < first), default=incident.since.high)
    texts = [(each, _all_of(each)) for each in matching]
    return Finding(
        incident,
        reader,
        delay,
        truth.seconds_to_find(incident, max(incident.since.high, before), limits.sample),
        incident.transactional_id is None or any(incident.transactional_id in text for _, text in texts),
        not incident.owners or any(_has_owner(text, incident) for _, text in texts),
        any(
            _has_start(text, truth.start(incident, is_latest=reports_latest_start(text)), limits.since_of(incident.kind))
            for _, text in texts
        ),
        limit,
        matching[-1].text,
    )


def _rule(told: Statement) -> str | None:
    if told.kind != "alert":
        return str(told.value["rule"])
    alert = told.value["alert"]
    named = {"HangingTransaction": "hanging_transaction", "RecordsLost": "data_lost"}.get(alert["labels"]["alertname"])
    return named or alert["annotations"].get("status_rule")


def _names(told: Statement, incident: Incident, limits: Limits) -> bool:
    lasts = incident.until is None or told.about <= incident.until + limits.lingers.get(incident.kind, 0) + limits.delay
    is_there = told.partition is None or incident.partition is None or told.partition == incident.partition
    return _rule(told) in NAMED[incident.kind] and incident.since.low - _LATE_SECONDS <= told.about and lasts and is_there


def _all_of(told: Statement) -> str:
    """All that the reader says: its sentence, and the fields of the finding."""
    fields: Any = told.value["row"] if told.kind == "finding" else told.value["alert"]["annotations"]
    return f"{told.text} {json.dumps(fields, default=str, ensure_ascii=False)}"


def _has_owner(text: str, incident: Incident) -> bool:
    return any(owner in text for owner in incident.owners) and incident.host in text


def _has_start(text: str, start: Bounds, tolerance: float) -> bool:
    """A time within the tolerance of the start, in ISO form, or as a time of the day, of which sentences have the minute."""
    if any(start.has(seconds(found), tolerance) for found in _ISO.findall(text)):
        return True
    clocks = {
        datetime.fromtimestamp(second, UTC).strftime(form)
        for second in range(int(start.low - tolerance), int(start.high + tolerance) + 1)
        for form in ("%H:%M:%S", "%H:%M")
    }
    return any(found in clocks for found in _CLOCK.findall(text))
