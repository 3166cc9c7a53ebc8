"""Every status and every rule in `group_status`, by a scenario that causes it, and the same status from the histories later."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from log_builder import member
from status_story import Story

from coordinator_core.health import BURROW_RULES, GROUP_RULES, Status, StatusSettings
from pipelines.dashboard.state.computed_statuses import ComputedStatuses
from pipelines.lag.past.status_at import group_status_at
from pipelines.query.check import check
from pipelines.query.engine import Snapshot
from pipelines.tables import definitions
from pipelines.tables.store import TableStore

Scenario = Callable[[Story], dict[str, Any]]


def commits(story: Story, *pairs: tuple[int, int], every: float = 30, start: float = 0) -> float:
    """A commit and a log end at equal distances, each in a batch of its own, and a sample after each; the time of the last."""
    at = start
    for number, (offset, end) in enumerate(pairs):
        at = start + number * every
        story.at(at).end(end).commit(offset)
        story.at(at + 1).sample()
    return at


def too_few_commits(story: Story) -> dict[str, Any]:
    story.end(9).commit(5)
    return story.at(1).sample()


def caught_up(story: Story) -> dict[str, Any]:
    story.end(5).commit(5)
    return story.at(1).sample()


def stopped(story: Story) -> dict[str, Any]:
    last = commits(story, (1, 5), (2, 6), (3, 7))
    for later in range(1, 8):
        row = story.at(last + later * 30).sample()
    return row


def burrow_rewind(story: Story) -> dict[str, Any]:
    commits(story, (1, 50), (9, 51), (3, 52), (4, 53))
    return story.at(92).sample()


def had_no_lag(story: Story) -> dict[str, Any]:
    commits(story, (5, 5), (6, 9), (7, 9))
    return story.at(62).sample()


def stalled(story: Story) -> dict[str, Any]:
    commits(story, (5, 9), (5, 9), (5, 9), (5, 9))
    return story.at(92).sample()


def lag_grows(story: Story) -> dict[str, Any]:
    commits(story, (1, 5), (2, 9), (3, 14), (4, 19))
    return story.at(92).sample()


def lag_shrinks(story: Story) -> dict[str, Any]:
    commits(story, (1, 9), (5, 9), (6, 12), (7, 9))
    return story.at(92).sample()


def data_lost(story: Story) -> dict[str, Any]:
    story.end(9, start=7).commit(5)
    return story.at(1).sample()


def open_transaction(story: Story) -> dict[str, Any]:
    """The last stable offset does not move."""
    story.end(9, stable=5).commit(5)
    story.at(1).sample()
    return story.at(1_000).sample()


def pending_commit(story: Story) -> dict[str, Any]:
    story.end(5).commit(5).commit(6, producer=7)
    story.at(1).sample()
    return story.at(1_000).sample()


def near_retention(story: Story) -> dict[str, Any]:
    """The log start moves: records live for 100 s."""
    story.end(1).commit(1)
    story.sample()
    for second, start, end in ((10, 0, 5), (20, 0, 9), (110, 1, 90)):
        row = story.at(second).end(end, start=start).sample()
    return row


def too_slow(story: Story, seconds: range, *, deletes: bool = False) -> dict[str, Any]:
    """The log grows by 100 records/s, of which the group reads 90. Without `deletes`, the log keeps all records."""
    for second in seconds:
        story.at(second).end(10_000 + 100 * second, start=max(0, 100 * (second - 200)) if deletes else 0)
        story.commit(9_000 + 90 * second)
        row = story.at(second + 1).sample()
    return row


def falls_behind(story: Story) -> dict[str, Any]:
    return too_slow(story, range(0, 300, 20))


def falls_behind_near_deletion(story: Story) -> dict[str, Any]:
    """Records live for five minutes, and the oldest unread one is two minutes old."""
    return too_slow(story, range(0, 400, 20), deletes=True)


def offsets_expiring(story: Story) -> dict[str, Any]:
    """A group without members, six days after its last commit."""
    story.end(5).commit(5)
    story.log.group((), timestamp=story.log.now_ms)
    story.log.group((), group="billing", timestamp=story.log.now_ms)
    story.sample()
    return story.at(6.5 * 86_400).sample()


def rebalance_storm(story: Story) -> dict[str, Any]:
    story.end(5).commit(5)
    for generation in range(6):
        story.at(generation).log.group([member()], group="billing", generation=generation)
    return story.at(10).sample()


def reset_by_admin(story: Story) -> dict[str, Any]:
    story.log.group([member()], group="billing")
    story.end(50).commit(50)
    story.at(10).log.group((), group="billing", generation=6)
    story.sample()
    story.at(20).commit(20, epoch=-1)
    return story.at(21).sample()


def rewound_by_member(story: Story) -> dict[str, Any]:
    story.log.group([member()], group="billing")
    story.end(50).commit(50)
    story.at(1).sample()
    story.at(2).commit(20)
    story.at(3).commit(50)
    return story.at(4).sample()


def skew(story: Story) -> dict[str, Any]:
    for partition, lag in enumerate((2_000, 10, 0)):
        story.end(5_000, partition).commit(5_000, partition)
        story.end(5_000 + lag, partition)
    story.sample()
    return story.at(1).sample()


def hot_partition(story: Story) -> dict[str, Any]:
    """Partition 2 of three gets ten times the records of the others, and the group is three minutes behind there."""
    for second in range(0, 721, 60):
        for partition, rate in enumerate((10, 10, 100)):
            story.end(10_000 + rate * second, partition)
            story.commit(10_000 + rate * max(0, second - (180 if partition == 2 else 0)), partition)
        row = story.at(second).sample()
    (found,) = (each for each in row["findings"] if each["rule"] == "hot_partition")
    assert (found["partition"], found["amount"], found["total"], found["rate"]) == (2, 60_000, 72_000, 100.0)
    return row


def members_without_partitions(story: Story) -> dict[str, Any]:
    story.log.group([member(), member("m2", topics=())], group="billing")
    story.end(5).commit(5)
    story.at(1).sample()
    return story.at(400).sample()


def beyond_end(story: Story) -> dict[str, Any]:
    story.end(5).commit(9)
    return story.at(1).sample()


def no_permission(story: Story) -> dict[str, Any]:
    story.end(0, reason="topic_authorization_failed").commit(5)
    return story.at(1).sample()


SCENARIOS: dict[str, tuple[Scenario, Status]] = {
    "too_few_commits": (too_few_commits, Status.OK),
    "caught_up": (caught_up, Status.OK),
    "stopped": (stopped, Status.STOP),
    "went_back": (burrow_rewind, Status.REWIND),
    "was_caught_up": (had_no_lag, Status.OK),
    "stalled": (stalled, Status.STALL),
    "lag_fell": (lag_shrinks, Status.OK),
    "data_lost": (data_lost, Status.ERR),
    "hanging_transaction": (open_transaction, Status.ERR),
    "hanging_transaction ": (pending_commit, Status.ERR),
    "beyond_end": (beyond_end, Status.WARN),
    "falls_behind": (falls_behind, Status.WARN),
    "falls_behind ": (falls_behind_near_deletion, Status.ERR),
    "near_retention": (near_retention, Status.WARN),
    "offsets_expiring": (offsets_expiring, Status.WARN),
    "rebalance_storm": (rebalance_storm, Status.WARN),
    "reset": (reset_by_admin, Status.WARN),
    "rewound": (rewound_by_member, Status.WARN),
    "hot_partition": (hot_partition, Status.WARN),
    "skew": (skew, Status.WARN),
    "members_without_partitions": (members_without_partitions, Status.WARN),
    "unknown": (no_permission, Status.UNKNOWN),
}
#: Burrow's rule 0 is off by default; with it, windows of fewer than two commits are not evaluated.
SETTINGS = StatusSettings(minimum_complete=0.2)


def test_every_rule_has_a_scenario() -> None:
    rules = {rule.name for rule in (*BURROW_RULES, *GROUP_RULES)}
    assert {name.strip() for name in SCENARIOS} == rules - {"lag_never_fell"}, "growth is judged by falls_behind"


def test_growth_is_no_finding_of_burrow(tmp_path: Path) -> None:
    story = Story(str(tmp_path))
    row = lag_grows(story)
    assert (row["status"], row["rule"], row["burrow_status"], row["findings"]) == ("OK", None, "WARN", [])
    story.expect_same_from_histories()


@pytest.mark.parametrize("name", SCENARIOS)
def test_rules(name: str, tmp_path: Path) -> None:
    scenario, status = SCENARIOS[name]
    story = Story(str(tmp_path), SETTINGS if name == "too_few_commits" else StatusSettings())
    row = scenario(story)
    fired = {(row["rule"], row["status"]), *((finding["rule"], finding["status"]) for finding in row["findings"])}
    assert (name.strip(), str(status)) in fired, row
    story.restart()
    story.sample()
    # those before and after the restart
    story.expect_same_from_histories(last=2)
    assert check(str(tmp_path)) == []


def test_a_restart_keeps_the_trend(tmp_path: Path) -> None:
    """A new process knows the commits and log ends of the last quarter of an hour at once."""
    story, unbroken = (Story(str(tmp_path / name)) for name in ("restarted", "unbroken"))
    trend = "lag_slope_per_second, slope_window_seconds, produce_rate, consume_rate"
    columns = f"SELECT {trend}, falls_behind_since, falls_behind_since_is_latest FROM lag"
    for second in range(0, 400, 40):
        if second in (160, 320):
            story.restart()
        rows = []
        for each in (story, unbroken):
            status = too_slow(each, range(second, second + 1))
            rows.append((status["detail"], each.query(columns)))
        assert rows[0] == rows[1], second
    ((_, (row,)), _) = rows
    assert (row["lag_slope_per_second"], row["produce_rate"]) == (pytest.approx(10, rel=0.01), pytest.approx(100, rel=0.01))
    assert row["falls_behind_since"] <= story.at(60).clock()
    assert row["falls_behind_since_is_latest"]
    story.expect_same_from_histories()


def test_a_time_without_a_job_does_not_end_a_finding(tmp_path: Path) -> None:
    """It says by how much and since when. The first sample afterwards has it as before, with the same start."""
    story = Story(str(tmp_path))
    before = falls_behind(story)
    assert before["rule"] == "falls_behind"
    (found,) = (finding for finding in before["findings"] if finding["rule"] == "falls_behind")
    assert (found["topic"], found["partition"], found["status"]) == ("orders", 0, "WARN")
    since = f"{story.at(30).clock():%H:%M}"
    assert found["detail"].startswith(f"The group falls behind by 10.0 records/s in orders-0 since {since} UTC at the latest; ")
    earlier = found["since"], "grew_before"
    assert (found["since"], found["reason"]) == earlier, "the lag grew from the first sample on"
    story.restart()
    for second in (30_000, 30_060, 30_120, 30_240):
        row = too_slow(story, range(second, second + 1))
        (later,) = (finding for finding in row["findings"] if finding["rule"] == "falls_behind")
        assert (later["since"], later["reason"]) == earlier, second
    story.expect_same_from_histories()


def test_a_group_is_not_found_before_its_first_record_and_after_its_deletion(tmp_path: Path) -> None:
    story = Story(str(tmp_path))
    story.end(5).commit(5, group="other").sample()
    story.at(10).log.group([member()], group="billing")
    story.at(11).commit(5).sample()
    story.at(20).log.offset_tombstone(0, group="billing", topic="orders")
    story.log.group_tombstone("billing")
    assert story.at(21).sample() == {}
    story.at(30).log.group([member()], group="billing")
    assert story.sample()["status"] == "OK"

    def status(seconds: float, group: str = "billing") -> dict[str, Any]:
        snapshot, at = Snapshot.open(story.root), story.at(seconds).clock()
        row: dict[str, Any] = group_status_at(snapshot, at, [group]).to_pylist()[0]
        is_listed = group in group_status_at(snapshot, at)["group_id"].to_pylist()
        assert is_listed == (row["status"] != "NOTFOUND")
        return row

    assert [status(seconds)["status"] for seconds in (5, 12, 22, 31)] == ["NOTFOUND", "OK", "NOTFOUND", "OK"]
    assert status(22)["rule"] is None
    assert status(31, "never")["status"] == "NOTFOUND"


def test_groups_and_partitions_have_their_totals(tmp_path: Path) -> None:
    story = Story(str(tmp_path))
    for partition, (offset, end) in enumerate(((5, 9), (5, 25), (5, 5))):
        story.commit(offset, partition).end(end, partition)
    story.end(0, 3, reason="leader_not_available").commit(1, 3)
    story.log.group([member(topics=("payments",))], group="idle")
    row = story.at(1).sample()
    assert (row["partitions"], row["unknown_partitions"], row["total_lag"], row["complete"]) == (4, 1, 24, 0.0)
    assert (row["max_lag"], row["max_lag_topic"], row["max_lag_partition"]) == (20, "orders", 1)
    (idle,) = Snapshot.open(story.root).query("SELECT * FROM group_status WHERE group_id = 'idle'").to_pylist()
    assert (idle["status"], idle["rule"], idle["partitions"], idle["total_lag"], idle["max_lag"]) == ("OK", None, 0, None, None)
    windows = Snapshot.open(story.root).query("SELECT * FROM partition_status ORDER BY partition").to_pylist()
    assert [(w["partition"], w["current_lag"], w["end_offset"], w["start_lag"]) for w in windows] == [
        (0, 4, 5, None),
        (1, 20, 5, None),
        (2, 0, 5, None),
    ]
    story.expect_same_from_histories()


def test_lag_is_unknown_while_the_job_catches_up(tmp_path: Path) -> None:
    """A batch that does not reach the end of the log has nothing to compare with; the next one that does has a lag again."""
    story = Story(str(tmp_path))
    story.end(9).commit(5).sample()
    story.at(40).commit(7).batch()
    writer = story.writer()
    assert writer.last is not None
    prepared = story.sampling.prepare_unknown(story.root, writer.last)
    assert prepared is not None
    story.sampling.write(writer, prepared)
    columns = "SELECT group_offset, lag, lag_reason, status FROM lag JOIN group_status USING (group_id)"
    assert Snapshot.open(story.root).query(columns).to_pylist() == [
        {"group_offset": 7, "lag": None, "lag_reason": "catching_up", "status": "UNKNOWN"}
    ]
    story.at(60).end(12).sample()
    (row,) = Snapshot.open(story.root).query(columns).to_pylist()
    assert (row["lag"], row["status"]) == (5, "OK")
    assert check(str(tmp_path)) == []


def test_a_window_is_the_same_after_a_restart(tmp_path: Path) -> None:
    query = "SELECT * FROM partition_status"
    story = Story(str(tmp_path))
    commits(story, *((offset, offset + 3) for offset in range(14)))
    before = Snapshot.open(story.root).query(query).drop(["batch_id"]).to_pylist()
    story.restart()
    story.sample()
    after = Snapshot.open(story.root).query(query).drop(["batch_id"]).to_pylist()
    assert after == before
    assert (after[0]["window_rows"], after[0]["complete"], after[0]["start_offset"], after[0]["end_offset"]) == (10, 1.0, 4, 13)
    stuck = Snapshot.open(story.root).query("SELECT stuck_seconds FROM lag").to_pylist()
    assert stuck == [{"stuck_seconds": 1.0}]


def test_a_simple_group_has_no_membership_now_and_later(tmp_path: Path) -> None:
    """It has the name of a group that had members and was deleted."""
    story = Story(str(tmp_path))
    story.log.group([member("m1")], group="billing", generation=1)
    story.log.group_tombstone("billing")
    story.end(9).commit(4).sample()
    found = story.at(700).sample()
    assert (found["rule"], found["findings"][0]["ownership"]) == ("stopped", None)
    story.expect_same_from_histories()


steps = st.lists(
    st.tuples(
        st.sampled_from(
            ["commit", "commit", "commit", "end", "end", "members", "deleted", "tombstone", "sample", "sample", "restart"]
        ),
        st.integers(0, 1),
        st.integers(0, 12),
        st.sampled_from([1, 30, 700]),
    ),
    min_size=4,
    max_size=24,
)


@pytest.mark.parametrize("examples", [5, pytest.param(60, marks=pytest.mark.slow)])
def test_any_story_has_the_same_status_later(tmp_path_factory: pytest.TempPathFactory, examples: int) -> None:
    phases = [Phase.explicit, Phase.generate]
    check_story = settings(max_examples=examples, deadline=None, phases=phases)(given(steps)(has_the_same_status_later))
    check_story(tmp_path_factory)


def has_the_same_status_later(tmp_path_factory: pytest.TempPathFactory, written: list[tuple[str, int, int, int]]) -> None:
    story = Story(str(tmp_path_factory.mktemp("story")), StatusSettings(skew_lag=5, skew_partitions=2, storm_rebalances=3))
    story.end(6, 0).end(6, 1).commit(3, 0).sample()
    now = 0
    for kind, partition, number, wait in (*written, ("sample", 0, 0, 1)):
        now += wait
        story.at(now)
        match kind:
            case "commit":
                story.commit(number, partition, epoch=-1 if number % 3 else 2)
            case "end":
                story.end(number, partition, start=number // 3, stable=number - number % 2)
            case "members":
                story.log.group(
                    [member(f"m{k}", topics=("orders",) if k else ()) for k in range(number % 3)], group="billing", generation=now
                )
            case "deleted":
                story.log.group_tombstone("billing")
            case "tombstone":
                story.log.offset_tombstone(partition, group="billing", topic="orders")
            case "sample":
                story.sample()
            case "restart":
                story.restart()
    story.expect_same_from_histories()


def test_workers_of_connect_have_no_known_partitions(tmp_path: Path) -> None:
    story = Story(str(tmp_path))
    story.log.group([member(), member("m2")], group="billing", protocol_type="connect", protocol="sessioned")
    story.end(5).commit(5)
    story.at(1).sample()
    row = story.at(400).sample()
    assert (row["status"], row["rule"]) == ("OK", "caught_up")
    story.expect_same_from_histories()


def test_the_first_sample_in_a_folder_of_an_earlier_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last batch has no `membership_history`; the members of now are known."""
    known = tuple(name for name in definitions.WRITE_ORDER if name not in ("membership_history", "ownership_history"))
    with monkeypatch.context() as patch:
        patch.setattr(definitions, "WRITE_ORDER", known)
        earlier = Story(str(tmp_path))
        earlier.log.group([member(), member("m2", topics=())], group="billing")
        earlier.end(5).commit(5).batch()
    row = earlier.at(400).sample()
    assert "membership_history" not in Snapshot.open(earlier.root, 0).tables
    assert (row["status"], row["rule"]) == ("WARN", "members_without_partitions")
    earlier.expect_same_from_histories()


def test_a_past_status_has_the_settings_of_its_time(tmp_path: Path) -> None:
    """A job with other settings follows; the statuses that it did not write keep the limits of the job before it."""
    story = Story(str(tmp_path), StatusSettings(least_silence_ms=300_000, few_commits=1))
    for second in range(0, 241, 30):
        story.at(second).end(100 + second)
        if second <= 60:
            story.commit(second)
        before = story.sample()
    patient = story.writer().last
    assert before["findings"] == []
    story.settings = StatusSettings(least_silence_ms=30_000, few_commits=1)
    story.restart()
    after = story.at(270).end(370).sample()
    assert [finding["rule"] for finding in after["findings"]] == ["stopped"]
    hasty = story.writer().last
    assert patient is not None
    assert hasty is not None
    newest = Snapshot(TableStore(story.root), hasty)
    for batch, written in ((patient, before), (hasty, after)):
        computed = ComputedStatuses(newest, batch).of(["billing"])["billing"]
        assert computed["findings"] == written["findings"], batch.batch_id
