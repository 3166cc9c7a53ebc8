"""Answers about groups: missing groups, errors of groups and of partitions, and offsets that are none."""

from types import SimpleNamespace as Part
from typing import Any
from uuid import UUID

import pytest

from coordinator_core.group_polls.group_answers import (
    CoordinatorFailure,
    classic_group_answer,
    consumer_group_answer,
    fetched_offsets,
    share_group_answer,
    streams_group_answer,
)
from coordinator_core.group_polls.group_poll import (
    AssignedTasks,
    PolledOffset,
    ShareGroupAnswer,
    ShareMemberAnswer,
    StreamsGroupAnswer,
    StreamsMemberAnswer,
    SubtopologyAnswer,
    TasksAnswer,
    TopicPartitionKey,
    TopologyAnswer,
)
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.wire import library


def described(**changed: Any) -> Any:
    return Part(**{"error_code": 0, "group_state": "Empty", "protocol_type": "", "protocol_data": "", "members": [], **changed})


@pytest.mark.parametrize("answer", [described(group_state="Dead"), described(error_code=ErrorCode.GROUP_ID_NOT_FOUND)])
def test_a_group_that_the_coordinator_does_not_know_is_missing(answer: Any) -> None:
    assert classic_group_answer(answer) is None
    assert consumer_group_answer(answer) is None
    assert share_group_answer(answer) is None
    assert streams_group_answer(answer) is None


@pytest.mark.parametrize(
    ("code", "reason", "is_moving"),
    [
        (ErrorCode.NOT_COORDINATOR, "NOT_COORDINATOR", True),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "COORDINATOR_LOAD_IN_PROGRESS", True),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, "GROUP_AUTHORIZATION_FAILED", False),
        (999, "error 999", False),
    ],
)
def test_an_error_of_a_group_has_a_reason(code: int, reason: str, is_moving: bool) -> None:
    answers = (classic_group_answer(described(error_code=code)), fetched_offsets(Part(error_code=code, topics=[])))
    assert answers == (CoordinatorFailure(code), CoordinatorFailure(code))
    assert (CoordinatorFailure(code).reason, CoordinatorFailure(code).is_moving) == (reason, is_moving)


def test_an_offset_of_minus_one_is_no_commit_and_an_error_is_neither() -> None:
    def part(index: int, offset: int, code: int = 0) -> Any:
        return Part(partition_index=index, committed_offset=offset, committed_leader_epoch=-1, metadata=None, error_code=code)

    parts = [part(0, 7), part(1, -1), part(2, -1, ErrorCode.TOPIC_AUTHORIZATION_FAILED)]
    found = fetched_offsets(Part(error_code=0, topics=[Part(name="orders", partitions=parts)]))
    assert not isinstance(found, CoordinatorFailure)
    assert found.offsets == {TopicPartitionKey("orders", 0): PolledOffset(7, -1, "")}
    assert found.without_commit == {TopicPartitionKey("orders", 1)}
    assert found.failed == {TopicPartitionKey("orders", 2): ErrorCode.TOPIC_AUTHORIZATION_FAILED}


def test_a_group_without_an_entry_in_the_coordinator_has_no_offsets() -> None:
    found = fetched_offsets(Part(error_code=ErrorCode.GROUP_ID_NOT_FOUND, topics=None))
    assert not isinstance(found, CoordinatorFailure)
    assert found.offsets == {}


def received(message: Any, version: int) -> Any:
    """A response as it arrives: encoded and decoded in a version."""
    message.API_VERSION = version
    message.with_header(7)
    return type(message).decode(message.encode(header=True), version=version, header=True)


def test_a_share_group_is_read_from_its_response() -> None:
    response = library.ShareGroupDescribeResponse
    group = response.DescribedGroup
    part = group.Member.Assignment.TopicPartitions
    topic_id = UUID(int=7)
    members = [
        group.Member(
            member_id=name,
            rack_id="r1",
            member_epoch=4,
            client_id="c",
            client_host="/h",
            subscribed_topic_names=["b", "a"],
            assignment=group.Member.Assignment(topic_partitions=[part(topic_id=topic_id, topic_name="a", partitions=[1, 0])]),
        )
        for name in ("m2", "m1")
    ]
    described_group = group(
        error_code=0,
        error_message=None,
        group_id="queue",
        group_state="Stable",
        group_epoch=5,
        assignment_epoch=4,
        assignor_name="simple",
        members=members,
        authorized_operations=-(2**31),
    )
    (answer,) = received(response(throttle_time_ms=0, groups=[described_group]), 1).groups
    assert share_group_answer(answer) == ShareGroupAnswer(
        "Stable",
        5,
        4,
        tuple(ShareMemberAnswer(name, "r1", 4, "c", "/h", ("a", "b"), ((topic_id, (0, 1)),)) for name in ("m1", "m2")),
    )


@pytest.mark.parametrize("is_complete", [True, False])
def test_a_streams_group_is_read_from_its_response(is_complete: bool) -> None:
    """Topology, subtopologies and user endpoint may be null."""
    response = library.StreamsGroupDescribeResponse
    group = response.DescribedGroup
    member = group.Member
    tasks = member.Assignment

    def assignment(*active: AssignedTasks) -> Any:
        return tasks(
            active_tasks=[tasks.TaskIds(subtopology_id=name, partitions=list(numbers)) for name, numbers in active],
            standby_tasks=[tasks.TaskIds(subtopology_id="1", partitions=[3])],
            warmup_tasks=[],
        )

    info = group.Topology.Subtopology.TopicInfo
    subtopology = group.Topology.Subtopology(
        subtopology_id="1",
        source_topics=["b", "a"],
        repartition_sink_topics=["s"],
        state_changelog_topics=[],
        repartition_source_topics=[info(name="r", partitions=4, replication_factor=1, topic_configs=[])],
    )
    described_group = group(
        error_code=0,
        error_message=None,
        group_id="app",
        group_state="Stable",
        group_epoch=5,
        assignment_epoch=5,
        topology=group.Topology(epoch=2, subtopologies=[subtopology] if is_complete else None),
        members=[
            member(
                member_id="m1",
                member_epoch=5,
                instance_id=None,
                rack_id=None,
                client_id="c",
                client_host="/h",
                topology_epoch=2,
                process_id="p",
                user_endpoint=member.Endpoint(host="e", port=40_000) if is_complete else None,
                client_tags=[member.KeyValue(key="zone", value="a")],
                task_offsets=[],
                task_end_offsets=[],
                assignment=assignment(("1", (2, 1))),
                target_assignment=assignment(("1", (2, 1)), ("0", (0,))),
                is_classic=False,
            )
        ],
        authorized_operations=-(2**31),
    )
    (answer,) = received(response(throttle_time_ms=0, groups=[described_group]), 0).groups
    standby = (("1", (3,)),)
    expected = StreamsMemberAnswer(
        *("m1", None, None, 5, "c", "/h", 2, "p"),
        ("e", 40_000) if is_complete else None,
        (("zone", "a"),),
        TasksAnswer((("1", (1, 2)),), standby),
        TasksAnswer((("0", (0,)), ("1", (1, 2))), standby),
    )
    topology = TopologyAnswer(2, (SubtopologyAnswer("1", ("a", "b"), ("s",), ("r",)),) if is_complete else None)
    assert streams_group_answer(answer) == StreamsGroupAnswer("Stable", 5, 5, topology, (expected,))
