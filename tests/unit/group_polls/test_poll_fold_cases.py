"""Cases of the fold of polls: what becomes a row, and what an answer does not say."""

from polled_groups import NAMES, FollowedPolls, PolledCluster, classic, consumer, offsets, share, streams

from coordinator_core.group_polls.group_poll import GroupPoll, PolledGroup, TopicPartitionKey
from coordinator_core.group_polls.poll_fold import PolledRange, PollFold, group_view
from coordinator_core.state.era import Era

ERA = Era.named("4")


class Polls:
    """A fold whose ranges are merged."""

    def __init__(self, era: Era = ERA) -> None:
        self.fold, self.tables, self.cluster = PollFold(era), FollowedPolls(), PolledCluster()

    def poll(self, *, silent: tuple[str, ...] = (), failed: tuple[str, ...] = ()) -> PolledRange:
        asked = {group: tuple(stored.offsets) for group, stored in self.fold.groups.items()}
        return self.apply(self.cluster.poll(asked, silent, failed))

    def apply(self, poll: GroupPoll) -> PolledRange:
        polled = self.fold.apply(poll, self.tables.next_offset)
        self.tables.merge(polled)
        return polled

    def changes(self) -> list[tuple[str, str, str | None]]:
        found, self.tables.changes = self.tables.changes, []
        return found


def test_a_classic_group_has_no_generation_leader_and_timeouts() -> None:
    polls = Polls()
    polls.cluster.groups["billing"] = (classic("m1", "m2"), {})
    polls.poll()
    view = group_view(ERA, "billing", polls.fold.groups["billing"].records, {})
    assert view is not None
    assert (view.group_type, view.state, view.generation, view.leader, view.protocol) == (
        "classic",
        "Stable",
        None,
        None,
        "range",
    )
    assert {(member.session_timeout_ms, member.rebalance_timeout_ms) for member in view.members} == {(None, None)}
    assert polls.changes() == [
        ("billing", "group_created", None),
        ("billing", "member_joined", "m1"),
        ("billing", "member_joined", "m2"),
        # the bytes of this test are no assignment
        ("billing", "assignment_unreadable", "m1"),
        ("billing", "assignment_unreadable", "m2"),
    ]


def test_a_rebalance_in_progress_changes_nothing() -> None:
    polls = Polls()
    polls.cluster.groups["billing"] = (classic("m1"), {})
    polls.poll()
    polls.changes()
    polls.cluster.groups["billing"] = (classic("m1", "m2", state="PreparingRebalance"), {})
    polls.poll()
    assert polls.changes() == []
    polls.cluster.groups["billing"] = (classic("m1", "m2"), {})
    polls.poll()
    assert polls.changes()[:2] == [("billing", "rebalance", None), ("billing", "member_joined", "m2")]
    polls.poll()
    assert polls.changes() == []


def test_several_epochs_between_two_polls_are_one_change() -> None:
    polls = Polls()
    polls.cluster.groups["orders-app"] = (consumer(3, "m1"), {})
    polls.poll()
    polls.changes()
    polls.cluster.groups["orders-app"] = (consumer(7, "m1", "m2"), {})
    polled = polls.poll()
    assert polls.changes() == [("orders-app", "rebalance", None), ("orders-app", "member_joined", "m2")]
    (row,) = polled.reduction.groups.membership.to_pylist()
    assert (row["previous_generation"], row["generation"], row["state"], row["previous_state"]) == (3, 7, "Stable", "Stable")
    assert polled.topic_names == NAMES


def test_a_share_member_behind_the_assignment_epoch_has_no_known_target() -> None:
    polls = Polls()
    polls.cluster.groups["queue"] = (share(4, "m1", "m2", behind="m2"), {})
    polls.poll()
    view = group_view(ERA, "queue", polls.fold.groups["queue"].records, NAMES)
    assert view is not None
    assert [(member.member_state, member.target) for member in view.members] == [
        ("STABLE", view.members[0].assigned),
        ("UNKNOWN", None),
    ]
    assert (view.group_type, view.state, view.generation, view.protocol) == ("share", "Stable", 4, "simple")


def test_a_streams_group_has_tasks_topics_and_its_state() -> None:
    polls = Polls()
    polls.cluster.groups["app"] = (streams(2, "m1", "m2", state="NotReady"), {})
    polls.poll()
    view = group_view(ERA, "app", polls.fold.groups["app"].records, NAMES)
    assert view is not None
    assert (view.state, view.subscribed_topics) == ("NotReady", ("orders", "repartition"))
    assert [member.standby_tasks for member in view.members] == [1, 1]
    assert {member.rebalance_timeout_ms for member in view.members} == {None}
    polls.changes()
    polls.cluster.groups["app"] = (streams(3, "m1"), {})
    polls.poll()
    changes = polls.changes()
    assert ("app", "member_left", "m2") in changes
    assert ("app", "rebalance", None) in changes


def test_a_group_of_another_type_replaces_the_records() -> None:
    polls = Polls()
    for answer in (share(4, "m1"), streams(1, "m1"), consumer(2, "m1"), classic("m1"), share(1)):
        polls.cluster.groups["a"] = (answer, {})
        polls.poll()
        assert polls.tables.records == dict(polls.fold.groups["a"].records)
        assert not [change for change in polls.changes() if change[1] == "anomaly"]


