"""Lag of one partition, case by case. Samples are 30 s apart and take 10 ms; `lag_columns` must agree in every case."""

from typing import Any

import pytest
from lag_samples import LagCase, as_columns, as_row, sample, without_times
from model_of_lag import Commit, LagRow, TopicFacts, partition_lag
from model_of_trends import GrowthStart, LagTrend

from coordinator_core.health import AppendTime, LagReason, RecordCount

S30, S60, S90 = 30_000, 60_000, 90_000
GROWING = (sample(0, 100), sample(S30, 200), sample(S60, 300))
IDLE = (sample(0, 100), sample(S30, 200), sample(3_600_000, 200))
PLAIN = TopicFacts(transactional=False, compacted=False)


def measure(case: LagCase) -> LagRow:
    """The lag by the scalar version, which the columns must equal."""
    lag = case.lag()
    assert without_times(as_columns([case])).to_pylist() == [as_row(lag, case.committed_at_ms)]
    return lag


#: Case, arguments, expected values of some columns.
CASES: tuple[tuple[str, LagCase, dict[str, Any]], ...] = (
    (
        "no commit: offsets of the log only",
        LagCase(None, GROWING),
        {
            "group_offset": None,
            "latest_offset": 300,
            "earliest_offset": 0,
            "lag": None,
            "lag_seconds": None,
            "lag_reason": "no_commit",
        },
    ),
    ("no samples", LagCase(Commit(5), ()), {"group_offset": 5, "latest_offset": None, "lag": None, "lag_reason": "no_sample"}),
    (
        "the newest sample failed: unknown, not the value before it",
        LagCase(Commit(150), (*GROWING, sample(S90, None))),
        {
            "group_offset": 150,
            "lag": None,
            "lag_seconds": None,
            "lag_reason": "topic_authorization_failed",
            "sampled_at_ms": 90_010,
        },
    ),
    (
        "a failed sample before the newest one only widens the interval",
        LagCase(Commit(150), (sample(0, 100), sample(S30, None), sample(S60, 300))),
        {"lag_method": "interpolated", "lag_seconds_low": 0.0, "lag_seconds_high": 60.01},
    ),
    (
        "caught up: no age, and at most the time of the request",
        LagCase(Commit(300), GROWING),
        {"lag": 0, "data_lag": 0, "lag_seconds": 0.0, "lag_seconds_low": 0.0, "lag_seconds_high": 0.01, "lag_method": "exact"},
    ),
    (
        "caught up: nothing is stuck, left to drain, blocked or about to be deleted",
        LagCase(Commit(300, moved_at_ms=0), GROWING),
        {"stuck_seconds": 0.0, "drain_seconds": 0.0, "blocked_by_transaction": False, "retention_margin_seconds": None},
    ),
    (
        "bracketed by the first two samples",
        LagCase(Commit(150), GROWING),
        {"lag": 150, "lag_seconds_low": 30.0, "lag_seconds_high": 60.01, "lag_method": "interpolated", "lag_reason": None},
    ),
    (
        "bracketed by the newest two samples",
        LagCase(Commit(250), GROWING),
        {"lag": 50, "lag_seconds_low": 0.0, "lag_seconds_high": 30.01, "lag_method": "interpolated"},
    ),
    (
        "one record between two samples: the middle of the interval",
        LagCase(Commit(100), (sample(0, 100), sample(S30, 101))),
        {"lag": 1, "lag_seconds": 15.005, "lag_seconds_low": 0.0, "lag_seconds_high": 30.01},
    ),
    (
        "older than the oldest sample: at least the time since then",
        LagCase(Commit(50), GROWING),
        {"lag_seconds": 60.0, "lag_seconds_low": 60.0, "lag_seconds_high": None, "lag_method": "lower_bound"}
        | {"lag_reason": "before_first_sample"},
    ),
    (
        "the first sample says nothing about ages, and 0 would be wrong",
        LagCase(Commit(50, moved_at_ms=0), GROWING[:1]),
        {"lag": 50, "lag_seconds": None, "lag_seconds_low": None, "lag_method": "none", "lag_reason": "first_sample"}
        | {"stuck_seconds": None},
    ),
    (
        "deleted by retention before it was read: the age goes on, never 0",
        LagCase(Commit(150), (*GROWING, sample(S90, 400, 180))),
        {"messages_lost": 30, "lag": 250, "lag_seconds_low": 60.0, "lag_seconds_high": 90.01, "lag_reason": "records_lost"}
        | {"retention_margin_seconds": 0.0},
    ),
    (
        "deleted before the first sample: a lower bound",
        LagCase(Commit(20), (sample(0, 100, 50), sample(S30, 200, 50))),
        {"messages_lost": 30, "lag_seconds": 30.0, "lag_method": "lower_bound", "lag_reason": "records_lost"},
    ),
    (
        "the whole log was deleted",
        LagCase(Commit(150), (*GROWING, sample(S90, 300, 300))),
        {"messages_lost": 150, "lag": 150, "lag_seconds_low": 60.0, "retention_margin_seconds": 0.0},
    ),
    (
        "deleted after the commits were read, as far as it is known: a later commit may cover it",
        LagCase(Commit(150), (*GROWING, sample(S90, 400, 180)), read_until_ms=S90),
        {"messages_lost": None, "lag": 250, "lag_reason": "loss_unknown", "retention_margin_seconds": None},
    ),
    (
        "proven by the sample before, and only as much as that showed",
        LagCase(Commit(150), (*GROWING, sample(S90, 400, 180), sample(120_000, 500, 190)), read_until_ms=120_000),
        {"messages_lost": 30, "earliest_offset": 190, "lag_reason": "records_lost"},
    ),
    (
        "deleted up to an offset in an open transaction",
        LagCase(Commit(150, pending_offset=180), (*GROWING, sample(S90, 400, 180))),
        {"messages_lost": None, "lag_reason": "loss_unknown"},
    ),
    (
        "deleted by a request: `retention.ms` alone counts, not the age of the first record",
        LagCase(Commit(250), (*GROWING, sample(S90, 400, 240)), TopicFacts(retention_ms=3_600_000, size_limited=False)),
        {"messages_lost": 0, "retention_margin_seconds": 3_539.99},
    ),
    (
        "unknown log start: unknown whether records were lost",
        LagCase(Commit(250), (sample(0, 200, None), sample(S30, 300, None)), PLAIN),
        {"messages_lost": None, "data_lag": None, "lag_method": "interpolated"},
    ),
    (
        "commit beyond the end: negative as Kafka's tool prints it, no time",
        LagCase(Commit(10_000), (sample(0, 25),)),
        {"lag": -9_975, "data_lag": None, "lag_seconds": None, "messages_lost": None, "lag_reason": "commit_beyond_end"},
    ),
    (
        "negative commit: none for Java clients, and no lag in Kafka's tool",
        LagCase(Commit(-(2**63) + 1), (sample(0, 25, 20), sample(S30, 25, 20))),
        {"group_offset": -(2**63) + 1, "lag": None, "messages_lost": None, "lag_method": "none", "lag_reason": "negative_commit"},
    ),
    (
        "commit with another topic id",
        LagCase(Commit(10, topic_id="old"), (sample(0, 25),)),
        {"lag": 15, "lag_seconds": None, "lag_method": "none", "lag_reason": "other_incarnation"},
    ),
    (
        "commit without topic id, older than the recreated topic",
        LagCase(Commit(10, committed_at_ms=20_000), (sample(0, 100, topic_id="old"), sample(S30, 25, topic_id="new"))),
        {"lag": 15, "lag_seconds": None, "lag_reason": "other_incarnation"},
    ),
    (
        "commit without topic id, from the recreated topic: samples of the old one do not count",
        LagCase(
            Commit(10, 30_500), (sample(0, 5, topic_id="old"), sample(S30, 9, topic_id="new"), sample(S60, 25, topic_id="new"))
        ),
        {"lag": 15, "lag_seconds_low": 0.0, "lag_seconds_high": 30.01, "lag_method": "interpolated"},
    ),
    (
        "commit older than the first sample: no evidence of another topic",
        LagCase(Commit(150, committed_at_ms=-86_400_000), GROWING),
        {"lag_method": "interpolated", "lag_reason": None},
    ),
    (
        "no topic ids at all: a log that shrank is another topic",
        LagCase(Commit(10, committed_at_ms=20_000), (sample(0, 100, topic_id=None), sample(S30, 25, topic_id=None))),
        {"lag_reason": "other_incarnation"},
    ),
    (
        "no topic ids at all: a leader epoch that fell is another topic",
        LagCase(
            Commit(10, committed_at_ms=20_000),
            (sample(0, 20, topic_id=None, leader_epoch=3), sample(S30, 25, topic_id=None, leader_epoch=0)),
        ),
        {"lag_reason": "other_incarnation"},
    ),
    (
        "truncated log, commit of removed records",
        LagCase(Commit(100, 20_000), (sample(0, 100), sample(S30, 90, leader_epoch=4))),
        {"lag": -10, "lag_seconds": None, "lag_reason": "truncated"},
    ),
    (
        "truncated log that grew beyond the commit: the new record at the offset has an age",
        LagCase(Commit(95, 20_000), (sample(0, 100), sample(S30, 90, leader_epoch=4), sample(S60, 120, leader_epoch=4))),
        {"lag": 25, "lag_seconds_low": 0.0, "lag_seconds_high": 30.01, "lag_reason": "truncated"},
    ),
    (
        "truncated log, commit of records that survived: samples before the truncation count",
        LagCase(Commit(85), (sample(0, 80), sample(S30, 100), sample(S60, 90, leader_epoch=4))),
        {"lag": 5, "lag_seconds_low": 30.0, "lag_seconds_high": 60.01, "lag_reason": None},
    ),
    (
        "beyond the end of a truncated log, but committed after the truncation",
        LagCase(Commit(100, 40_000), (sample(0, 100), sample(S30, 90, leader_epoch=4))),
        {"lag_reason": "commit_beyond_end"},
    ),
    (
        "idle producer: the age grows, and no rate is made up",
        LagCase(Commit(150, moved_at_ms=S30), IDLE, trend=LagTrend(0.0, 600.0, 0.0, 0.0)),
        {"lag_seconds_low": 3_570.0, "lag_seconds_high": 3_600.01, "lag_slope_per_second": 0.0, "drain_seconds": None}
        | {"lag_reason": "stopped", "stuck_seconds": 3_570.0},
    ),
    (
        "open transaction: a consumer with read_committed is blocked at the last stable offset",
        LagCase(Commit(6), (sample(0, 6, last_stable=6), sample(S30, 9, last_stable=6))),
        {"lag": 3, "data_lag": None, "blocked_by_transaction": True, "lag_reason": "open_transaction"},
    ),
    (
        "open transaction after the position, and the records before it are not counted",
        LagCase(Commit(3), (sample(0, 0, last_stable=0), sample(S30, 9, last_stable=6))),
        {"blocked_by_transaction": None, "lag_reason": None},
    ),
    (
        "open transaction after the position, with a record before it",
        LagCase(Commit(3), (sample(0, 0, last_stable=0), sample(S30, 9, last_stable=6)), counted=RecordCount(3, 6, 1, 5)),
        {"blocked_by_transaction": False, "lag_reason": None},
    ),
    (
        "the marker of a finished transaction before an open one: a client that commits last record + 1 is blocked",
        LagCase(Commit(5), (sample(0, 6, last_stable=6), sample(S30, 9, last_stable=6)), counted=RecordCount(5, 6, 0)),
        {"lag": 4, "data_lag": None, "blocked_by_transaction": True, "lag_reason": "open_transaction"},
    ),
    (
        "a count until a lower offset does not show that nothing is left before the open transaction",
        LagCase(Commit(5), (sample(0, 6, last_stable=6), sample(S30, 9, last_stable=7)), counted=RecordCount(5, 6, 0)),
        {"blocked_by_transaction": None, "lag_reason": None},
    ),
    (
        "a count of an earlier position says nothing",
        LagCase(Commit(5), (sample(0, 6, last_stable=6), sample(S30, 9, last_stable=6)), counted=RecordCount(4, 6, 1, 4)),
        {"blocked_by_transaction": None},
    ),
    (
        "no transaction is open: the rest is readable",
        LagCase(Commit(3), (sample(0, 0, last_stable=0), sample(S30, 9, last_stable=9))),
        {"blocked_by_transaction": False},
    ),
    ("last stable offset not requested", LagCase(Commit(3), GROWING), {"blocked_by_transaction": None}),
    (
        "only a commit marker is left: five records and their marker",
        LagCase(Commit(5), (sample(0, 0), sample(S30, 6)), counted=RecordCount(5, 6, 0)),
        {"lag": 1, "data_lag": 0, "lag_seconds": 0.0, "lag_method": "exact", "lag_reason": "only_markers", "stuck_seconds": 0.0},
    ),
    (
        "a record after counted markers: its age, not that of the marker",
        LagCase(Commit(5), (sample(0, 0), sample(S30, 6), sample(S60, 6), sample(S90, 8)), counted=RecordCount(5, 6, 0)),
        {"lag": 3, "data_lag": None, "lag_seconds_low": 0.0, "lag_seconds_high": 30.01, "lag_reason": None},
    ),
    (
        "a counted range that begins with debris of a transaction",
        LagCase(Commit(5), (sample(0, 0), sample(S30, 6), sample(S60, 10)), counted=RecordCount(5, 10, 2, first_offset=7)),
        {"lag": 5, "data_lag": 2, "lag_seconds_low": 0.0, "lag_seconds_high": 30.01},
    ),
    (
        "a count at another offset does not apply",
        LagCase(Commit(5), (sample(0, 0), sample(S30, 6)), counted=RecordCount(4, 6, 0)),
        {"data_lag": None, "lag_method": "interpolated"},
    ),
    ("without transactions and compaction every offset is a record", LagCase(Commit(250), GROWING, PLAIN), {"data_lag": 50}),
    (
        "lost records are not left to read",
        LagCase(Commit(150), (*GROWING, sample(S90, 400, 180)), PLAIN),
        {"lag": 250, "data_lag": 220},
    ),
    (
        "compacted topic: offsets are not records, the age holds",
        LagCase(Commit(150), GROWING, TopicFacts(transactional=False, compacted=True)),
        {"lag": 150, "data_lag": None, "lag_method": "interpolated", "lag_reason": "compacted"},
    ),
    (
        "known append time: exact, within the bracket of the samples",
        LagCase(Commit(150), GROWING, append_time=AppendTime(150, 14_500, 15_500)),
        {"lag_seconds": 45.01, "lag_seconds_low": 44.51, "lag_seconds_high": 45.51, "lag_method": "exact"},
    ),
    (
        "known append time of a record from before the first sample",
        LagCase(Commit(50), GROWING, append_time=AppendTime(50, -20_000, -19_000)),
        {"lag_seconds_low": 79.01, "lag_seconds_high": 80.01, "lag_method": "exact", "lag_reason": None},
    ),
    (
        "an append time known to the millisecond",
        LagCase(Commit(150), GROWING, append_time=AppendTime(150, 15_000, 15_000)),
        {"lag_seconds": 45.01, "lag_seconds_low": 45.01, "lag_seconds_high": 45.01, "lag_method": "exact"},
    ),
    (
        "an append time outside of the bracket shows another clock: the samples count",
        LagCase(Commit(150), GROWING, append_time=AppendTime(150, 45_000, 46_000)),
        {"lag_seconds_low": 30.0, "lag_seconds_high": 60.01, "lag_method": "interpolated"},
    ),
    (
        "an append time of another record does not apply",
        LagCase(Commit(150), GROWING, append_time=AppendTime(149, 14_500, 15_500)),
        {"lag_method": "interpolated"},
    ),
    (
        "lag that grows: slope per second, no drain time",
        LagCase(Commit(200), GROWING, trend=LagTrend(1.0, 60.0, 1.0, 0.0)),
        {"lag_slope_per_second": 1.0, "drain_seconds": None, "lag_reason": "stopped"},
    ),
    (
        "lag that shrinks: drain time at this rate",
        LagCase(Commit(240), GROWING, trend=LagTrend(-2.0, 60.0, 1.0, 3.0)),
        {"lag": 60, "lag_slope_per_second": -2.0, "drain_seconds": 30.0, "lag_reason": None},
    ),
    (
        "lag that grows along a line: window, rates, and since when",
        LagCase(Commit(240), GROWING, trend=LagTrend(1.5, 720.0, 10.0, 8.5, GrowthStart(5_000))),
        {
            "slope_window_seconds": 720.0,
            "produce_rate": 10.0,
            "consume_rate": 8.5,
            "falls_behind_since_ms": 5_000,
            "falls_behind_since_is_latest": False,
        },
    ),
    (
        "lag that has grown in all that is known",
        LagCase(Commit(240), GROWING, trend=LagTrend(1.5, 720.0, 10.0, 8.5, GrowthStart(5_000, is_latest=True))),
        {"falls_behind_since_ms": 5_000, "falls_behind_since_is_latest": True},
    ),
    ("no trend", LagCase(Commit(240), GROWING), {"lag_slope_per_second": None, "drain_seconds": None, "lag_reason": None}),
    (
        "stuck since the position moved, if a record waited all the time",
        LagCase(Commit(150, moved_at_ms=40_010), GROWING),
        {"stuck_seconds": 20.0},
    ),
    (
        "stuck since a record arrived, if the group had read all before",
        LagCase(Commit(200, moved_at_ms=10_000), (*GROWING, sample(S90, 300))),
        {"stuck_seconds": 30.0},
    ),
    (
        "stuck by the clock of the coordinator, which is ahead",
        LagCase(Commit(150, moved_at_ms=99_000), GROWING),
        {"stuck_seconds": 0.0},
    ),
    ("unknown time of the move: unknown whether stuck", LagCase(Commit(150), GROWING), {"stuck_seconds": None}),
    (
        "retention.ms minus the greatest possible age",
        LagCase(Commit(150), GROWING, TopicFacts(retention_ms=100_000)),
        {"retention_margin_seconds": pytest.approx(39.99)},
    ),
    (
        "retention.ms is over",
        LagCase(Commit(150), GROWING, TopicFacts(retention_ms=20_000)),
        {"retention_margin_seconds": 0.0},
    ),
    (
        "an age without upper bound that exceeds retention.ms",
        LagCase(Commit(50), GROWING, TopicFacts(retention_ms=50_000)),
        {"lag_method": "lower_bound", "retention_margin_seconds": 0.0},
    ),
    (
        "an age without upper bound within retention.ms: unknown",
        LagCase(Commit(50), GROWING, TopicFacts(retention_ms=90_000)),
        {"lag_method": "lower_bound", "retention_margin_seconds": None},
    ),
    (
        "unknown retention.ms: records grow as old as the first record of a log whose start moves",
        LagCase(Commit(350), (sample(0, 100), sample(S30, 200, 50), sample(S60, 300, 120), sample(S90, 400, 120))),
        {"retention_margin_seconds": pytest.approx(29.99)},
    ),
    (
        "unknown retention.ms, log start never moved: unknown",
        LagCase(Commit(250), GROWING),
        {"retention_margin_seconds": None},
    ),
    (
        "a log start that moved to a record of the time before the first sample, whose age is unknown",
        LagCase(Commit(350), (sample(0, 100), sample(S30, 200, 50), sample(S60, 300, 90), sample(S90, 400, 90))),
        {"retention_margin_seconds": None},
    ),
    (
        "retention.ms alone if the age of the log start is unknown",
        LagCase(
            Commit(350),
            (sample(0, 100), sample(S30, 200, 50), sample(S60, 300, 90), sample(S90, 400, 90)),
            TopicFacts(retention_ms=86_400_000),
        ),
        {"retention_margin_seconds": pytest.approx(86_369.99)},
    ),
    (
        "deleted by size before retention.ms: the lesser estimate",
        LagCase(
            Commit(350),
            (sample(0, 100), sample(S30, 200, 50), sample(S60, 300, 120), sample(S90, 400, 120)),
            TopicFacts(retention_ms=86_400_000),
        ),
        {"retention_margin_seconds": pytest.approx(29.99)},
    ),
)


