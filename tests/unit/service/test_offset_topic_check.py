"""Which partitions a commit or a deletion of offsets may name, by what the node knows of topics and by era."""

import pytest

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.group_coordinator.behaviour import BEHAVIOURS
from coordinator_core.protocol.api import Response
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.offsets import OffsetCommitRequest, OffsetCommitResponse, OffsetDeleteRequest, OffsetToCommit
from coordinator_core.service.groups.offset_topic_check import CheckedRequest, OffsetTopicCheck
from coordinator_core.service.runtime.reply_handles import ReplyHandle
from coordinator_core.service.topic_settings import DeclaredTopic
from coordinator_core.service.topics.topic_registry import TopicRegistry

TOPIC = "orders"
#: In the topic, after its end, the highest possible number, and impossible ones.
NUMBERS = (0, 3, 4, 99_999, 100_000, 20_000_000, 2**31 - 1, -1, -(2**31))


class Reply:
    """Keeps the response."""

    def __init__(self) -> None:
        self.response: Response | None = None

    def answer(self, response: Response) -> None:
        self.response = response


def submitted(request: CheckedRequest, *, has_topic: bool, era: str) -> tuple[list[CheckedRequest], Reply]:
    """The requests that reach the group coordinator, which commits all of their partitions, and the reply."""
    declared = {TOPIC: DeclaredTopic(4)} if has_topic else {}
    check = OffsetTopicCheck(TopicRegistry("cluster", declared, {}), BEHAVIOURS[era])
    reply, reached = Reply(), []

    def submit(passed: CheckedRequest, handle: ReplyHandle) -> None:
        reached.append(passed)
        if isinstance(passed, OffsetCommitRequest):
            handle.answer(OffsetCommitResponse(dict.fromkeys(passed.offsets, ErrorCode.NONE)))

    check.submit(request, reply, submit)
    return reached, reply


@pytest.mark.parametrize(
    ("has_topic", "era", "taken"),
    [(True, "2", {0, 3}), (True, "1", {0, 3, 4, 99_999}), (False, "2", {0, 3, 4, 99_999}), (False, "1", {0, 3, 4, 99_999})],
)
def test_partitions_of_commits(has_topic: bool, era: str, taken: set[int]) -> None:
    offsets = {TopicPartition(TOPIC, number): OffsetToCommit(7) for number in NUMBERS}
    request = OffsetCommitRequest("g", offsets)
    (passed,), reply = submitted(request, has_topic=has_topic, era=era)
    assert isinstance(passed, OffsetCommitRequest)
    assert {at.partition for at in passed.offsets} == taken
    assert isinstance(reply.response, OffsetCommitResponse)
    assert reply.response.errors == {
        at: ErrorCode.NONE if at.partition in taken else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION for at in offsets
    }


def test_offsets_of_impossible_partitions_can_be_deleted_where_topics_are_unknown() -> None:
    request = OffsetDeleteRequest("g", tuple(TopicPartition(TOPIC, number) for number in NUMBERS))
    assert submitted(request, has_topic=False, era="4")[0] == [request]
    ((passed,), _) = submitted(request, has_topic=True, era="4")
    assert isinstance(passed, OffsetDeleteRequest)
    assert {at.partition for at in passed.partitions} == {0, 3}


@pytest.mark.parametrize(("era", "numbers"), [("2", [0]), ("3", [0, 4])])
def test_a_refused_commit_is_refused_for_every_partition(era: str, numbers: list[int]) -> None:
    """OffsetCommit v0: brokers with KRaft fail it as a whole."""
    offsets = {TopicPartition(TOPIC, number): OffsetToCommit(7) for number in (0, 4)}
    (passed,), _ = submitted(OffsetCommitRequest("g", offsets, in_zookeeper=True), has_topic=True, era=era)
    assert isinstance(passed, OffsetCommitRequest)
    assert [at.partition for at in passed.offsets] == numbers
