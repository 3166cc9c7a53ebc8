"""Status of groups: each of Burrow's rules, each rule of ours and each status, by a scenario that causes it. Times in seconds."""

import pytest
from expecting import expect
from group_scenarios import ORDERS, Scenario
from model_of_lag import LagRow, TopicFacts
from model_of_status import ExpiryEvent, PendingSpan, commit_points, evidence_at, group_status

from coordinator_core.health import (
    BURROW_NUMBERS,
    BURROW_RULES,
    GROUP_RULES,
    CommitEvent,
    CommitPoint,
    Finding,
    GroupStatus,
    MembershipEvent,
    PendingCommit,
    Status,
    StatusSettings,
    offset_jumps,
    text_of,
)
from coordinator_core.health.status import Ownership

DAY = 86_400
#: Ten commits from second 0 to 90, one in ten seconds, and a log that grows by 10 in that time.
TICKS = range(0, 100, 10)


def committing(offsets: list[int], ends: list[int]) -> Scenario:
    """A commit and a log end for each tick; the end is sampled just before the commit."""
    scenario = Scenario()
    for at, offset, end in zip(TICKS, offsets, ends, strict=True):
        scenario.end(at, end).commit(at, offset)
    return scenario


GROWING = [100 + at for at in TICKS]
BEHIND = [end - 20 for end in GROWING]

BURROW_CASES: tuple[tuple[str, Scenario, float, str, Status], ...] = (
    ("a window that is not full enough", Scenario().end(0, 100).commit(0, 50), 60, "burrow_0", Status.OK),
    ("caught up", committing(GROWING, GROWING), 95, "burrow_1", Status.OK),
    ("caught up and silent for hours", committing(GROWING, GROWING), 95 + DAY / 2, "burrow_1", Status.OK),
    (
        "of commits older than a day only the last one counts",
        committing(GROWING, GROWING),
        95 + DAY,
        "burrow_0",
        Status.OK,
    ),
    ("silent for longer than the window", committing(BEHIND, GROWING), 181, "burrow_2", Status.STOP),
    ("silent for as long as the window", committing(BEHIND, GROWING), 180, "burrow_6", Status.WARN),
    (
        "silent, but caught up at a recent sample: rule 2 waits",
        committing(GROWING, GROWING).end(181, 300),
        182,
        "burrow_4",
        Status.OK,
    ),
    ("went back and has not caught up", committing([*BEHIND[:7], 60, 65, 70], GROWING), 95, "burrow_3", Status.REWIND),
    (
        "went back and made up for it: the lag did not always grow",
        committing([*BEHIND[:4], 40, *BEHIND[5:]], GROWING),
        95,
        "burrow_7",
        Status.OK,
    ),
    ("behind now, but not at one commit of the window", committing([100, *BEHIND[1:]], GROWING), 95, "burrow_4", Status.OK),
    ("commits one offset all the time", committing([50] * 10, GROWING), 95, "burrow_5", Status.STALL),
    ("commits, but the lag never falls", committing([50 + k for k in range(10)], GROWING), 95, "burrow_6", Status.WARN),
    ("catches up", committing([20 + 11 * k for k in range(10)], GROWING), 95, "burrow_7", Status.OK),
)


@pytest.mark.parametrize(("scenario", "at", "rule", "status"), [c[1:] for c in BURROW_CASES], ids=[c[0] for c in BURROW_CASES])
def test_rules_of_burrow(scenario: Scenario, at: float, rule: str, status: Status) -> None:
    settings = StatusSettings(minimum_complete=0.5)
    found = group_status(scenario.history(), round(at * 1000), settings)
    assert [(p.rule, p.status) for p in found.partitions] == [(rule, status)]
    folded = status if status.severity < Status.ERR.severity else Status.ERR
    assert found.burrow_status is folded


def test_every_rule_of_burrow_has_a_case() -> None:
    assert {case[3] for case in BURROW_CASES} == {rule.burrow_name for rule in BURROW_RULES}