def test_a_group_that_vanishes_from_the_list_keeps_its_offsets() -> None:
    """Azure Event Hubs lists no group without members, and describes none; its offsets remain readable by name."""
    polls = Polls()
    polls.cluster.groups["hub"] = (classic("m1"), offsets(orders=5))
    polls.poll()
    left = PolledGroup(None, offsets(orders=6))
    for _ in range(3):
        polls.apply(GroupPoll(2_000, 2_010, {"hub": left}))
    assert polls.tables.offsets == {("hub", "orders", 0): (6, "")}
    view = group_view(ERA, "hub", polls.fold.groups["hub"].records, {})
    assert view is not None
    assert (view.state, view.protocol_type, view.members) == ("Empty", "consumer", ())


def test_a_deletion_needs_two_complete_polls_in_a_row() -> None:
    polls = Polls()
    polls.cluster.groups["gone"] = (classic(), offsets(orders=5))
    polls.poll()
    polls.changes()
    del polls.cluster.groups["gone"]
    polls.poll()
    assert polls.changes() == [("gone", "poll_missing", None)]
    # another broker is silent: this poll does not count
    polls.poll(silent=("other",))
    assert polls.changes() == []
    assert polls.tables.offsets
    polls.poll()
    assert polls.changes() == [("gone", "group_deleted", None)]
    assert (polls.tables.offsets, polls.tables.records, dict(polls.fold.groups)) == ({}, {}, {})


def test_an_error_between_two_absences_begins_the_count_again() -> None:
    polls = Polls()
    polls.cluster.groups["gone"] = (classic(), offsets(orders=5))
    polls.poll()
    del polls.cluster.groups["gone"]
    polls.poll()
    polled = polls.poll(failed=("gone",))
    assert not polled.is_complete
    polls.poll()
    assert "gone" in polls.fold.groups
    polls.poll()
    assert "gone" not in polls.fold.groups


def test_an_error_of_a_group_is_a_row_once_and_so_is_its_end() -> None:
    polls = Polls()
    for _ in range(3):
        polls.poll(failed=("secret",))
    assert polls.changes() == [("secret", "poll_failed", None)]
    polls.cluster.groups["secret"] = (classic("m1"), {})
    polls.poll()
    assert polls.changes()[0] == ("secret", "poll_answered", None)


def test_an_offset_is_removed_only_after_a_question_by_name() -> None:
    polls = Polls()
    both = offsets(orders=5, bills=6)
    polls.cluster.groups["simple"] = (classic(protocol_type=""), both)
    polls.poll()
    # a topic that the user may not describe any more is left out in silence
    without = PolledGroup(classic(protocol_type=""), offsets(orders=5))
    polls.apply(GroupPoll(2_000, 2_010, {"simple": without}))
    assert set(polls.tables.offsets) == {("simple", "orders", 0), ("simple", "bills", 0)}
    named = PolledGroup(classic(protocol_type=""), offsets(orders=5), frozenset({TopicPartitionKey("bills", 0)}))
    polls.apply(GroupPoll(3_000, 3_010, {"simple": named}))
    assert set(polls.tables.offsets) == {("simple", "orders", 0)}


def test_offsets_of_a_group_that_came_back_without_members_are_committed_after_its_tombstone() -> None:
    polls = Polls()
    polls.cluster.groups["again"] = (classic("m1"), offsets(orders=5))
    polls.poll()
    polls.cluster.groups["again"] = (classic(protocol_type=""), offsets(orders=5))
    polled = polls.poll()
    (tombstone,) = polled.reduction.groups.records.to_pylist()
    (commit,) = polled.reduction.offsets.commits.to_pylist()
    assert tombstone["value"] is None
    assert commit["log_offset"] > tombstone["log_offset"]


def test_a_simple_group_without_offsets_has_a_record_where_coordinators_keep_it() -> None:
    """A commit whose transaction was aborted makes such a group."""
    polls = Polls()
    polls.cluster.groups["aborted"] = (classic(protocol_type=""), {})
    polls.poll()
    view = group_view(ERA, "aborted", polls.fold.groups["aborted"].records, {})
    assert view is not None
    assert (view.group_type, view.state, view.generation, view.protocol_type) == ("simple", "Empty", 0, None)
    assert polls.changes() == [("aborted", "group_created", None)]
    # the record stays when the first offset is committed, and is removed with the group
    polls.cluster.groups["aborted"] = (classic(protocol_type=""), offsets(orders=5))
    polls.poll()
    assert (polls.changes(), polls.tables.has_group("aborted"), len(polls.tables.records)) == ([], True, 1)
    del polls.cluster.groups["aborted"]
    polls.poll()
    polls.poll()
    assert polls.changes() == [("aborted", "poll_missing", None), ("aborted", "group_deleted", None)]
    assert not polls.tables.has_group("aborted")
    # Scala brokers have no such group after a load
    scala = Polls(Era.named("3"))
    scala.cluster.groups["aborted"] = (classic(protocol_type=""), {})
    scala.poll()
    assert (scala.changes(), scala.fold.groups) == ([], {})


def test_a_simple_group_stays_when_its_last_offset_is_removed() -> None:
    polls = Polls()
    polls.cluster.groups["simple"] = (classic(protocol_type=""), offsets(orders=5))
    polls.poll()
    polls.cluster.groups["simple"] = (classic(protocol_type=""), {})
    polls.poll()
    assert (polls.tables.offsets, polls.tables.records, polls.tables.has_group("simple")) == ({}, {}, True)