@pytest.mark.parametrize(("case", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_lag(case: LagCase, expected: dict[str, Any]) -> None:
    lag = measure(case)
    assert {name: getattr(lag, name) for name in expected} == expected


def test_partitions_of_a_table_are_separate_logs() -> None:
    """The second partition of the same topic id has a shorter log, and is not truncated."""
    cases = [LagCase(Commit(150), GROWING), LagCase(Commit(30), (sample(0, 25), sample(S30, 26)))]
    assert as_columns(cases)["lag_reason"].to_pylist() == [None, "commit_beyond_end"]


def test_every_reason_has_a_case() -> None:
    reached = {case.lag().lag_reason for _, case, _ in CASES}
    # those that need more than one partition: the source, the position that was reached, and the topic's other partitions
    of_tables = {LagReason.SOURCE_WITHOUT_CLUSTER, LagReason.CATCHING_UP, LagReason.UNKNOWN_PARTITION}
    assert set(LagReason) - reached == of_tables


def test_a_source_without_a_cluster_has_no_lag() -> None:
    lag = partition_lag(Commit(5), (), without_samples=LagReason.SOURCE_WITHOUT_CLUSTER)
    assert lag == LagRow(group_offset=5, lag_reason="source_without_cluster")


def test_time_passes_at_samples_only() -> None:
    """A record's age is that at the newest sample: a later sample adds the time between them."""
    before, after = (partition_lag(Commit(150), (*GROWING, sample(at, 300))) for at in (S90, S90 + 5_000))
    assert before.lag_seconds is not None
    assert after.lag_seconds == pytest.approx(before.lag_seconds + 5)