def test_the_window_of_a_rule_is_reported() -> None:
    found = group_status(committing([50] * 10, GROWING).history(), 95_000)
    (partition,) = found.partitions
    assert (found.status, found.rule, found.partition) == (Status.STALL, "stalled", ORDERS[0])
    assert (found.window_rows, found.window_seconds) == (10, 90.0)
    assert partition.start == CommitPoint(50, 0, 50)
    assert partition.end == CommitPoint(50, 90_000, 140)
    assert (partition.current_lag, found.total_lag, partition.complete, found.complete) == (140, 140, 1.0, 1.0)
    assert found.max_lag == partition


def test_commits_repeat_an_offset_since_the_one_that_reached_it() -> None:
    """Not since the first sample that shows a record after it. If it was idle before: since a record may have been there."""

    def since(reached: int) -> int | None:
        scenario = Scenario().members(0, 1).end(4, 50).end(40, 90).end(140, 190)
        for at in range(reached, 140, 10):
            scenario.commit(at, 50)
        found = group_status(scenario.history(), 141_000)
        assert found.rule == "stalled"
        return found.findings[0].since_ms

    assert since(reached=6) == 6_000
    assert since(reached=0) == 4_000


def test_allowed_lag_counts_as_caught_up() -> None:
    found = group_status(committing(BEHIND, GROWING).history(), 181_000, StatusSettings(allowed_lag=20))
    assert [p.rule for p in found.partitions] == ["burrow_1"]


def test_a_removed_offset_starts_a_new_window() -> None:
    history = committing([50] * 10, GROWING).commit(95, None).commit(96, 50).history()
    assert [p.window_rows for p in group_status(history, 97_000).partitions] == [1]
    assert group_status(history, 95_000).partitions == ()


def test_commits_closer_than_the_least_distance_count_as_one() -> None:
    points = [CommitPoint(offset, at, None) for offset, at in ((1, 0), (2, 900), (3, 1_000), (4, 1_500))]
    kept = commit_points(points, StatusSettings(min_distance_ms=1_000))
    assert kept == (CommitPoint(2, 0, None), CommitPoint(4, 1_000, None))


def test_lag_at_a_commit_before_the_first_sample_is_unknown() -> None:
    history = Scenario().commit(0, 50).end(5, 100).commit(10, 60).end(15, 200).history()
    (partition,) = group_status(history, 16_000).partitions
    assert partition.start == CommitPoint(50, 0, None)
    assert partition.end == CommitPoint(60, 10_000, 40)


# -- rules of ours


def healthy(log_start: int = 0) -> Scenario:
    """Partition 0 is caught up at second 95; nothing fires."""
    return committing(GROWING, GROWING).end(95, 190, log_start=log_start).members(0, 1)


def fired(scenario: Scenario, at: float = 96) -> GroupStatus:
    return group_status(scenario.history(), round(at * 1000))


def findings(status: GroupStatus, rule: str) -> list[Finding]:
    return [finding for finding in status.findings if finding.rule == rule]


def test_a_healthy_group_is_ok() -> None:
    status = fired(healthy())
    assert (status.status, status.rule, status.findings, status.burrow_status) == (Status.OK, "caught_up", (), Status.OK)


def test_an_unknown_group_is_not_found() -> None:
    status = fired(Scenario())
    assert (status.status, status.rule, status.burrow_status) == (Status.NOTFOUND, None, Status.NOTFOUND)
    assert (status.complete, status.total_lag, status.max_lag) == (0.0, 0, None)
    assert fired(Scenario().members(0, 1).members(5, 0, state="Dead")).status is Status.NOTFOUND


def test_a_commit_beyond_the_end() -> None:
    status = fired(Scenario().end(0, 5).commit(0, 9), 1)
    assert (status.status, status.rule, status.partition) == (Status.WARN, "beyond_end", ORDERS[0])
    assert status.detail == "The committed offset of orders-0 is beyond the log end by 4 offsets."
    assert [(each.rule, each.caused_by) for each in status.findings] == [("beyond_end", None), ("unknown", "beyond_end")]
    assert not findings(fired(Scenario().end(0, 9).commit(0, 9), 1), "beyond_end")


def test_a_group_without_offsets_is_ok() -> None:
    status = fired(Scenario().members(0, 1))
    assert (status.status, status.rule) == (Status.OK, None)


