"""The judge on planted truths without a broker: true statements in other words pass, and each kind of false one is found."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from judge import Judgement, judge
from observers import Observation
from positions import Bounds, Positions, Series
from scenario import Limits
from statements import Statement, statements
from truth import Incident, Truth

START = 1_795_300_000.0
LIMITS = Limits(
    found={"stopped": 60, "blocked": 40, "rewound": 20, "falls_behind": 100, "data_lost": 20, "expiring": 20, "hot": 100},
    lingers={"rewound": 600},
    delay=10,
    lag=4,
    sample=5,
    stale=40,
    since=5,
    since_of_growth=5,
)
#: The job is away from second 200 to 300, and has read everything at 320.
KILLED, RESTARTED, CAUGHT_UP, END = START + 200, START + 300, START + 320, START + 500


def positions() -> Positions:
    """A topic with 10 records a second; `well` is at its end, `dead` since second 50 at 500, `slow` reads 9 a second."""
    found = Positions()
    for second in range(502):
        at = START + second
        found.add_ends(at, at + 0.01, {("orders", 0): 10 * second})
        for group, offset in (("well", 10 * second), ("dead", min(10 * second, 500)), ("slow", 9 * second)):
            found.add_committed(at + 0.02, at + 0.03, group, {("orders", 0): offset})
        # an open transaction begins at 400; `waits_later` reads half of the rate and reaches it later
        found.add_committed(at + 0.02, at + 0.03, "waits", {("orders", 0): min(10 * second, 400)})
        found.add_committed(at + 0.02, at + 0.03, "waits_later", {("orders", 0): min(5 * second, 400)})
    return found


def truth() -> Truth:
    batches = [Bounds(START + second, START + second) for second in range(0, 500, 5) if not 200 <= second < 315]
    planted = [
        Incident("stopped", "dead", Bounds(START + 50, START + 50), owners=("dead-1",)),
        Incident("falls_behind", "slow", Bounds(START, START), owners=("slow-1",)),
        Incident("blocked", "waits", Bounds(START + 40, START + 40), until=START + 450, transactional_id="txn-7"),
        Incident("blocked", "waits_later", Bounds(START + 40, START + 40), until=START + 450, transactional_id="txn-7"),
        Incident(
            "rewound",
            "jumpy",
            Bounds(START + 60, START + 60),
            partition=0,
            owners=("jumpy-1",),
            facts={"from_offset": 80, "to_offset": 20, "by": "member"},
        ),
        Incident("hot", "busy", Bounds(START + 20, START + 20), partition=0, facts={"topic": "orders", "per_second": 40.0}),
        Incident("expiring", "left", Bounds(START + 30, START + 30), facts={"expires_at": [START + 1530, START + 1530]}),
    ]
    samples = [each.high for each in batches]
    return Truth(
        START,
        END,
        planted,
        [Bounds(KILLED, CAUGHT_UP)],
        [RESTARTED],
        [],
        {"again": [Bounds(START + 90, START + 91)]},
        batches,
        samples,
        positions(),
    )


def told(
    kind: str, group: str | None, second: float, /, reader: str = "page group", about: float | None = None, **value: Any
) -> Statement:
    """A statement about the time at which it is read, unless `about` is given."""
    about_at = START + (second if about is None else about)
    return Statement(kind, reader, START + second, about_at, group, "orders", 0, value)


def finding(group: str, second: float, rule: str, status: str = "WARN", about: float | None = None, **row: Any) -> Statement:
    return told("finding", group, second, about=about, status=status, rule=rule, row=row)


def lag(group: str, second: float, offset: int, end: int, about: float | None = None, **more: Any) -> Statement:
    value = {"lag_seconds_low": None, "lag_seconds_high": None, "messages_lost": 0, **more}
    return told("lag", group, second, about=about, group_offset=offset, latest_offset=end, lag=end - offset, **value)


def commits(group: str, start: float, end: float) -> Statement:
    """No commits between two times."""
    value = {"from": START + start, "to": START + end, "per_second": 0.0}
    return Statement("commits", "page group", START + 190, START + 190, group, value=value)


def iso(second: float) -> str:
    return datetime.fromtimestamp(START + second, UTC).isoformat()


def polled(second: float) -> Statement:
    """A stop that a poll has found, whose latest possible start this is."""
    return replace(finding("dead", 120, "stopped", "STOP", since=iso(second)), text="No commits since 12:00 UTC at the latest.")


TRUE = [
    told("status", "well", 100, status="OK", rules=[]),
    told("status", "dead", 60, status="OK", rules=[]),
    told("status", "dead", 310, about=310, status="UNKNOWN", rules=["unknown"]),
    finding("dead", 120, "stopped", "STOP", since=iso(51), client_id="dead-1"),
    finding("dead", 120, "stopped", "STOP"),
    # the first sample after it is at 55
    polled(58),
    finding("slow", 150, "falls_behind", since=iso(3)),
    finding("waits", 100, "hanging_transaction", "ERR", since=iso(40), transactional_id="txn-7"),
    finding("waits", 100, "stalled", "STALL"),
    finding("jumpy", 400, "rewound", from_offset=80, to_offset=20, by="member"),
    lag("well", 100, 1000, 1000),
    lag("dead", 100, 500, 1000, lag_seconds_low=49.0, lag_seconds_high=51.5),
    lag("dead", 100, 500, 1000, lag_seconds_low=49.0, lag_seconds_high=None),
    told("blocked", "waits", 100, reader="lag", is_blocked=True, by="txn-7"),
    told("blocked", "waits", 43, reader="lag", is_blocked=False, by=None),
    told("blocked", "waits", 480, reader="lag", is_blocked=False, by=None),
    told("blocked", "waits_later", 85, reader="lag", is_blocked=False, by=None),
    finding("waits_later", 120, "hanging_transaction", "ERR", since=iso(40), transactional_id="txn-7"),
    finding("waits_later", 120, "stalled", "STALL", since=iso(81)),
    told("ready", None, 190, reader="ready", code=200),
    told("ready", None, 260, reader="ready", code=503),
    told("age", "well", 260, about=199, states_age=True, names_statuses=False),
    told("age", "well", 210, about=199, states_age=False, names_statuses=True),
    told("history", "dead", 499, about=150, lag=1000),
    told("slope", "slow", 199, slope=1.0),
    told("expiry", "left", 100, expires_at=START + 1533),
    # what waits has come later than the incident
    finding("busy", 150, "hot_partition", since=iso(90)),
    told("hot", None, 100, reader="metrics", per_second=41.0),
    told("event", "dead", 150, at=iso(50), kind="stop", words="Last commit"),
    told("change", "dead", 450, change="progress", by=500),
    commits("dead", 100, 150),
    commits("well", -100, -50),
]

FALSE = [
    (told("status", "dead", 150, status="OK", rules=[]), "OK during stopped"),
    (told("status", "slow", 190, status="OK", rules=[]), "OK during falls_behind"),
    (finding("well", 315, "stopped", "STOP"), "stopped of a group without such a defect"),
    (finding("dead", 45, "stopped", "STOP"), "stopped of a group without such a defect"),
    (finding("dead", 120, "stopped", "STOP", since=iso(90)), "wrong start of stopped"),
    (finding("dead", 120, "stopped", "STOP", since=iso(58)), "wrong start of stopped"),
    (polled(40), "wrong start of stopped"),
    (polled(62), "wrong start of stopped"),
    (finding("dead", 120, "stopped", "STOP", client_id="well-1"), "wrong owner of stopped"),
    (finding("waits", 470, "hanging_transaction", "ERR"), "hanging_transaction of a group without such a defect"),
    (finding("jumpy", 400, "rewound", from_offset=77, to_offset=20), "wrong numbers of rewound"),
    (finding("jumpy", 400, "reset", from_offset=80, to_offset=20), "reset of a group without such a defect"),
    (lag("well", 315, 2000, 3000, about=300), "lag"),
    (lag("dead", 100, 500, 1100), "lag"),
    (lag("dead", 100, 500, 1000, lag_seconds_low=60.0, lag_seconds_high=70.0), "age"),
    (told("blocked", "waits", 100, reader="lag", is_blocked=False, by=None), "open transaction denied"),
    (told("blocked", "waits", 100, reader="lag", is_blocked=True, by="txn-8"), "wrong transactional id"),
    (told("blocked", "well", 100, reader="lag", is_blocked=True, by="txn-7"), "blocked without a transaction"),
    (told("blocked", "waits_later", 100, reader="lag", is_blocked=False, by=None), "open transaction denied"),
    (finding("waits_later", 120, "hanging_transaction", "ERR", since=iso(81)), "wrong start of hanging_transaction"),
    (finding("waits_later", 120, "stalled", "STALL", since=iso(100)), "wrong start of stalled"),
    (told("ready", None, 260, reader="ready", code=200), "ready on old data"),
    (told("ready", None, 150, reader="ready", code=503), "not ready on new data"),
    (told("age", "well", 260, about=199, states_age=False, names_statuses=False), "old data without its age"),
    (told("age", "well", 260, about=199, states_age=True, names_statuses=True), "statuses of old data"),
    (told("history", "well", 499, about=310, lag=1100), "lag in the history"),
    (told("slope", "slow", 199, slope=6.0), "trend"),
    (told("expiry", "left", 100, expires_at=START + 30 + 604_800), "expiry"),
    (finding("busy", 150, "hot_partition", since=iso(5)), "wrong start of hot_partition"),
    (told("hot", None, 10, reader="metrics", per_second=40.0), "hot partition that is none"),
    (told("hot", None, 100, reader="metrics", per_second=80.0), "rate of a hot partition"),
    (told("event", "dead", 150, at=iso(175), kind="rebalance", words="in 25 s"), "event after the time of its page"),
    (told("event", "well", 150, at=iso(140), kind="stop", words="Last commit"), "stop that was none"),
    (told("change", "again", 450, change="progress", by=500), "progress of a group that was deleted"),
    (told("change", "well", 450, change="appeared", by=None), "a group that was there came or went"),
    (told("change", "left", 1_520, change="vanished", by=None), "a group that was there came or went"),
    (told("change", "left", 1_540, change="appeared", by=None), "a group that was there came or went"),
    (commits("well", 100, 150), "no commits"),
]


def judged(*given: Statement) -> Judgement:
    return judge(given, truth(), LIMITS)


@pytest.mark.parametrize("statement", TRUE, ids=str)
def test_true_statements_pass(statement: Statement) -> None:
    assert [each.mistake for each in judged(statement).false] == []


@pytest.mark.parametrize(("statement", "mistake"), FALSE, ids=str)
def test_false_statements_are_found(statement: Statement, mistake: str) -> None:
    assert [each.mistake for each in judged(statement).false] == [mistake]


def test_a_position_without_answers_is_unknown_and_judges_nothing() -> None:
    found = truth()
    series = Series()
    for second in (0, 1, 2, 90, 91):
        series.add(START + second, START + second, 100 * second)
    found.positions.ends["orders", 0] = series
    assert judge([lag("well", 50, 1, 999_999)], found, LIMITS).false == []
    assert not series.covers(START + 40, START + 50)
    assert series.covers(START + 0.5, START + 1.5)


def alert(name: str, group: str, second: float, status: str = "firing", **annotations: str) -> Statement:
    body = {"status": status, "labels": {"alertname": name, "group": group}, "annotations": annotations}
    kind = "alert" if status == "firing" else "resolved"
    return replace(told(kind, group or None, second, reader="alerts", alert=body), topic=None, partition=None)


def test_alerts() -> None:
    assert judged(alert("JobStopped", "", 245)).false == []
    assert [each.mistake for each in judged(alert("JobStopped", "", 150)).false] == ["JobStopped while it ran"]
    unhealthy = "GroupUnhealthy"
    assert judged(alert(unhealthy, "dead", 130, status_rule="stopped")).false == []
    assert [each.mistake for each in judged(alert(unhealthy, "well", 130, status_rule="stopped")).false] == [
        "alert: stopped of a group without such a defect"
    ]
    gone = alert("HangingTransaction", "waits", 120, "resolved", resolved_reason="absent")
    assert {each.mistake for each in judged(gone).false} == {"resolved since the group is gone", "resolved during the incident"}
    assert judged(alert("HangingTransaction", "waits", 460, "resolved")).false == []


def test_an_expired_group_is_gone() -> None:
    """It has been empty since second 30, and expires at 1,530."""
    gone, early = (alert(name, "left", at, "resolved", resolved_reason="absent") for name, at in (("Lag", 1_540), ("Lag", 1_520)))
    assert judged(gone, told("change", "left", 1_540, change="vanished", by=None)).false == []
    assert [each.mistake for each in judged(early).false] == ["resolved since the group is gone"]
    rejoined = truth()
    rejoined.incidents = [replace(each, until=START + 100) for each in rejoined.of("left")]
    assert [each.mistake for each in judge([gone], rejoined, LIMITS).false] == ["resolved since the group is gone"]


def missing(kind: str, *given: Statement) -> list[str]:
    """What was not found of one kind of incident, in the pages of groups."""
    return [text for text in judged(*given).missing if text.startswith(f"{kind} of") and "in page group:" in text]


def test_incidents_are_found_with_cause_owner_and_start() -> None:
    complete = finding("dead", 100, "stopped", "STOP", since=iso(50), client_id="dead-1", member_host="/127.0.0.1")
    assert missing("stopped", complete) == []
    # the same in words alone
    words = f"No commits on orders-0 since {iso(50)[11:19]}; dead-1 on 127.0.0.1 owns it"
    assert missing("stopped", finding("dead", 100, "stopped", "STOP", sentence=words)) == []
    late = replace(complete, at=START + 190, about=START + 190)
    assert missing("stopped", late) == [], "nobody looked before"
    looked = told("status", "dead", 150, status="OK")
    (text,) = missing("stopped", looked, late)
    assert "not seen after 100 s, limit 60 s" in text
    assert missing("stopped", replace(looked, at=START + 100), late) == []
    assert [text.split(": ")[1] for text in missing("stopped", finding("dead", 100, "stopped", "STOP"))] == [
        "without owner",
        "without start",
    ]
    assert ["not found within 60 s" in text for text in missing("stopped")] == [True]
    without = missing("blocked", finding("waits", 80, "hanging_transaction", "ERR", since=iso(41)))
    assert ["without cause" in text for text in without if "of waits in" in text] == [True]


def test_time_without_the_job_does_not_count_for_a_detection() -> None:
    found = truth()
    found.incidents = [Incident("stopped", "late", Bounds(START + 190, START + 190))]
    (row,) = [each for each in judge([finding("late", 340, "stopped", since=iso(190))], found, LIMITS).findings if each.delay]
    assert row.delay == 150 - 120
    # with 10 seconds of the job before the end, nothing is missing
    found.ended = CAUGHT_UP + 10
    assert judge([], found, LIMITS).findings == []


def test_a_hot_partition_has_to_be_shown_by_series() -> None:
    # the page of the topic would need more time than there was
    (text,) = [each for each in judged().missing if "as a hot partition" in each]
    assert text == "hot of busy in metrics, as a hot partition: not found within 100 s"
    shown = told("hot", None, 150, reader="metrics", per_second=40.0)
    assert not [each for each in judged(shown).missing if "as a hot partition" in each]


def test_a_window_begins_anew_after_an_absence() -> None:
    (hot,) = (each for each in truth().incidents if each.kind == "hot")
    # a run with as many samples as it needs
    assert [truth().seconds_to_find(hot, START + second, 5.0) for second in (150, 210, 400)] == [130, 180, 80]
    assert truth().had_seconds_to_find(hot, 5.0) == 180


def test_a_job_that_stopped_has_to_be_reported() -> None:
    (text,) = [each for each in judged().missing if "killed" in each]
    assert "not found" in text
    assert not [each for each in judged(alert("JobStopped", "", 245)).missing if "killed" in each]


def test_answers_of_readers_become_statements() -> None:
    reason = {"rule": "stopped", "status": "STOP", "sentence": "No commits on orders-0, although records are waiting."}
    page = {"sampled_at": iso(100), "at": iso(100), "statuses": [{"status": "STOP", "groups": 1}]}
    page["attention"] = [{"group_id": "dead", "status": "STOP", "reasons": [reason]}]
    row = {"group_id": "dead", "topic": "orders", "partition": 0, "group_offset": 500, "latest_offset": 1000, "lag": 500}
    row |= {"lag_seconds_low": 49.0, "lag_seconds_high": 51.0, "sampled_at": iso(100), "blocked_by": None}
    row |= {"status": "UNKNOWN", "rule": "unknown"}
    observations = [
        Observation("page overview", START + 101, START + 101, 200, page),
        Observation("lag", START + 101, START + 102, 0, [row], "since 17:35 UTC: the job has stopped\n"),
        Observation("ready", START + 101, START + 101, 503, {"message": "the job has stopped"}),
        Observation("page overview", START + 101, START + 101, 503, {"message": "not loaded"}),
    ]
    found = statements(observations)
    assert [(each.reader, each.kind) for each in found] == [
        ("page overview", "age"),
        ("page overview", "status"),
        ("page overview", "finding"),
        ("lag", "age"),
        ("lag", "lag"),
        ("lag", "partition"),
        ("lag", "blocked"),
        ("ready", "ready"),
    ]
    ages = [each.value for each in found if each.kind == "age"]
    assert ages == [{"states_age": False, "names_statuses": True}, {"states_age": True, "names_statuses": False}]


def test_a_truth_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "truth.json"
    truth().write(path)
    assert Truth.read(path) == truth()
    assert len(json.loads(path.read_text())["incidents"]) == 7
