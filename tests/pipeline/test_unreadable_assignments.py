"""Members whose assignment cannot be read: their partitions are unknown, with the reason, and nothing is claimed about them."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from log_builder import Log, member
from metrics_text import values
from shop_pages import ShopPages
from status_story import Story
from table_logs import applied

from coordinator_core.codec import encode_assignment
from coordinator_core.codec.messages.classic import MemberMetadata
from coordinator_core.codec.messages.consumer_protocol import ConsumerProtocolAssignment, ProtocolTopicPartitions
from coordinator_core.state.era import Era
from pipelines.metrics.settings import metrics_settings
from pipelines.metrics.site import Site
from pipelines.query.check import check
from pipelines.query.engine import Snapshot
from pipelines.runtime.configuration import load_configuration

READABLE = member().assignment
#: An assignment as old Sarama clients write it ends before the user data, which is the last field.
FORMS = {
    "no_user_data": (READABLE[:-4], "malformed assignment at byte 19: needs 4 bytes, 0 are left"),
    "garbage": (b"\xde\xad\xbe\xef\x01", "version -8531"),
    "cut_off": (READABLE[:9], "needs 3 bytes, 1 are left"),
    "one_byte": (b"\x00", "needs 2 bytes for the version, 1 are left"),
}


def assigned(name: str, assignment: bytes) -> MemberMetadata:
    return replace(member(name, topics=["orders"]), client_id=f"client-{name}", assignment=assignment)


def rows(root: Path | str, sql: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = Snapshot.open(str(root)).query(sql).to_pylist()
    return found


def log_of(*generations: Sequence[MemberMetadata]) -> Log:
    log = Log()
    for number, members in enumerate(generations, 1):
        log.group(list(members), generation=number)
    return log


@pytest.mark.parametrize("form", FORMS)
def test_partitions_are_unknown_with_the_reason(tmp_path: Path, form: str) -> None:
    data, problem = FORMS[form]
    log = log_of([assigned("a", READABLE), assigned("b", data)])
    applied(log, Era.named("4"), [], str(tmp_path))
    good, bad = rows(tmp_path, "SELECT member_id, assigned, assignment_problem FROM members ORDER BY member_id")
    assert good["assigned"][0]["partitions"] == [0]
    assert good["assignment_problem"] is None
    assert bad["assigned"] is None
    assert problem in bad["assignment_problem"]
    assert [row["member_id"] for row in rows(tmp_path, "SELECT member_id FROM assignments")] == ["a"]
    (quarantined,) = rows(tmp_path, "SELECT * FROM quarantine")
    assert quarantined["reason"] == f"assignment of member b: {bad['assignment_problem']}"
    assert (quarantined["key"], quarantined["value"]) == (log.records[0].key, log.records[0].value)
    assert (quarantined["log_partition"], quarantined["log_offset"]) == (0, 0)
    # the rest of the record counts
    assert rows(tmp_path, "SELECT member_count, state FROM groups") == [{"member_count": 2, "state": "Stable"}]
    (change,) = rows(tmp_path, "SELECT member_count, members_with_partitions, members_unreadable FROM membership_history")
    assert tuple(change.values()) == (2, 1, 1)
    (event,) = rows(tmp_path, "SELECT member_id, detail FROM group_history WHERE change = 'assignment_unreadable'")
    assert event == {"member_id": "b", "detail": bad["assignment_problem"]}
    assert check(str(tmp_path)) == []


def test_empty_bytes_are_no_partitions(tmp_path: Path) -> None:
    """As for a member that the leader gave nothing."""
    applied(log_of([assigned("a", b"")]), Era.named("4"), [], str(tmp_path))
    assert rows(tmp_path, "SELECT assigned, assignment_problem FROM members") == [{"assigned": [], "assignment_problem": None}]
    assert rows(tmp_path, "SELECT * FROM quarantine") == []
    assert rows(tmp_path, "SELECT members_unreadable FROM membership_history") == [{"members_unreadable": None}]


def test_other_protocol_types_have_other_assignments(tmp_path: Path) -> None:
    log = Log()
    log.group([replace(member(), assignment=b"\x00\x01\x00\x00")], protocol_type="connect")
    applied(log, Era.named("4"), [], str(tmp_path))
    assert rows(tmp_path, "SELECT * FROM quarantine") == []
    assert rows(tmp_path, "SELECT assignment_problem FROM members") == [{"assignment_problem": None}]


@pytest.mark.parametrize("cuts", [[], [1], [2], [1, 2, 3, 4, 5], [3, 5]])
def test_batches_do_not_matter(tmp_path: Path, cuts: list[int]) -> None:
    """A row of the quarantine for each record that brought an unreadable assignment, however the records fall into batches."""
    bad, other = FORMS["no_user_data"][0], FORMS["garbage"][0]
    log = log_of(
        [assigned("a", READABLE)],
        [assigned("a", bad)],
        [assigned("a", bad), assigned("b", READABLE)],
        [assigned("a", bad), assigned("b", other)],
        [assigned("a", READABLE), assigned("b", other)],
        [assigned("a", other), assigned("b", READABLE)],
    )
    applied(log, Era.named("4"), cuts, str(tmp_path))
    found = rows(tmp_path, "SELECT log_offset, reason FROM quarantine ORDER BY log_offset, reason")
    assert [(row["log_offset"], row["reason"].split(":")[0]) for row in found] == [
        (1, "assignment of member a"),
        (3, "assignment of member b"),
        (5, "assignment of member a"),
    ]
    counts = rows(tmp_path, "SELECT log_offset, members_unreadable AS n FROM membership_history ORDER BY log_offset")
    assert [(row["log_offset"], row["n"]) for row in counts] == [(0, None), (1, 1), (2, 1), (3, 2), (4, 1), (5, 1)]
    assert check(str(tmp_path)) == []


def grouped(root: Path, *members: MemberMetadata) -> Story:
    story = Story(str(root)).end(100).end(100, 1)
    story.log.group(list(members), group="billing")
    story.commit(50).sample()
    return story


def found_rules(status: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {finding["rule"]: finding for finding in status["findings"]}


def test_unreadable_members_are_not_idle(tmp_path: Path) -> None:
    story = grouped(tmp_path, *(assigned(name, data) for name, (data, _) in FORMS.items()))
    for seconds in (400, 800):
        status = story.at(seconds).sample()
        assert "members_without_partitions" not in found_rules(status)
    story.expect_same_from_histories()


def test_idle_members_beside_them_are_counted_alone(tmp_path: Path) -> None:
    bad = FORMS["garbage"][0]
    three = encode_assignment(ConsumerProtocolAssignment((ProtocolTopicPartitions("orders", (0, 1, 2)),)))
    story = grouped(tmp_path, assigned("a", three), assigned("bad", bad), assigned("idle", b""))
    status = story.at(400).sample()
    finding = found_rules(status)["members_without_partitions"]
    assert (finding["amount"], finding["window_rows"], finding["client_id"]) == (1, 3, "client-idle")
    story.expect_same_from_histories()
    settings = metrics_settings({**load_configuration(None).metrics, "families": ["kminion"]})
    site = Site({"east": str(tmp_path)}, settings, 1, print, clock=story.clock)
    site.refresh()
    empty = values(site.metrics().text, "kminion_kafka_consumer_group_empty_members", "group_id")
    assert empty == {("billing",): 1}


def test_nobody_is_said_to_own_nothing(tmp_path: Path) -> None:
    """A partition without known owner may be that of a member whose assignment is unreadable."""
    story = grouped(tmp_path, assigned("bad", FORMS["garbage"][0]))
    for seconds in (30, 60, 90, 1_200):
        status = story.at(seconds).end(100 + seconds).sample()
    stopped = found_rules(status)["stopped"]
    assert stopped["ownership"] is None
    assert "no member owns" not in stopped["detail"]
    story.expect_same_from_histories()


def test_pages_show_the_reason(tmp_path: Path) -> None:
    story = grouped(tmp_path, assigned("a", READABLE), assigned("bad", FORMS["one_byte"][0]))
    story.at(30).sample()
    pages = ShopPages(str(tmp_path))
    members = {row["member_id"]: row for row in pages.json("groups/billing?tab=members")["rows"]}
    assert members["bad"]["assigned"] is None
    assert "needs 2 bytes" in members["bad"]["assignment_problem"]
    text = pages.html("groups/billing?tab=members").text
    assert "unreadable: malformed assignment at byte 0" in text
    assert "1 member has an unreadable assignment" in text
