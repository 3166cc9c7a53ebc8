"""Tables that follow polls equal the groups of the cluster, whatever changed between two polls and whoever did not answer."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from polled_groups import NAMES, FollowedPolls, PolledCluster, classic, consumer, offsets, share, streams

from coordinator_core.codec import Record, decode
from coordinator_core.group_polls.group_poll import GroupAnswer, GroupPoll, PolledGroup
from coordinator_core.group_polls.poll_fold import PollFold, PollNote, group_view
from coordinator_core.group_polls.polled_records import is_rebalancing
from coordinator_core.state.era import Era
from coordinator_core.state.registry import group_id_of

ERA = Era.named("4")
GROUPS = ("a", "b", "c")

_group = st.sampled_from(GROUPS)
_members = st.sets(st.sampled_from(["m1", "m2", "m3"]))
_positions = st.dictionaries(st.sampled_from(["orders", "bills"]), st.integers(0, 3))
_described: st.SearchStrategy[tuple[Any, ...]] = st.one_of(
    st.tuples(st.just("classic"), _members),
    st.tuples(st.just("rebalancing"), _members),
    st.tuples(st.just("simple"), st.just(set())),
    st.tuples(st.sampled_from(["consumer", "share", "streams"]), st.integers(1, 3), _members),
)
_change = st.one_of(
    st.tuples(st.just("set"), _group, _described, _positions),
    st.tuples(st.just("delete"), _group),
)
_steps = st.lists(
    st.tuples(st.lists(_change, max_size=3), st.sets(_group, max_size=2), st.sets(_group, max_size=2)), min_size=1, max_size=8
)


_MODERN: dict[str, Callable[..., GroupAnswer]] = {"consumer": consumer, "share": share, "streams": streams}


def changed(cluster: PolledCluster, change: tuple[Any, ...]) -> None:
    match change:
        case ("delete", group):
            cluster.groups.pop(group, None)
        case ("set", group, described, positions):
            answer: GroupAnswer
            match described:
                case (kind, epoch, members):
                    answer = _MODERN[kind](epoch, *members)
                case ("rebalancing", members):
                    answer = classic(*members, state="PreparingRebalance")
                case ("simple", _):
                    answer = classic(protocol_type="")
                case (_, members):
                    answer = classic(*members)
            cluster.groups[group] = (answer, offsets(**positions))


@given(st.sampled_from([consumer, share, streams]), st.integers(1, 5), _members)
def test_a_group_is_loaded_from_its_records_as_it_was_described(kind: Callable[..., Any], epoch: int, members: set[str]) -> None:
    answer = kind(epoch, *members)
    fold = PollFold(ERA)
    fold.apply(GroupPoll(1, 2, {"a": PolledGroup(answer)}, topic_names=NAMES), 0)
    view = group_view(ERA, "a", fold.groups["a"].records, NAMES)
    assert view is not None
    assert (view.group_type, view.state, view.generation) == (kind.__name__, answer.state, epoch)
    assert [member.member_id for member in view.members] == sorted(members)
    assert {(member.member_state, member.member_epoch) for member in view.members} <= {("STABLE", epoch)}
    assert all(member.assigned == member.target for member in view.members)
    assert {topic.topic for member in view.members for topic in member.assigned} <= {"orders", "repartition"}


def offsets_of(group: str, followed: FollowedPolls) -> dict[tuple[str, int], int]:
    return {(topic, part): at for (owner, topic, part), (at, _) in followed.offsets.items() if owner == group}


@given(_steps)
def test_tables_that_follow_polls_equal_the_groups_that_answered(steps: list[tuple[Any, ...]]) -> None:
    cluster, fold, followed = PolledCluster(), PollFold(ERA), FollowedPolls()
    #: Complete polls in a row in which the coordinator knew nothing of a group.
    absences: Counter[str] = Counter()
    for mutations, silent, failed in steps:
        for mutation in mutations:
            changed(cluster, mutation)
        before = {group: (offsets_of(group, followed), fold.groups.get(group)) for group in GROUPS}
        asked = {group: tuple(stored.offsets) for group, stored in fold.groups.items()}
        followed.merge(polled := fold.apply(cluster.poll(asked, silent, failed), followed.next_offset))
        unanswered = silent | failed
        assert polled.is_complete == (not silent and not any(before[group][1] for group in failed))
        for group in GROUPS:
            known, stored = cluster.groups.get(group), fold.groups.get(group)
            if group in unanswered:
                # silence is not absence: nothing changes
                assert (offsets_of(group, followed), stored) == before[group]
                absences[group] = 0 if group in failed else absences[group]
            elif known is not None:
                absences[group] = 0
                assert offsets_of(group, followed) == {(key.topic, key.partition): at.offset for key, at in known[1].items()}
                # a new group between two generations is not in the log yet
                assert followed.has_group(group) or is_rebalancing(known[0])
            elif known is None and before[group][1] is not None:
                # an absence counts in complete polls only, and the second one in a row removes the group
                absences[group] += 0 if silent else 1
                assert (stored is None) == (absences[group] >= 2)
                absences[group] *= stored is not None
        of_state = {key: value for stored in fold.groups.values() for key, value in stored.records.items()}
        assert followed.records == of_state
        assert {group for group, *_ in followed.offsets} <= fold.groups.keys()
    assert not [change for change in followed.changes if change[1] == "anomaly"]


@given(_steps)
def test_a_poll_without_differences_changes_nothing(steps: list[tuple[Any, ...]]) -> None:
    cluster, fold, followed = PolledCluster(), PollFold(ERA), FollowedPolls()
    for mutations, *_ in steps:
        for mutation in mutations:
            changed(cluster, mutation)
        for again in (False, False, True):
            asked = {group: tuple(stored.offsets) for group, stored in fold.groups.items()}
            polled = fold.apply(cluster.poll(asked), followed.next_offset)
            followed.merge(polled)
            if again:
                assert polled.next_offset == polled.start_offset + 1, "only the poll itself has an offset"
    assert not fold.notes


@given(_steps)
def test_a_restarted_fold_continues_with_the_state_of_the_tables(steps: list[tuple[Any, ...]]) -> None:
    cluster, kept, followed, restarted = PolledCluster(), PollFold(ERA), FollowedPolls(), FollowedPolls()
    fold = PollFold(ERA)
    for mutations, silent, failed in steps:
        for mutation in mutations:
            changed(cluster, mutation)
        asked = {group: tuple(stored.offsets) for group, stored in kept.groups.items()}
        poll = cluster.poll(asked, silent, failed)
        followed.merge(kept.apply(poll, followed.next_offset))
        fold = PollFold(ERA, fold.groups, fold.notes)
        restarted.merge(fold.apply(poll, restarted.next_offset))
    assert (restarted.offsets, restarted.records, restarted.changes) == (followed.offsets, followed.records, followed.changes)


@given(_steps)
def test_every_polled_record_is_one_of_its_group(steps: list[tuple[Any, ...]]) -> None:
    cluster, fold, at = PolledCluster(), PollFold(ERA), 0
    for mutations, *_ in steps:
        for mutation in mutations:
            changed(cluster, mutation)
        at = fold.apply(cluster.poll({}), at).next_offset
        for group, stored in fold.groups.items():
            records = [decode(key, value) for key, value in stored.records.items()]
            assert {group_id_of(record) for record in records if isinstance(record, Record)} <= {group}
            assert all(isinstance(record, Record) for record in records)
    assert set(fold.notes.values()) <= {note for note in fold.notes.values() if note.note is PollNote.MISSING}