def test_data_lost() -> None:
    status = fired(committing(BEHIND, GROWING).end(95, 190, log_start=180))
    assert status.status is Status.ERR
    (finding,) = findings(status, "data_lost")
    assert (finding.status, finding.partition, finding.amount, finding.since_ms) == (Status.ERR, ORDERS[0], 10, 95_000)
    assert finding.detail == "Retention deleted 10 records of orders-0 before the group read them, first seen at 00:01 UTC."
    assert not findings(status, "near_retention")


def test_near_retention() -> None:
    scenario = committing([100] * 10, GROWING)
    scenario.facts["orders"] = TopicFacts(retention_ms=110_000)
    assert not findings(fired(scenario, 85), "near_retention")
    (finding,) = findings(fired(scenario), "near_retention")
    assert (finding.status, finding.partition, finding.detail) == (
        Status.WARN,
        ORDERS[0],
        "Retention deletes unread records of orders-0 from 00:01 UTC on; 90 records wait, the first of them since 00:00 UTC.",
    )
    assert finding.due_ms == 110_000


def test_offsets_about_to_expire() -> None:
    scenario = healthy()
    scenario.expiries += [ExpiryEvent(0, ORDERS[0], None), ExpiryEvent(50_000, ORDERS[0], 96_000 + DAY * 1000)]
    assert not findings(fired(scenario, 95), "offsets_expiring")
    (finding,) = findings(fired(scenario), "offsets_expiring")
    assert (finding.status, finding.detail) == (Status.WARN, "The committed offset of orders-0 will expire at 2 Jan, 00:01 UTC.")
    (overdue,) = findings(fired(scenario, 97 + DAY), "offsets_expiring")
    assert overdue.detail == "The committed offset of orders-0 expired at 00:01 UTC, and the broker removes what has expired."
    assert finding.since_ms is None, "the group has members"
    (left,) = findings(fired(scenario.members(60, 0, state="Empty")), "offsets_expiring")
    assert left.since_ms == 60_000
    assert text_of([left._replace(ownership=Ownership.NO_MEMBERS)], 96_000).detail == (
        "The committed offset of orders-0 will expire at 2 Jan, 00:01 UTC; the group has had no members since 00:01 UTC."
    )


def test_rebalance_storm() -> None:
    scenario = healthy().rebalance(0, 20, 40, 60, 80)
    assert not findings(fired(scenario, 79), "rebalance_storm")
    status = fired(scenario)
    assert (status.status, status.rule, status.window_rows, status.window_seconds) == (Status.WARN, "rebalance_storm", 5, 600.0)
    assert status.detail == "5 rebalances since 00:00 UTC."
    assert not findings(fired(scenario, 600), "rebalance_storm"), "the first rebalance is 600 s old"


def test_a_storm_starts_after_the_last_calm() -> None:
    scenario = healthy().rebalance(0, 130, 150, 170, 190, 210)
    (finding,) = findings(fired(scenario, 300), "rebalance_storm")
    assert (finding.window_rows, finding.since_ms) == (5, 130_000)
    (long,) = findings(fired(healthy().rebalance(0, *range(200, 2_000, 100)), 2_000), "rebalance_storm")
    assert (long.window_rows, long.since_ms) == (18, 200_000), "it began before the window of the rule"
    (slow,) = findings(fired(healthy().rebalance(0, 125, 250, 375, 500), 550), "rebalance_storm")
    assert (slow.window_rows, slow.since_ms) == (5, 0), "no gap is shorter than a fifth of the window"


def test_a_storm_that_polls_have_seen_has_at_least_so_many_rebalances() -> None:
    scenario = healthy().rebalance(0, 20, 40, 60, 80)
    scenario.is_polled = True
    (finding,) = findings(fired(scenario), "rebalance_storm")
    assert (finding.detail, finding.reason) == ("At least 5 rebalances since 00:00 UTC.", "seen_by_polls")


