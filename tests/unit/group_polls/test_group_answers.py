"""Answers about groups: missing groups, errors of groups and of partitions, and offsets that are none."""

from types import SimpleNamespace as Part
from typing import Any

import pytest

from coordinator_core.group_polls.group_answers import (
    GroupFailure,
    classic_group_answer,
    consumer_group_answer,
    fetched_offsets,
)
from coordinator_core.group_polls.group_poll import PolledOffset, TopicPartitionKey
from coordinator_core.protocol.error_code import ErrorCode


def described(**changed: Any) -> Any:
    return Part(**{"error_code": 0, "group_state": "Empty", "protocol_type": "", "protocol_data": "", "members": [], **changed})


@pytest.mark.parametrize("answer", [described(group_state="Dead"), described(error_code=ErrorCode.GROUP_ID_NOT_FOUND)])
def test_a_group_that_the_coordinator_does_not_know_is_missing(answer: Any) -> None:
    assert classic_group_answer(answer) is None
    assert consumer_group_answer(answer) is None


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
    assert answers == (GroupFailure(code), GroupFailure(code))
    assert (GroupFailure(code).reason, GroupFailure(code).is_moving) == (reason, is_moving)


def test_an_offset_of_minus_one_is_no_commit_and_an_error_is_neither() -> None:
    def part(index: int, offset: int, code: int = 0) -> Any:
        return Part(partition_index=index, committed_offset=offset, committed_leader_epoch=-1, metadata=None, error_code=code)

    parts = [part(0, 7), part(1, -1), part(2, -1, ErrorCode.TOPIC_AUTHORIZATION_FAILED)]
    found = fetched_offsets(Part(error_code=0, topics=[Part(name="orders", partitions=parts)]))
    assert not isinstance(found, GroupFailure)
    assert found.offsets == {TopicPartitionKey("orders", 0): PolledOffset(7, -1, "")}
    assert found.without_commit == {TopicPartitionKey("orders", 1)}
    assert found.failed == {TopicPartitionKey("orders", 2): ErrorCode.TOPIC_AUTHORIZATION_FAILED}


def test_a_group_without_an_entry_in_the_coordinator_has_no_offsets() -> None:
    found = fetched_offsets(Part(error_code=ErrorCode.GROUP_ID_NOT_FOUND, topics=None))
    assert not isinstance(found, GroupFailure)
    assert found.offsets == {}
