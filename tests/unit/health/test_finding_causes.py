"""Causes before symptoms: one incident per root cause of a group."""

from typing import Any

import pytest
from group_scenarios import ORDERS, Scenario
from model_of_lag import TopicFacts
from model_of_status import group_status

from coordinator_core.health import BURROW_RULES, EXPLANATIONS, GROUP_RULES, Explanation, Finding, GroupStatus, Status, incidents

STATUS = {**{rule.name: rule.status for rule in BURROW_RULES}, **{rule.name: rule.status for rule in GROUP_RULES}}


def finding(rule: str, partition: int | None = 0, **values: Any) -> Finding:
    return Finding(rule, STATUS[rule], None if partition is None else ORDERS[partition])._replace(**values)


def causes(*given: Finding) -> dict[tuple[str, int | None], str | None]:
    """Rule and partition → root cause."""
    found = (each for incident in incidents(given) for each in incident.findings)
    return {(each.rule, each.partition and each.partition.partition): each.caused_by for each in found}


def test_the_table_has_rules_that_exist_and_no_circles() -> None:
    assert {rule for row in EXPLANATIONS for rule in (row.cause, *row.symptoms)} <= STATUS.keys()
    for number, row in enumerate(EXPLANATIONS):
        assert row.cause not in row.symptoms
        assert not any(row.cause in later.symptoms for later in EXPLANATIONS[number + 1 :]), row.cause


@pytest.mark.parametrize("row", EXPLANATIONS, ids=lambda row: row.cause)
def test_every_explanation(row: Explanation) -> None:
    jump = {"from_offset": 90, "to_offset": 5}
    cause = finding(row.cause, None if row.is_of_group else 0, **jump)
    for rule in row.symptoms:
        symptom, elsewhere = finding(rule, 0), finding(rule, 1)
        found = incidents([symptom, elsewhere, cause])
        first = next(incident for incident in found if incident.rule == row.cause)
        assert first.status is max((cause.status, symptom.status), key=lambda status: status.severity)
        assert [each.caused_by for each in first.findings][:2] == [None, row.cause]
        assert len(found) == (1 if row.is_of_group else 2), "a cause on a partition explains nothing on others"


def test_an_open_transaction_is_above_the_stop_that_it_causes_and_what_follows_from_it() -> None:
    given = [
        finding("stopped"),
        finding("stopped", 1),
        finding("near_retention"),
        finding("hanging_transaction", transactional_id="tx"),
    ]
    stop, blocked = sorted(incidents(given), key=lambda incident: incident.rule, reverse=True)
    assert (blocked.rule, blocked.status, len(blocked.found)) == ("hanging_transaction", Status.STOP, 1)
    assert [[each.rule for each in symptom] for symptom in blocked.symptoms] == [["stopped"], ["near_retention"]]
    assert {each.caused_by for symptom in blocked.symptoms for each in symptom} == {"hanging_transaction"}
    assert (stop.rule, [each.partition for each in stop.found]) == ("stopped", [ORDERS[1]])


def test_a_root_is_that_of_the_whole_chain() -> None:
    given = [finding("skew"), finding("data_lost"), finding("stopped"), finding("rebalance_storm", None)]
    assert causes(*given) == {
        ("rebalance_storm", None): None,
        ("stopped", 0): "rebalance_storm",
        ("data_lost", 0): "rebalance_storm",
        ("skew", 0): "rebalance_storm",
    }


def test_a_storm_does_not_explain_what_began_long_before() -> None:
    storm = finding("rebalance_storm", None, since_ms=5_000_000, window_seconds=600.0)
    assert causes(storm, finding("stopped", since_ms=4_400_000))["stopped", 0] == "rebalance_storm"
    assert causes(storm, finding("stopped", since_ms=4_399_999))["stopped", 0] is None


def test_a_reset_to_the_end_explains_no_rewind() -> None:
    forward = finding("reset", from_offset=5, to_offset=90)
    assert causes(forward, finding("went_back"))["went_back", 0] is None


def test_two_transactions_are_two_incidents() -> None:
    given = [finding("hanging_transaction", n, transactional_id=f"tx-{n}") for n in range(2)]
    assert [len(incident.found) for incident in incidents(given)] == [1, 1]


def test_incidents_are_in_the_order_of_their_worst_finding() -> None:
    given = [finding("data_lost", 1), finding("skew", 2), finding("hanging_transaction"), finding("stalled")]
    assert [(each.rule, each.status) for each in incidents(given)] == [
        ("hanging_transaction", Status.STALL),
        ("data_lost", Status.ERR),
        ("skew", Status.WARN),
    ]
    assert incidents([]) == ()


def blocked_group() -> GroupStatus:
    """A consumer with read_committed that reached the last stable offset at second 21, and keeps committing it."""
    scenario = Scenario().members(0, 1).end(0, 6, stable=6).end(10, 8, stable=6)
    for at in range(21, 1_000, 30):
        scenario.commit(at, 6).end(at + 1, 8 + at, stable=6)
    scenario.facts["orders"] = TopicFacts(retention_ms=1_100_000)
    return group_status(scenario.history(), 1_000_000)


def test_the_cause_decides_and_the_status_remains_the_most_severe_one() -> None:
    status = blocked_group()
    assert (status.status, status.rule, status.partition) == (Status.STALL, "hanging_transaction", ORDERS[0])
    assert status.detail == "A transaction, open since 00:00 UTC at least, blocks orders-0; 983 records wait."
    assert [(each.rule, each.caused_by) for each in status.findings] == [
        ("hanging_transaction", None),
        ("stalled", "hanging_transaction"),
        ("near_retention", "hanging_transaction"),
    ]
    stalled = status.findings[1]
    assert stalled.since_ms == 21_000, "the position is where it was since then, for longer than the window of commits"