def test_events_that_polls_have_seen_were_at_their_time_or_earlier() -> None:
    """Offsets may have moved on between the poll before and the event."""
    stopped = committing(GROWING, GROWING).end(400, 900).members(0, 1)
    stopped.is_polled = True
    (finding,) = findings(fired(stopped, 400), "stopped")
    assert (finding.reason, finding.since_ms) == ("seen_by_polls", 90_000)
    assert finding.detail.startswith("No commits on orders-0 since 00:01 UTC at the latest;")
    reset = healthy().members(92, 0, state="Empty").commit(93, 950, epoch=None).commit(94, 20, epoch=None)
    reset.is_polled = True
    first, second = findings(fired(reset), "reset")
    assert first.consequence == "The group skips at most 760 offsets."
    assert second.detail == "An administrator moved orders-0 from 950 or later to 20 no later than 00:01 UTC."
    assert second.consequence == "The group reads at least 930 offsets again."
    idle = healthy().members(10, 3, assigned=1)
    idle.is_polled = True
    (finding,) = findings(fired(idle, 310), "members_without_partitions")
    assert finding.detail == "2 of 3 members have had no partitions since 00:00 UTC at the latest."


def test_members_without_partitions() -> None:
    scenario = healthy().members(10, 3, assigned=1)
    assert not findings(fired(scenario, 309), "members_without_partitions"), "an assignment may be on its way"
    (finding,) = findings(fired(scenario, 310), "members_without_partitions")
    assert (finding.status, finding.window_rows, finding.window_seconds) == (Status.WARN, 3, 300.0)
    assert finding.detail == "2 of 3 members have had no partitions since 00:00 UTC."
    named = healthy()
    named.memberships.append(MembershipEvent(10_000, "Stable", 3, 2, idle_client="billing-3", idle_host="/10.0.0.9"))
    (of_one,) = findings(fired(named, 310), "members_without_partitions")
    assert of_one.detail == "1 of 3 members (billing-3 on 10.0.0.9) has had no partitions since 00:00 UTC."
    assert (of_one.client_id, of_one.member_host) == ("billing-3", "/10.0.0.9")
    rebalancing = healthy().members(10, 3, assigned=1, state="Assigning")
    assert not findings(fired(rebalancing, 310), "members_without_partitions")
    scenario.memberships[-1] = scenario.memberships[-1]._replace(knows_partitions=False)
    assert not findings(fired(scenario, 310), "members_without_partitions")


def test_skew() -> None:
    scenario = Scenario()
    for partition, offset in enumerate((99_000, 99_950, 100_000)):
        scenario.end(0, 100_000, partition).commit(1, offset, partition)
    (finding,) = findings(fired(scenario, 2), "skew")
    assert (finding.status, finding.partition, finding.window_rows) == (Status.WARN, ORDERS[0], 3)
    assert finding.detail == "1,000 of 1,050 records of lag are on orders-0, one of 3 partitions."
    even = scenario.commit(3, 99_000, 1)
    assert not findings(fired(even, 4), "skew"), "two partitions share the lag"


def test_the_start_of_skew_is_the_first_sample_that_showed_the_first_unread_record() -> None:
    scenario = Scenario()
    for partition, offset in enumerate((99_000, 100_000, 100_000)):
        scenario.commit(1, offset, partition).end(2, 99_000, partition)
        scenario.end(60, 99_500, partition).end(90, 100_000, partition)
    (finding,) = findings(fired(scenario, 91), "skew")
    assert finding.since_ms == 60_000
    assert (
        finding.detail == "1,000 of 1,000 records of lag are on orders-0, one of 3 partitions, the first of them since 00:01 UTC."
    )


def test_the_first_sample_of_a_record_that_waits_is_its_start() -> None:
    scenario = Scenario()
    for partition, offset in enumerate((99_000, 100_000, 100_000)):
        scenario.commit(1, offset, partition).end(2, 99_000, partition).end(60, 100_000, partition)
    (finding,) = findings(fired(scenario, 61), "skew")
    assert finding.since_ms == 60_000


@pytest.mark.parametrize("partitions", [1, 2])
def test_one_or_two_partitions_are_not_skewed(partitions: int) -> None:
    scenario = Scenario()
    for partition in range(partitions):
        scenario.end(0, 100_000, partition).commit(1, 0 if partition == 0 else 100_000, partition)
    assert not findings(fired(scenario, 2), "skew")


