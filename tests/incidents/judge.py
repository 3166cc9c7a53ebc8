"""Judge statements by the truth: which are false, and which incidents were not found, or without cause, owner or start.

Pure: statements and truth are arguments. Words are free; facts (status, numbers, times, owners) are not.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from coverage_of_incidents import Finding, found_incidents, hot_partitions_missing, job_alerts_missing
from positions import Bounds
from scenario import Limits
from statements import Statement, reports_latest_start, seconds
from truth import JUSTIFIED, Incident, Truth

_CLOCK_SECONDS = 2.0
#: Words about an offset that is a lower bound.
_OR_LATER = "or later"
#: The first number in the text of an alert.
_NUMBER = re.compile(r"\d+")
#: A slope is true if it is that of some window between these lengths, within the tolerance.
_SLOPE_WINDOWS = (30.0, 60.0, 120.0, 300.0, 900.0)
#: The window ends with the last commit: 1.25 times the distance of points, a minute, before the sample at most.
_SLOPE_ENDS = (0.0, 30.0, 75.0)
_SLOPE_TOLERANCE = 1.0
#: A rate is that of a window, in which the broker may have been paused, or in which the records of a pause arrive.
_HOT_LOW, _HOT_HIGH = 0.7, 1.3


@dataclass(frozen=True)
class FalseStatement:
    """A statement, the kind of mistake, and what is true instead."""

    statement: Statement
    mistake: str
    truth: str


@dataclass(frozen=True)
class Judgement:
    """All false statements in the order of their times, for each incident and reader what was found, and what was not."""

    false: Sequence[FalseStatement]
    findings: Sequence[Finding]
    missing: Sequence[str]


def judge(statements: Sequence[Statement], truth: Truth, limits: Limits) -> Judgement:
    """Judge all statements of a run."""
    court = _Court(truth, limits)
    false = [FalseStatement(statement, mistake, told) for statement in statements for mistake, told in court.mistakes(statement)]
    findings = found_incidents(statements, truth, limits)
    missing = [text for finding in findings for text in finding.missing]
    missing += [text for of in (job_alerts_missing, hot_partitions_missing) for text in of(statements, truth, limits)]
    return Judgement(sorted(false, key=lambda each: each.statement.at), findings, missing)


#: Kind of mistake and the truth.
Mistakes = Iterator[tuple[str, str]]


class _Court:
    """The truth of one run, and a rule for each kind of statement."""

    def __init__(self, truth: Truth, limits: Limits) -> None:
        self._truth = truth
        self._limits = limits
        self._stale = limits.stale + truth.longest_batch
        self._rules: Mapping[str, Callable[[Statement], Mistakes]] = {
            "status": self._status,
            "finding": self._finding,
            "lag": self._lag,
            "blocked": self._blocked,
            "ready": self._ready,
            "age": self._age,
            "history": self._history,
            "slope": self._slope,
            "expiry": self._expiry,
            "hot": self._hot,
            "event": self._event,
            "change": self._change,
            "commits": self._commits,
            "alert": self._alert,
            "resolved": self._resolved,
        }

    def mistakes(self, statement: Statement) -> Mistakes:
        """Why a statement is false; nothing if it is true, or if the truth is not known."""
        rule = self._rules.get(statement.kind)
        if rule is not None:
            yield from rule(statement)

    def _status(self, told: Statement) -> Mistakes:
        if told.value["status"] != "OK":
            return
        for incident in self._due(told.group, told.about):
            if incident.kind != "expiring":
                yield f"OK during {incident.kind}", f"{incident.name} since {self._clock(incident.since.low)}"

    def _finding(self, told: Statement) -> Mistakes:
        rule, row = told.value["rule"], told.value["row"]
        matching = self._justifying(told, rule)
        if not matching:
            yield f"{rule} of a group without such a defect", self._condition(told)
            return
        planted = [each for each in matching if {"from_offset", "to_offset"} <= each.facts.keys() and each.partition is not None]
        if rule in ("rewound", "reset") and planted and row.get("to_offset") is not None:
            wanted = planted[0].facts
            named = {name: row[name] for name in ("from_offset", "to_offset", "by") if row.get(name) is not None}
            wrong = {name: value for name, value in named.items() if wanted[name] != value}
            if _OR_LATER in told.text and named.get("from_offset", 0) <= wanted["from_offset"]:
                wrong.pop("from_offset", None)
            if wrong:
                yield (
                    f"wrong numbers of {rule}",
                    f"{wanted['from_offset']} to {wanted['to_offset']} by {wanted['by']}, not {wrong}",
                )
        since = row.get("since")
        is_latest = reports_latest_start(told.text)
        if since is not None and not any(self._began(each, rule, seconds(since), is_latest=is_latest) for each in matching):
            starts = ", ".join(f"{each.name} at {self._clock(each.since.low)}" for each in matching)
            yield f"wrong start of {rule}", f"since {self._clock(seconds(since))} is told, but {starts}"
        client = row.get("client_id")
        owners = {owner for each in matching for owner in each.owners}
        if client is not None and owners and client not in owners and told.reader != "lag":
            yield f"wrong owner of {rule}", f"{client} is told, but it is {', '.join(sorted(owners))}"

    def _lag(self, told: Statement) -> Mistakes:
        assert told.group is not None
        assert told.topic is not None
        assert told.partition is not None
        value = told.value
        true = self._truth.positions.lag(told.group, told.topic, told.partition, told.about - self._limits.lag, told.about + 1)
        if true is None or not self._known(told.about):
            return
        if not true.has(max(0, value["lag"])):
            yield "lag", f"{true} {self._when(told.about)}"
        low, high = value["lag_seconds_low"], value["lag_seconds_high"]
        age = self._truth.positions.age(told.topic, told.partition, value["group_offset"], told.about)
        if age is not None and low is not None and value["lag"] > 0:
            bounds = Bounds(low, float("inf") if high is None else high)
            if not bounds.meets(age, _CLOCK_SECONDS):
                yield "age", f"{age} s, not {low} to {high} s"
        if value["messages_lost"] is not None and value["messages_lost"] not in self._lost(told):
            yield "messages_lost", f"one of {self._lost(told)}, not {value['messages_lost']}"

    def _lost(self, told: Statement) -> list[int]:
        """Numbers of deleted records that may be told: none before the first sample after the deletion."""
        planted = [each for each in self._truth.of(told.group or "") if each.kind == "data_lost" and each.since.low <= told.about]
        surely = any(told.about > each.since.high + self._limits.delay and self._settled(told.about) for each in planted)
        return [*([] if surely else [0]), *(each.facts["messages_lost"] for each in planted)]

    def _blocked(self, told: Statement) -> Mistakes:
        assert told.group is not None
        planted = [each for each in self._truth.of(told.group) if each.kind == "blocked"]
        if told.value["is_blocked"] and not planted:
            yield "blocked without a transaction", f"no transaction was open in {told.topic}"
        for each in planted:
            delay = self._limits.delay
            if self._truth.waits_from(each) + delay > told.about or (each.until is not None and told.about > each.until - 1):
                continue
            if not self._settled(told.about):
                continue
            if not told.value["is_blocked"]:
                yield "open transaction denied", f"{each.transactional_id} blocks it since {self._clock(each.since.low)}"
            elif told.value["by"] is not None and (each.transactional_id or "") not in told.value["by"]:
                yield "wrong transactional id", f"{each.transactional_id}"

    def _ready(self, told: Statement) -> Mistakes:
        age = self._data_age(told.at)
        if told.value["code"] == 200 and age > self._stale:
            yield "ready on old data", f"the last batch is {age:.0f} s old"
        if told.value["code"] != 200 and self._settled(told.at) and age < self._limits.delay:
            yield "not ready on new data", f"the last batch is {age:.0f} s old"

    def _age(self, told: Statement) -> Mistakes:
        age = self._data_age(told.at)
        if age <= self._stale:
            return
        if not told.value["states_age"]:
            yield "old data without its age", f"the last batch is {age:.0f} s old"
        if told.value["names_statuses"]:
            yield "statuses of old data", f"unknown: the last batch is {age:.0f} s old"

    def _history(self, told: Statement) -> Mistakes:
        assert told.group is not None
        assert told.topic is not None
        true = self._truth.positions.group_lag(told.group, told.topic, told.about - self._limits.lag, told.about + 1)
        if true is not None and self._known(told.about) and not true.has(told.value["lag"]):
            yield "lag in the history", f"{true} {self._when(told.about)}"

    def _slope(self, told: Statement) -> Mistakes:
        assert told.group is not None
        key = (told.group, told.topic or "", told.partition or 0)
        windows = [(told.about - end, window) for end in _SLOPE_ENDS for window in _SLOPE_WINDOWS]
        slopes = [slope for at, window in windows if (slope := self._true_slope(key, at, window)) is not None]
        if slopes and not Bounds(min(slopes), max(slopes)).has(told.value["slope"], _SLOPE_TOLERANCE):
            yield "trend", f"{min(slopes):+.2f} to {max(slopes):+.2f}/s over 30 s to 15 min, {self._when(told.about)}"

    def _true_slope(self, key: tuple[str, str, int], at: float, window: float) -> float | None:
        then = self._truth.positions.lag(*key, at - window, at - window)
        now = self._truth.positions.lag(*key, at, at)
        if then is None or now is None or not self._known(at - window):
            return None
        return ((now.low + now.high) - (then.low + then.high)) / 2 / window

    def _expiry(self, told: Statement) -> Mistakes:
        for each in self._truth.of(told.group or ""):
            if each.kind == "expiring" and told.at > each.since.high + self._limits.delay:
                low, high = each.facts["expires_at"]
                if not Bounds(low, high).has(told.value["expires_at"], self._limits.delay):
                    yield "expiry", f"the broker removes it at {self._clock(low)}"

    def _hot(self, told: Statement) -> Mistakes:
        planted = [each for each in self._truth.incidents if each.kind == "hot" and each.facts["topic"] == told.topic]
        rates = [
            each.facts["per_second"] for each in planted if each.partition == told.partition and each.since.low <= told.about
        ]
        if not rates:
            yield "hot partition that is none", f"hot is {', '.join(str(each.partition) for each in planted) or 'none'}"
        elif not Bounds(_HOT_LOW * rates[0], _HOT_HIGH * rates[0]).has(told.value["per_second"]):
            yield "rate of a hot partition", f"{rates[0]:.0f} records/s"

    def _event(self, told: Statement) -> Mistakes:
        at = seconds(told.value["at"])
        # those of alerts are newer than the sample
        if at > told.at + _CLOCK_SECONDS:
            yield "event after the time of its page", f"the page was read at {self._clock(told.at)}"
        if told.value["kind"] == "stop" and not self._justifying(told, "stopped"):
            yield "stop that was none", self._condition(told)

    def _change(self, told: Statement) -> Mistakes:
        assert told.group is not None
        change, was_deleted = told.value["change"], told.group in self._truth.absent
        if change == "progress" and was_deleted:
            yield "progress of a group that was deleted", "it was deleted and made again, and reads from the beginning"
        has_expired = change == "vanished" and self._truth.may_have_expired(told.group, told.about)
        if change in ("appeared", "vanished") and not (was_deleted or has_expired):
            yield "a group that was there came or went", "it existed at both times"

    def _commits(self, told: Statement) -> Mistakes:
        # within the edges, which the nearest responses lie beyond
        start, end = told.value["from"] + _CLOCK_SECONDS, told.value["to"] - _CLOCK_SECONDS
        if told.value["per_second"] > 0 or not self._truth.job_ran(start, end):
            return
        positions = self._truth.positions
        offsets = (positions.committed[key].bounds(start, end) for key in positions.partitions(told.group or ""))
        moved = max((each.high - each.low for each in offsets if each is not None), default=0)
        if moved:
            yield "no commits", f"the position moved by {moved:.0f} offsets in this time"

    def _alert(self, told: Statement) -> Mistakes:
        name = told.value["alert"]["labels"]["alertname"]
        if name == "JobStopped":
            age = self._data_age(told.about)
            if age < self._limits.stale - _CLOCK_SECONDS:
                yield "JobStopped while it ran", f"the last batch was {age:.0f} s old"
            return
        kinds = {"HangingTransaction": "hanging_transaction", "RecordsLost": "data_lost"}
        rule = kinds.get(name) or told.value["alert"]["annotations"].get("status_rule")
        if name == "GroupBehind":
            true = self._truth.positions.lag(told.group or "", told.topic or "", told.partition or 0, told.about - 2, told.about)
            if true is not None and not any(self._truth.of(told.group or "")):
                yield "alert of a healthy group", f"its lag is {true} {self._when(told.about)}"
        elif name == "RecordsLost" and (found := _NUMBER.search(told.text)) and int(found[0]) not in self._lost(told):
            yield "alert: records lost", f"{self._lost(told)}"
        elif rule is not None and not self._justifying(told, rule):
            yield f"alert: {rule} of a group without such a defect", self._condition(told)

    def _resolved(self, told: Statement) -> Mistakes:
        alert = told.value["alert"]
        name, reason = alert["labels"]["alertname"], alert["annotations"].get("resolved_reason")
        if reason == "absent" and told.group is not None and not self._is_absent(told.group, told.about):
            yield "resolved since the group is gone", "the group exists"
        kind = {"HangingTransaction": "blocked", "RecordsLost": "data_lost"}.get(name)
        for each in self._due(told.group, told.about) if kind else ():
            if each.kind == kind:
                yield "resolved during the incident", f"{each.name} since {self._clock(each.since.low)}"

    def _justifying(self, told: Statement, rule: str) -> list[Incident]:
        """Incidents that make a finding of a rule true at its time."""
        known = self._truth.read_until(told.about, self._limits.sample)
        return [
            each
            for each in self._truth.of(told.group or "")
            if rule in JUSTIFIED[each.kind]
            and each.since.low - _CLOCK_SECONDS <= told.about
            and (each.until is None or known <= each.until + self._limits.lingers.get(each.kind, 0) + self._limits.delay)
            and (told.partition is None or each.partition is None or each.partition == told.partition)
        ]

    def _due(self, group: str | None, at: float) -> list[Incident]:
        """Incidents of a group that go on, and that readers must have found by now."""
        return [
            each
            for each in self._truth.of(group or "")
            if each.kind not in self._truth.unseen
            and self._settled(at)
            and self._truth.seconds_to_find(each, at, self._limits.sample) > self._limits.found[each.kind]
            and (each.until is None or at < each.until)
        ]

    def _began(self, incident: Incident, rule: str, since: float, *, is_latest: bool) -> bool:
        """Whether an incident began at a time, or, if that is the latest possible start, not after it."""
        start = self._truth.start(incident, rule, is_latest=is_latest)
        return start.has(since, self._limits.since_of(incident.kind))

    def _settled(self, at: float) -> bool:
        """Whether job and broker have run for a while, so that nothing is on its way."""
        start = at - self._limits.delay
        return self._truth.job_ran(start, at) and not any(each.low < at and start < each.high for each in self._truth.paused)

    def _known(self, at: float) -> bool:
        """Whether the positions at a time are known: the broker answered."""
        return not any(each.low - 1 <= at <= each.high + self._limits.lag for each in self._truth.paused)

    def _data_age(self, at: float) -> float:
        newest = self._truth.newest_batch(at)
        return 0.0 if newest is None else at - newest

    def _is_absent(self, group: str, at: float) -> bool:
        gaps = self._truth.absent.get(group, ())
        was_deleted = any(each.low - self._limits.delay <= at <= each.high + self._limits.delay for each in gaps)
        return was_deleted or self._truth.may_have_expired(group, at)

    def _condition(self, told: Statement) -> str:
        going_on = [
            f"{each.name} since {self._clock(each.since.low)}"
            for each in self._truth.of(told.group or "")
            if each.since.low <= told.about and (each.until is None or told.about <= each.until)
        ]
        return f"{', '.join(going_on) or 'it is healthy'}; {self._when(told.about)}"

    def _when(self, at: float) -> str:
        return f"at {self._clock(at)}, {self._truth.phase(at)}"

    def _clock(self, at: float) -> str:
        return f"{at - self._truth.started:+.1f} s"
