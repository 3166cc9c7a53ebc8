"""Observations of readers as statements: each says something of a group at a time. No truth is known here."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from observers import Observation

Row = Mapping[str, Any]

#: Words of a reader that states how old its data is.
_AGE = re.compile(r"job has stopped|\bstopped since\b|\bold\b|\bstale\b|no batch since|no sample of log ends", re.I)
_NO_STATUS = (None, "UNKNOWN", "NOTFOUND")


@dataclass(frozen=True)
class Statement:
    """One statement of a reader.

    - `at`: when it was read. `about`: the time that it is about, as the reader says.
    - `kind`: status, finding, lag, blocked, ready, age, history, slope, expiry, hot, event, change, commits, alert,
      resolved.
    - `value`: its parts. `text`: how the reader puts it.
    """

    kind: str
    reader: str
    at: float
    about: float
    group: str | None = None
    topic: str | None = None
    partition: int | None = None
    value: Row = field(default_factory=dict)
    text: str = ""


def statements(observations: Iterable[Observation]) -> list[Statement]:
    """All statements, in the order of the observations. An answer that is an error states nothing, but for `/ready`."""
    found: list[Statement] = []
    for seen in observations:
        read = _READERS.get(seen.reader)
        if read is not None and (seen.code in (0, 200) or seen.reader == "ready"):
            found += read(seen)
    return found


def seconds(text: str) -> float:
    """Seconds since the epoch of an ISO time; one without a zone is in UTC."""
    at = datetime.fromisoformat(text)
    return (at if at.tzinfo else datetime.fromisoformat(f"{text}+00:00")).timestamp()


def reports_latest_start(text: str) -> bool:
    """Whether a sentence reports the latest possible start of an incident."""
    return "at the latest" in text or "no later than" in text


def _ready(seen: Observation) -> Iterator[Statement]:
    yield Statement("ready", seen.reader, seen.at, seen.at, value={"code": seen.code}, text=json.dumps(seen.body)[:200])


def _overview(seen: Observation) -> Iterator[Statement]:
    about = seconds(seen.body["sampled_at"] or seen.body["at"])
    groups = seen.body["attention"]
    told = {row["status"]: row["groups"] for row in seen.body["statuses"]}
    yield _age(seen, about, [status for status in told if status not in _NO_STATUS], json.dumps(seen.body), f"statuses {told}")
    for row in groups:
        yield from _status(seen, about, row["group_id"], row["status"], row["reasons"])


def _groups(seen: Observation) -> Iterator[Statement]:
    about = seconds(seen.body["sampled_at"] or seen.body["at"])
    for row in seen.body["groups"]:
        yield from _status(seen, about, row["group_id"], row["status"], row["reasons"])


def _group_page(seen: Observation) -> Iterator[Statement]:
    body, group = seen.body, seen.group
    assert group is not None
    about = seconds(body["sampled_at"] or body["at"])
    status = body["status"]
    named = [] if status["status"] in _NO_STATUS else [status["status"]]
    yield _age(seen, about, named, json.dumps({**body, "events": [], "rows": []}), f"status {status['status']}")
    yield from _status(seen, about, group, status["status"], status["reasons"])
    for row in body["offsets"]:
        yield from _offsets(seen, {**row, "group_id": group}, about)
        if row.get("lag_slope_per_second") is not None:
            slope = row["lag_slope_per_second"]
            value = {"slope": slope, "window": row.get("slope_window_seconds")}
            yield _of(seen, "slope", about, {**row, "group_id": group}, value, f"lag changes by {slope:+.2f}/s")
    for row in body["commits"]:
        if row["commits_per_second"] is None:
            continue
        value = {"per_second": row["commits_per_second"], "from": seconds(row["at"]), "to": seconds(row["until"])}
        text = f"{row['commits_per_second']} commits/s from {row['at']}"
        yield Statement("commits", seen.reader, seen.at, about, group, value=value, text=text)
    for event in body["events"]:
        yield Statement("event", seen.reader, seen.at, about, group, value=event, text=event["words"])


def _topic(seen: Observation) -> Iterator[Statement]:
    body = seen.body
    about = seconds(body["sampled_at"] or body["at"])
    for row in body["groups"]:
        yield from _status(seen, about, row["group_id"], row["status"], row["reasons"])
    for row in body["hot"]:
        yield _hot(seen, about, body["topic"], row["partition"], row["records_per_second"])


def _metrics(seen: Observation) -> Iterator[Statement]:
    for row in seen.body:
        yield _hot(seen, seen.at, row["topic"], int(row["partition"]), row["per_second"])


def _agent(seen: Observation) -> Iterator[Statement]:
    body, group = seen.body, seen.group
    assert group is not None
    about = seconds(body["sampled_at"] or body["at"])
    named = [] if body["status"] in _NO_STATUS else [body["status"]]
    yield _age(seen, about, named, json.dumps(body), f"status {body['status']}")
    yield from _status(seen, about, group, body["status"], body["findings"])
    for row in body["partitions"]:
        yield from _offsets(seen, {**row, "group_id": group}, about)


def _changes(seen: Observation) -> Iterator[Statement]:
    about = seconds(seen.body["to"])
    for row in seen.body["changes"]:
        text = f"{row['change']} by {row['by']}" if row["by"] is not None else str(row["change"])
        yield Statement("change", seen.reader, seen.at, about, row["group_id"], row["topic"], row["partition"], row, text)


def _lag(seen: Observation) -> Iterator[Statement]:
    sampled = [seconds(row["sampled_at"]) for row in seen.body if row["sampled_at"]]
    if sampled:
        named = [row["status"] for row in seen.body if row["status"] not in _NO_STATUS]
        yield _age(
            seen, max(sampled), named, seen.stderr + json.dumps(seen.body), f"{len(named)} statuses, on stderr {seen.stderr!r}"
        )
    for row in seen.body:
        if not row["sampled_at"]:
            continue
        about = seconds(row["sampled_at"])
        yield from _offsets(seen, row, about)
        text = f"{row['topic']}-{row['partition']} STATUS {row['status']} RULE {row['rule']}"
        value = {"status": row["status"], "rule": row["rule"], "row": row}
        yield _of(seen, "finding" if row["status"] not in (*_NO_STATUS, "OK") else "partition", about, row, value, text)
        value = {"is_blocked": row["blocked_by"] is not None, "by": row["blocked_by"]}
        yield _of(seen, "blocked", about, row, value, f"BLOCKED-BY {row['blocked_by']}")


def _sql_status(seen: Observation) -> Iterator[Statement]:
    if not seen.body:
        return
    about = max(seconds(row["evaluated_at"]) for row in seen.body)
    # rows are stored; the command says on standard error that they are old
    yield _age(seen, about, ["stored statuses"], seen.stderr, f"on stderr {seen.stderr!r}", stored=True)
    for row in seen.body:
        yield from _status(seen, seconds(row["evaluated_at"]), row["group_id"], row["status"], row["findings"])


def _sql_expiry(seen: Observation) -> Iterator[Statement]:
    for row in seen.body:
        yield _of(seen, "expiry", seen.asked, row, {"expires_at": seconds(row["expires_at"])}, f"expires at {row['expires_at']}")


def _sql_history(seen: Observation) -> Iterator[Statement]:
    for row in seen.body:
        if row["lag"] is not None and not row["unknown_partitions"]:
            about, lag = seconds(row["sampled_at"]), row["lag"]
            text = f"lag_history has {lag} at {row['sampled_at']}"
            yield Statement("history", seen.reader, seen.at, about, row["group_id"], row["topic"], None, {"lag": lag}, text)


def _notification(seen: Observation) -> Iterator[Statement]:
    for alert in seen.body["alerts"]:
        labels = alert["labels"]
        kind = "alert" if alert["status"] == "firing" else "resolved"
        about = seconds(alert["startsAt"] if kind == "alert" else alert["endsAt"])
        partition = int(labels["partition"]) if "partition" in labels else None
        text = f"{labels['alertname']} {alert['status']}: {alert['annotations'].get('summary')}"
        yield Statement(
            kind, seen.reader, seen.at, about, labels.get("group"), labels.get("topic"), partition, {"alert": alert}, text
        )


def _status(seen: Observation, about: float, group: str, status: str, reasons: Iterable[Row]) -> Iterator[Statement]:
    causes = list(reasons)
    # a page puts symptoms below their cause
    reasons = [each for cause in causes for each in (cause, *(cause.get("symptoms") or ()))]
    told = "; ".join(reason.get("sentence") or reason.get("detail") or "" for reason in reasons)
    value: Row = {"status": status, "rules": [reason["rule"] for reason in reasons]}
    yield Statement("status", seen.reader, seen.at, about, group, value=value, text=f"{status}: {told}" if told else str(status))
    for reason in reasons:
        if reason["status"] in (*_NO_STATUS, "OK"):
            continue
        text = f"{reason['status']} {reason['rule']}: {reason.get('sentence') or reason.get('detail')}"
        value = {"status": reason["status"], "rule": reason["rule"], "row": reason}
        partition = reason.get("partition")
        yield Statement("finding", seen.reader, seen.at, about, group, reason.get("topic"), partition, value, text)


def _hot(seen: Observation, about: float, topic: str, partition: int, rate: float) -> Statement:
    value = {"per_second": rate}
    return Statement(
        "hot", seen.reader, seen.at, about, None, topic, partition, value, f"{topic}-{partition}: {rate:.1f} records/s"
    )


def _offsets(seen: Observation, row: Row, about: float) -> Iterator[Statement]:
    if row["lag"] is not None and row["group_offset"] is not None:
        names = ("group_offset", "latest_offset", "lag", "lag_seconds_low", "lag_seconds_high", "messages_lost")
        text = f"{row['topic']}-{row['partition']}: lag {row['lag']} = {row['latest_offset']} − {row['group_offset']}"
        yield _of(seen, "lag", about, row, {name: row.get(name) for name in names}, text)
    if "blocked_by_transaction" in row and row["lag"] is not None:
        blocked = row["blocked_by_transaction"]
        yield _of(seen, "blocked", about, row, {"is_blocked": blocked, "by": None}, f"blocked_by_transaction {blocked}")


def _age(seen: Observation, about: float, named: list[str], text: str, shown: str, *, stored: bool = False) -> Statement:
    """Whether the reader states its age, and names statuses as if they held now."""
    value = {"states_age": bool(_AGE.search(text)), "names_statuses": bool(named) and not stored}
    return Statement("age", seen.reader, seen.at, about, seen.group, value=value, text=shown)


def _of(seen: Observation, kind: str, about: float, row: Row, value: Row, text: str) -> Statement:
    return Statement(kind, seen.reader, seen.at, about, row["group_id"], row["topic"], row["partition"], value, text)


_READERS: Mapping[str, Callable[[Observation], Iterator[Statement]]] = {
    "ready": _ready,
    "page overview": _overview,
    "page groups": _groups,
    "page group": _group_page,
    "page topic": _topic,
    "metrics": _metrics,
    "agent": _agent,
    "agent, an hour later": _agent,
    "page changes": _changes,
    "lag": _lag,
    "sql status": _sql_status,
    "sql expiry": _sql_expiry,
    "sql lag_history": _sql_history,
    "alerts": _notification,
}