def test_a_reset_by_an_admin_has_from_and_to() -> None:
    scenario = healthy().members(92, 0, state="Empty").commit(93, 950, epoch=None).commit(94, 20, epoch=None)
    first, second = findings(fired(scenario), "reset")
    assert (first.from_offset, first.to_offset, first.by) == (190, 950, "admin")
    assert (second.from_offset, second.to_offset, second.by, second.status) == (950, 20, "admin", Status.WARN)
    assert (second.partition, second.window_seconds, second.since_ms) == (ORDERS[0], 3600.0, 94_000)
    assert second.detail == "An administrator moved orders-0 from 950 to 20 at 00:01 UTC."
    assert second.consequence == "The group reads 930 offsets again."
    assert not findings(fired(scenario, 94 + 3600), "reset")


def test_a_member_that_seeks_back() -> None:
    (finding,) = findings(fired(healthy().commit(93, 20)), "rewound")
    assert (finding.from_offset, finding.to_offset, finding.by) == (190, 20, "member")


@pytest.mark.parametrize(
    ("commit", "by"),
    [
        (CommitEvent(2, ORDERS[0], 5), "admin"),
        (CommitEvent(2, ORDERS[0], 5, leader_epoch=3), "unknown"),
        (CommitEvent(2, ORDERS[0], 5, metadata="note"), "unknown"),
        (CommitEvent(2, ORDERS[0], 5, transactional=True), "unknown"),
    ],
)
def test_an_admin_commits_to_an_empty_group_as_the_tools_do(commit: CommitEvent, by: str) -> None:
    history = Scenario().members(0.001, 0, state="Empty").history()
    (jump,) = offset_jumps((CommitEvent(1, ORDERS[0], 9), commit), history.memberships)
    assert (jump.by, jump.at_ms) == (by, 2)


@pytest.mark.parametrize(
    ("batch", "log_offset", "by"),
    [(1, 7, []), (0, 9, []), (1, 9, ["admin"]), (2, 1, ["admin"]), (1, None, [])],
    ids=["before", "an earlier batch", "after", "a later batch", "a poll"],
)
def test_a_member_commits_and_leaves_in_one_millisecond(batch: int, log_offset: int | None, by: list[str]) -> None:
    """The log has an order within it. A poll finds the commit and the departure at once, so nobody knows which came first."""
    memberships = [
        MembershipEvent(1, "Stable", 1, 1, batch_id=0, log_offset=2),
        MembershipEvent(100, "Empty", 0, 0, batch_id=1, log_offset=None if log_offset is None else 8),
    ]
    commits = [
        CommitEvent(1, ORDERS[0], 421, batch_id=0, log_offset=3),
        CommitEvent(100, ORDERS[0], 443, batch_id=batch, log_offset=log_offset),
    ]
    assert [str(jump.by) for jump in offset_jumps(commits, memberships)] == by


@pytest.mark.parametrize(
    ("members", "by"),
    [
        ([], "unknown"),
        ([(0, 2)], "member"),
        ([(0, 2), (1, 0), (1, 1)], "unknown"),
        ([(0, 0), (1, 1)], "unknown"),
        ([(0, 0)], "admin"),
    ],
)
def test_a_rewind_among_several_commits_of_a_batch(members: list[tuple[int, int]], by: str) -> None:
    """Only the lowest and the last commit are known: the client of the lowest one is unknown if members came or went."""
    events = [MembershipEvent(100, "Stable" if count else "Empty", count, count, batch_id=batch) for batch, count in members]
    last = CommitEvent(3_000, ORDERS[0], 70, batch_id=1, of_several=True)
    (jump,) = offset_jumps([CommitEvent(1_000, ORDERS[0], 80, batch_id=0), *last.after_rewind(50)], events)[:1]
    assert (jump.from_offset, jump.to_offset, str(jump.by), jump.is_least) == (80, 50, by, True)


def test_a_jump_from_an_offset_that_is_not_known_exactly() -> None:
    scenario = healthy()
    scenario.commits.append(CommitEvent(93_000, ORDERS[0], 20, leader_epoch=3, of_several=True))
    (finding,) = findings(fired(scenario), "rewound")
    assert finding.detail == "A member moved orders-0 from 190 or later to 20 at 00:01 UTC."
    assert finding.consequence == "The group reads at least 170 offsets again."


