"""Share and streams groups: the answers of brokers as bytes, and the groups that their records load."""

from typing import Any
from uuid import UUID

from polled_groups import NAMES, TOPIC_ID, FollowedPolls

from coordinator_core.group_polls.group_answers import GroupFailure, share_group_answer, streams_group_answer
from coordinator_core.group_polls.group_poll import GroupAnswer, GroupPoll, PolledGroup
from coordinator_core.group_polls.poll_fold import PollFold, group_view
from coordinator_core.group_polls.polled_records import group_records
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.state.era import Era
from coordinator_core.state.views import GroupView, TopicAssignment
from coordinator_core.wire import library

ERA = Era.named("4")
_MEMBER = {"member_id": "m1", "rack_id": None, "client_id": "client", "client_host": "/127.0.0.1"}


def decoded(response: Any, version: int, group: dict[str, Any]) -> Any:
    """The group as it is read from the bytes of a response."""
    made = response(throttle_time_ms=0, groups=[response.DescribedGroup(authorized_operations=0, error_message=None, **group)])
    return response.decode(made.encode(version=version), version=version).groups[0]


def share(members: int, *, error: int = 0, state: str = "Stable") -> Any:
    response: Any = library.ShareGroupDescribeResponse
    member = response.DescribedGroup.Member
    parts = [member.Assignment.TopicPartitions(topic_id=UUID(int=TOPIC_ID.int), topic_name="orders", partitions=[1, 0])]
    described = member(
        member_epoch=4, subscribed_topic_names=["orders"], assignment=member.Assignment(topic_partitions=parts), **_MEMBER
    )
    head = {"error_code": error, "group_id": "share-app", "group_state": state, "group_epoch": 4, "assignment_epoch": 4}
    return decoded(response, 1, {**head, "assignor_name": "simple", "members": [described] * members})


def streams(state: str, *, target: tuple[int, ...] = (0, 1), error: int = 0) -> Any:
    response: Any = library.StreamsGroupDescribeResponse
    group = response.DescribedGroup
    member, part = group.Member, group.Topology.Subtopology

    def tasks(active: tuple[int, ...]) -> Any:
        ids = [member.Assignment.TaskIds(subtopology_id="0", partitions=list(active))]
        return member.Assignment(active_tasks=ids, standby_tasks=[], warmup_tasks=[])

    repartitioned = part.TopicInfo(name="by-key", partitions=2, replication_factor=1, topic_configs=[])
    topology = group.Topology(
        epoch=3,
        subtopologies=[
            part(
                subtopology_id="0",
                source_topics=["orders"],
                repartition_sink_topics=[],
                state_changelog_topics=[],
                repartition_source_topics=[repartitioned],
            )
        ],
    )
    described = member(
        **_MEMBER,
        member_epoch=5,
        instance_id="i1",
        topology_epoch=3,
        process_id="p",
        user_endpoint=None,
        client_tags=[],
        task_offsets=[],
        task_end_offsets=[],
        is_classic=False,
        assignment=tasks((0, 1)),
        target_assignment=tasks(target),
    )
    head = {"error_code": error, "group_id": "streams-app", "group_state": state, "group_epoch": 5, "assignment_epoch": 5}
    return decoded(response, 0, {**head, "topology": topology, "members": [described]})


def loaded(answer: GroupAnswer | GroupFailure | None, group_id: str) -> GroupView:
    assert answer is not None
    assert not isinstance(answer, GroupFailure)
    view = group_view(ERA, group_id, group_records(ERA, group_id, answer), NAMES)
    assert view is not None
    return view


def test_a_share_group_has_members_with_partitions_and_no_target() -> None:
    view = loaded(share_group_answer(share(1)), "share-app")
    assert (view.group_type, view.state, view.generation, view.protocol) == ("share", "Stable", 4, "simple")
    (member,) = view.members
    assert (member.member_epoch, member.member_state, member.subscribed_topics) == (4, "STABLE", ("orders",))
    assert [(part.topic, part.partitions) for part in member.assigned] == [("orders", (0, 1))]
    assert member.target == ()


def test_a_streams_group_has_the_partitions_of_its_active_tasks() -> None:
    view = loaded(streams_group_answer(streams("Stable")), "streams-app")
    assert (view.group_type, view.state, view.generation) == ("streams", "Stable", 5)
    (member,) = view.members
    topics = (TopicAssignment("by-key", None, (0, 1)), TopicAssignment("orders", None, (0, 1)))
    assert (member.assigned, member.target, member.member_state) == (topics, topics, "STABLE")
    assert (member.group_instance_id, member.rebalance_timeout_ms) == ("i1", None)


def test_a_streams_group_that_is_not_ready_or_reconciles() -> None:
    assert loaded(streams_group_answer(streams("NotReady")), "streams-app").state == "NotReady"
    view = loaded(streams_group_answer(streams("Reconciling", target=(0,))), "streams-app")
    assert (view.state, view.members[0].member_state) == ("Reconciling", "UNREVOKED_TASKS")


def test_errors_and_missing_groups_of_both_types() -> None:
    missing, failed = ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.NOT_COORDINATOR
    assert share_group_answer(share(0, error=missing)) is None
    assert streams_group_answer(streams("Dead")) is None
    assert share_group_answer(share(0, error=failed)) == GroupFailure(failed)
    assert streams_group_answer(streams("", error=failed)) == GroupFailure(failed)


def test_a_group_of_either_type_is_removed_with_all_its_records() -> None:
    fold, tables = PollFold(ERA), FollowedPolls()
    answers = {"share-app": share_group_answer(share(1)), "streams-app": streams_group_answer(streams("Stable"))}
    polls = [
        {group_id: PolledGroup(answer) for group_id, answer in answers.items() if not isinstance(answer, GroupFailure)},
        *[dict.fromkeys(answers, PolledGroup(None))] * 2,
    ]
    for groups in polls:
        tables.merge(fold.apply(GroupPoll(1_000, 1_010, groups, topic_names=NAMES), tables.next_offset))
    assert (tables.records, dict(fold.groups)) == ({}, {})
    removed = [group_id for group_id, change, _ in tables.changes if change == "group_deleted"]
    assert removed == ["share-app", "streams-app"]