@pytest.mark.parametrize("last", [1_145, 1_207])
@pytest.mark.parametrize("before", [1_108, 1_145, None])
def test_a_rewind_behind_other_commits_of_its_batch(last: int, before: int | None) -> None:
    """The position went from 1,108 to 1,205, back to 1,145 and on within one batch, which does not know the 1,205."""
    commits = [] if before is None else [CommitEvent(1_000, ORDERS[0], before, leader_epoch=3, batch_id=0)]
    row = CommitEvent(9_000, ORDERS[0], last, leader_epoch=3, batch_id=1, of_several=True)
    (jump,) = offset_jumps([*commits, *row.after_rewind(1_145)], [MembershipEvent(100, "Stable", 1, 1)])
    assert (jump.from_offset, jump.to_offset, str(jump.by), jump.is_least) == (1_146, 1_145, "member", True)
    scenario = healthy()
    scenario.commits += [event._replace(at_ms=93_000) for event in row.after_rewind(1_145)[:1]]
    (finding,) = findings(fired(scenario), "rewound")
    assert (finding.from_offset, finding.to_offset) == (None, 1_145)
    assert finding.detail == "A member moved orders-0 back to 1,145 at 00:01 UTC."
    assert finding.consequence == "The group reads some offsets again."


def test_members_of_the_same_millisecond_count() -> None:
    history = Scenario().members(1, 0, state="Empty").members(2, 1).history()
    (jump,) = offset_jumps([CommitEvent(1_000, ORDERS[0], 9), CommitEvent(2_000, ORDERS[0], 5)], history.memberships)
    assert jump.by == "member"


def test_a_position_has_moved_when_it_returned_to_an_earlier_offset() -> None:
    history = Scenario().end(0, 5).end(5, 10).commit(10, 5).commit(20, 6).commit(30, 5).commit(40, 5).end(50, 10).history()
    (partition,) = evidence_at(history, 50_000, StatusSettings()).partitions
    assert expect(LagRow, partition.lag).stuck_seconds == 20.0


def test_a_group_that_never_had_members_is_rewound_by_an_unknown_party() -> None:
    """Simple consumers (assign) commit without membership; only a move back is a jump."""
    (jump,) = offset_jumps([CommitEvent(at, ORDERS[0], offset) for at, offset in ((1, 9), (2, 5), (3, 50))], ())
    assert (jump.from_offset, jump.to_offset, jump.by) == (9, 5, "unknown")


def test_a_commit_after_a_removal_is_no_jump() -> None:
    assert offset_jumps([CommitEvent(at, ORDERS[0], offset) for at, offset in ((1, 9), (2, None), (3, 5))], ()) == ()


def test_the_lowest_commit_of_a_batch_is_an_event_of_its_own() -> None:
    row = CommitEvent(2, ORDERS[0], 12)
    assert row.after_rewind(3) == (row._replace(offset=3, is_lowest=True, went_back=True), row)
    assert row.after_rewind(12) == (row._replace(went_back=True),)
    assert row.after_rewind(13) == row.after_rewind(None) == (row,)
    removal = CommitEvent(2, ORDERS[0], None)
    assert removal.after_rewind(3) == (removal,)


def test_a_pending_commit_of_a_hanging_transaction() -> None:
    scenario = healthy().end(1000, 190)
    scenario.pending.append(PendingSpan(PendingCommit(95_000, ORDERS[3], producer_id=7)))
    assert not findings(fired(scenario, 995), "hanging_transaction")
    (finding,) = findings(fired(scenario, 996), "hanging_transaction")
    assert (finding.status, finding.partition, finding.window_seconds) == (Status.ERR, ORDERS[3], 901.0)
    assert finding.detail == "A transaction of producer 7, open since 00:01 UTC, blocks offset commits on orders-3."
    assert (finding.since_ms, finding.transactional_id) == (95_000, None)
    ended = healthy().end(1000, 190)
    ended.pending.append(PendingSpan(PendingCommit(95_000, ORDERS[3]), 990_000))
    assert not findings(fired(ended, 996), "hanging_transaction")


def test_a_group_of_pending_commits_alone_exists() -> None:
    scenario = Scenario()
    scenario.pending.append(PendingSpan(PendingCommit(0, ORDERS[0])))
    assert fired(scenario).status is Status.OK


def test_a_topic_whose_last_stable_offset_holds_the_group() -> None:
    scenario = Scenario().end(0, 6, stable=6).end(10, 8, stable=6).end(20, 9, stable=6).commit(21, 6).end(915, 30, stable=6)
    assert not findings(fired(scenario, 910), "hanging_transaction")
    (finding,) = findings(fired(scenario, 920), "hanging_transaction")
    assert (finding.partition, finding.window_seconds) == (ORDERS[0], 910.0)
    assert finding.detail == "A transaction, open since 00:00 UTC at least, blocks orders-0; 24 records wait."
    assert (finding.since_ms, finding.transactional_id) == (10_000, None)


@pytest.mark.parametrize(
    ("scenario", "at", "detail"),
    [
        (healthy().end(95.5, None), 96, "The lag of orders-0 is unknown: the partition has no leader."),
        (Scenario().commit(0, 5), 1, "The lag of orders-0 is unknown: there is no sample of log ends yet."),
        (healthy(), 696, "The lag of orders-0 is unknown since 00:01 UTC: the newest sample is of that time."),
    ],
)
def test_unknown_lag_is_a_status_of_its_own(scenario: Scenario, at: float, detail: str) -> None:
    status = fired(scenario, at)
    assert (status.status, status.rule, status.detail) == (Status.UNKNOWN, "unknown", detail)
    assert status.burrow_status in {Status.OK, Status.NOTFOUND, Status.WARN}


def test_the_first_sample_is_not_unknown() -> None:
    assert not findings(fired(Scenario().end(0, 5).commit(0, 3), 1), "unknown")


def test_a_group_that_reads_nine_of_ten_records() -> None:
    scenario = Scenario()
    for second in range(0, 420, 20):
        scenario.end(second, 100 * second).commit(second + 1, 90 * second)
    assert not findings(fired(scenario, 100), "falls_behind")
    (finding,) = findings(fired(scenario, 405), "falls_behind")
    assert (finding.status, finding.partition) == (Status.WARN, ORDERS[0])
    assert finding.detail.startswith("The group falls behind by 10.0 records/s in orders-0 since 00:0")
    stopped = scenario.end(1_000, 100_000)
    assert not findings(fired(stopped, 1_001), "falls_behind"), "without commits it has stopped"


def test_every_rule_of_ours_has_a_test() -> None:
    """Named by the calls above; a new rule needs a scenario here."""
    assert [rule.name for rule in GROUP_RULES] == [
        "data_lost",
        "hanging_transaction",
        "beyond_end",
        "falls_behind",
        "near_retention",
        "offsets_expiring",
        "rebalance_storm",
        "reset",
        "rewound",
        "hot_partition",
        "skew",
        "members_without_partitions",
        "unknown",
    ]


# -- the status of a group


def test_the_cause_of_the_most_severe_finding_decides() -> None:
    """Partition 0 was rewound by a member, partition 1 lost data, an expiry is near: REWIND is the most severe."""
    scenario = committing([*BEHIND[:7], 60, 65, 70], GROWING).end(94, 190, 1, log_start=100).commit(94, 50, 1)
    scenario.expiries.append(ExpiryEvent(0, ORDERS[0], 100_000))
    status = fired(scenario)
    assert (status.status, status.rule, status.partition) == (Status.REWIND, "rewound", ORDERS[0])
    assert [(finding.rule, finding.caused_by) for finding in status.findings[:2]] == [("rewound", None), ("went_back", "rewound")]
    assert {"data_lost", "offsets_expiring", "rewound"} <= {finding.rule for finding in status.findings}
    assert status.burrow_status is Status.ERR


def test_a_group_is_complete_by_its_full_windows() -> None:
    status = fired(healthy().end(94, 100, 1).commit(94, 100, 1))
    assert [p.complete for p in status.partitions] == [1.0, 0.1]
    assert status.complete == 0.5


def test_statuses_in_their_order_and_with_the_numbers_of_burrow() -> None:
    assert [s.value for s in Status] == ["NOTFOUND", "OK", "UNKNOWN", "WARN", "ERR", "STOP", "STALL", "REWIND"]
    assert {status.value: number for status, number in BURROW_NUMBERS.items()} == {
        "NOTFOUND": 0,
        "OK": 1,
        "WARN": 2,
        "ERR": 3,
        "STOP": 4,
        "STALL": 5,
        "REWIND": 6,
    }
