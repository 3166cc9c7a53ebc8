"""Commits, fetches and deletions of offsets, as in Kafka's `GroupCoordinatorTest`; each test names the cases it mirrors."""

from uuid import UUID

import pytest
from coordinator_harness import FOLLOWER, GROUP, LEADER, OTHER_GROUP, Harness, errors, to_commit
from expecting import expect

from coordinator_core.codec import encode_subscription
from coordinator_core.codec.messages.consumer_protocol import ConsumerProtocolSubscription
from coordinator_core.codec.messages.offsets import OffsetCommitKey, OffsetCommitValue
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.group_coordinator.config import CoordinatorConfig
from coordinator_core.log.entries import ControlType
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.membership import Protocol
from coordinator_core.protocol.offsets import FetchedOffset, OffsetCommitRequest, OffsetFetchRequest, OffsetToCommit

ONE, TWO, THREE = TopicPartition("topic", 0), TopicPartition("topic", 1), TopicPartition("other-topic", 0)
FOO, BAR = TopicPartition("foo", 0), TopicPartition("bar", 0)
NOTHING = -1
PRODUCER = 1000


def test_retention_is_computed_in_64_bits() -> None:
    """testOffsetsRetentionMsIntegerOverflow"""
    assert CoordinatorConfig(offsets_retention_minutes=2**31 - 1).offsets_retention_ms == (2**31 - 1) * 60 * 1000


def test_committing_to_a_dead_group(at: Harness) -> None:
    """testOffsetCommitDeadGroup, testGenericGroupOffsetCommitWithDeadGroup"""
    at.dead_group()
    assert errors(at.commit({ONE: 0}, "memberId", 1).response) == {ErrorCode.COORDINATOR_NOT_AVAILABLE}


def test_committing_for_a_generation_of_no_group(at: Harness) -> None:
    """testCommitOffsetFromUnknownGroup, testOffsetCommitWithUnknownGroup"""
    assert errors(at.commit({ONE: 0}, "memberId", 1).response) == {ErrorCode.ILLEGAL_GENERATION}
    new = OffsetCommitRequest(GROUP, to_commit({ONE: 0}), "memberId", 1, knows_missing_groups=True)
    expected = ErrorCode.GROUP_ID_NOT_FOUND if at.era == "4" else ErrorCode.ILLEGAL_GENERATION
    assert errors(at.send(new).response) == {expected}


def test_committing_without_a_generation(at: Harness) -> None:
    """testCommitOffsetWithDefaultGeneration, testSimpleGroupOffsetCommit, testCommitOffset"""
    assert errors(at.commit({ONE: 0}).response) == {ErrorCode.NONE}


def test_committing_when_everybody_is_gone(at: Harness) -> None:
    """testCommitOffsetsAfterGroupIsEmpty"""
    at.leave(at.joined().member_id)
    assert errors(at.commit({ONE: 0}).response) == {ErrorCode.NONE}
    assert at.fetched(ONE) == {ONE: 0}


def test_fetching_what_was_committed(at: Harness) -> None:
    """testFetchOffsets"""
    assert errors(at.commit({ONE: OffsetToCommit(97, 15, "some metadata")}).response) == {ErrorCode.NONE}
    fetched = at.fetch(ONE)
    assert fetched.error is ErrorCode.NONE
    assert fetched.offsets == {ONE: FetchedOffset(97, 15, "some metadata")}


def test_the_empty_group_id(at: Harness) -> None:
    """testCommitAndFetchOffsetsWithEmptyGroup"""
    at.lead(at.coordinator.partition_for(""))
    assert errors(at.commit({ONE: 0}, group="").response) == {ErrorCode.NONE}
    assert at.fetched(ONE, group="") == {ONE: 0}
    assert at.describe("").state == "Empty"
    assert at.delete("").error is ErrorCode.NONE
    assert at.fetched(ONE, group="") == {ONE: NOTHING}


@pytest.mark.parametrize("control_type", [ControlType.COMMIT, ControlType.ABORT])
def test_transactional_offsets_wait_for_the_marker(at: Harness, control_type: ControlType) -> None:
    """testBasicFetchTxnOffsets, testFetchTxnOffsetsWithAbort"""
    assert errors(at.commit_in_transaction(PRODUCER, {ONE: 0}).response) == {ErrorCode.NONE}
    assert at.fetched(ONE) == {ONE: NOTHING}
    assert at.end_transaction(PRODUCER, control_type) is ErrorCode.NONE
    assert at.fetched(ONE) == {ONE: 0 if control_type is ControlType.COMMIT else NOTHING}


@pytest.mark.parametrize(("control_type", "offset"), [(ControlType.COMMIT, 25), (ControlType.ABORT, NOTHING)])
def test_pending_offsets_are_unstable(at: Harness, control_type: ControlType, offset: int) -> None:
    """testFetchPendingTxnOffsetsWithCommit, testFetchPendingTxnOffsetsWithAbort"""
    at.commit_in_transaction(PRODUCER, {ONE: 25})
    unstable = FetchedOffset(error=ErrorCode.UNSTABLE_OFFSET_COMMIT)
    assert at.fetch(ONE, THREE).offsets == {ONE: unstable, THREE: FetchedOffset()}
    assert at.fetch(ONE, stable=False).offsets == {ONE: FetchedOffset()}
    at.end_transaction(PRODUCER, control_type)
    assert at.fetch(ONE).offsets == {ONE: FetchedOffset(offset)}


def test_a_marker_too_many(at: Harness) -> None:
    """testFetchTxnOffsetsIgnoreSpuriousCommit"""
    at.commit_in_transaction(PRODUCER, {ONE: 0})
    for control_type in (ControlType.ABORT, ControlType.COMMIT):
        assert at.end_transaction(PRODUCER, control_type) is ErrorCode.NONE
        assert at.fetched(ONE) == {ONE: NOTHING}


def test_a_marker_is_for_one_log_partition(at: Harness) -> None:
    """testFetchTxnOffsetsOneProducerMultipleGroups"""
    other = at.coordinator.partition_for(OTHER_GROUP)
    at.lead(other)
    at.commit_in_transaction(PRODUCER, {ONE: 10})
    at.commit_in_transaction(PRODUCER, {THREE: 15}, group=OTHER_GROUP)
    at.end_transaction(PRODUCER, ControlType.COMMIT)
    assert at.fetched(ONE, THREE) == {ONE: 10, THREE: NOTHING}
    assert at.fetched(ONE, THREE, group=OTHER_GROUP) == {ONE: NOTHING, THREE: NOTHING}
    at.end_transaction(PRODUCER, ControlType.COMMIT, other)
    assert at.fetched(ONE, THREE) == {ONE: 10, THREE: NOTHING}
    assert at.fetched(ONE, THREE, group=OTHER_GROUP) == {ONE: NOTHING, THREE: 15}


def test_a_marker_is_for_one_producer(at: Harness) -> None:
    """testFetchTxnOffsetsMultipleProducersOneGroup"""
    at.commit_in_transaction(PRODUCER, {ONE: 10})
    at.commit_in_transaction(PRODUCER + 5, {THREE: 15})
    at.end_transaction(PRODUCER, ControlType.COMMIT)
    assert at.fetched(ONE, THREE) == {ONE: 10, THREE: NOTHING}
    at.end_transaction(PRODUCER + 5, ControlType.COMMIT)
    assert at.fetched(ONE, THREE) == {ONE: 10, THREE: 15}


def test_a_topic_that_was_created_again(at: Harness) -> None:
    """testFetchOffsetsWithRecreatedTopic: a commit for the deleted topic does not count for the new one. Scala brokers
    write no topic ids."""
    before, now = UUID(int=1), UUID(int=2)
    at.commit({ONE: OffsetToCommit(5, topic_id=before), FOO: 6})
    asked = {"topic": before}, {"topic": now, "foo": now}
    found = [at.send(OffsetFetchRequest(GROUP, (ONE, FOO), topic_ids=ids)).response.offsets for ids in asked]
    assert [each[ONE].offset for each in found] == ([5, NOTHING] if at.era == "4" else [5, 5])
    assert [each[FOO].offset for each in found] == [6, 6]


def test_nothing_to_fetch(at: Harness) -> None:
    """testFetchOffsetForUnknownPartition, testFetchOffsetNotCoordinatorForGroup"""
    assert at.fetch(ONE).offsets == {ONE: FetchedOffset()}
    refused = at.fetch(ONE, group=OTHER_GROUP)
    assert (refused.error, refused.offsets) == (ErrorCode.NOT_COORDINATOR, {})


def test_fetching_everything(at: Harness) -> None:
    """testFetchAllOffsets"""
    nothing = at.fetch()
    assert (nothing.error, nothing.offsets) == (ErrorCode.NONE, {})
    assert errors(at.commit({ONE: 15, TWO: 16, THREE: 17}).response) == {ErrorCode.NONE}
    assert at.fetched() == {ONE: 15, TWO: 16, THREE: 17}


def test_committing_while_the_leader_assigns(at: Harness) -> None:
    """testCommitOffsetInCompletingRebalance, testCommitOffsetInCompletingRebalanceFromUnknownMemberId,
    testCommitOffsetInCompletingRebalanceFromIllegalGeneration, testValidateOffsetCommit,
    testGenericGroupOffsetCommitWhileInCompletingRebalanceState,
    testGenericGroupOffsetCommitWithUnknownMemberId, testGenericGroupOffsetCommitWithIllegalGeneration"""
    joined = at.joined()
    assert errors(at.commit({ONE: 0}, joined.member_id, 1).response) == {ErrorCode.REBALANCE_IN_PROGRESS}
    assert errors(at.commit({ONE: 0}, "memberId", 1).response) == {ErrorCode.UNKNOWN_MEMBER_ID}
    assert errors(at.commit({ONE: 0}, joined.member_id, 2).response) == {ErrorCode.ILLEGAL_GENERATION}


def test_who_commits_to_an_empty_group_is_not_asked_who_it_is(at: Harness) -> None:
    """testManualCommitOffsetShouldNotValidateMemberIdAndInstanceId, testSimpleGroupOffsetCommitWithInstanceId"""
    assert errors(at.commit({ONE: 0}, instance="instance-id").response) == {ErrorCode.NONE}
    assert errors(at.commit({ONE: 0}, "unknown").response) == {ErrorCode.NONE}


def test_a_group_in_use_takes_no_commits_from_outside(at: Harness) -> None:
    """testGenericGroupOffsetCommitWithoutMemberIdAndGeneration; transactional commits need no member id."""
    at.stable_member()
    assert errors(at.commit({ONE: 0}).response) == {ErrorCode.UNKNOWN_MEMBER_ID}
    assert errors(at.commit_in_transaction(PRODUCER, {ONE: 0}).response) == {ErrorCode.NONE}


def test_transactions_of_a_fenced_instance(at: Harness) -> None:
    """testTxnCommitOffsetWithFencedInstanceId"""
    generation, leader, _ = at.static_pair()
    for member_id in ("", "invalid-member"):
        refused = at.commit_in_transaction(PRODUCER, {ONE: 0}, member_id, instance=LEADER).response
        assert errors(refused) == {ErrorCode.FENCED_INSTANCE_ID}
    taken = at.commit_in_transaction(PRODUCER, {ONE: 0}, leader, generation, instance=LEADER).response
    assert errors(taken) == {ErrorCode.NONE}
    assert at.group().static_member_id(FOLLOWER) is not None


def test_transactions_of_members(at: Harness) -> None:
    """testTxnCommitOffsetWithInvalidMemberId, testTxnCommitOffsetWithKnownMemberId, testTxnCommitOffsetWithIllegalGeneration,
    testTxnCommitOffsetWithLegalGeneration, testGenericGroupTransactionalOffsetCommit, testCommitTransactionalOffset,
    testGenericGroupTransactionalOffsetCommitWithUnknownMemberId,
    testGenericGroupTransactionalOffsetCommitWithIllegalGenerationId"""
    joined = at.joined()
    for member_id, generation, error in (
        ("invalid-member", -1, ErrorCode.UNKNOWN_MEMBER_ID),
        (joined.member_id, joined.generation + 5, ErrorCode.ILLEGAL_GENERATION),
        (joined.member_id, joined.generation, ErrorCode.NONE),
    ):
        assert errors(at.commit_in_transaction(PRODUCER, {ONE: 0}, member_id, generation).response) == {error}


def test_transactions_of_no_group(at: Harness) -> None:
    """testTransactionalOffsetCommitWithUnknownGroupId, testGenericGroupTransactionalOffsetCommitWithUnknownGroupId: the Scala
    coordinator creates the group, and then does not find the member."""
    refused = at.commit_in_transaction(PRODUCER, {ONE: 0}, "member", 10).response
    assert errors(refused) == {ErrorCode.UNKNOWN_MEMBER_ID if at.era == "3" else ErrorCode.ILLEGAL_GENERATION}
    assert errors(at.commit_in_transaction(PRODUCER, {ONE: 0}).response) == {ErrorCode.NONE}


def test_what_the_log_says_of_a_transaction(at: Harness) -> None:
    """testVerificationErrorsForTxnOffsetCommits"""
    for error, expected in (
        (ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.NETWORK_EXCEPTION, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
    ):
        at.append_error = error
        refused = at.commit_in_transaction(PRODUCER, {ONE: 0, THREE: 0}).response
        assert refused.errors == {ONE: expected, THREE: expected}


@pytest.mark.parametrize("transactional", [False, True])
def test_metadata_that_is_too_long(at: Harness, transactional: bool) -> None:
    """testTxnOffsetMetadataTooLarge; other partitions of the request are committed, and the length is in UTF-16 code units."""
    offsets = {ONE: OffsetToCommit(37, metadata="s" * 4097), TWO: OffsetToCommit(38, metadata="\N{PILE OF POO}" * 2048)}
    call = at.commit_in_transaction(PRODUCER, offsets) if transactional else at.commit(offsets)
    assert call.response.errors == {ONE: ErrorCode.OFFSET_METADATA_TOO_LARGE, TWO: ErrorCode.NONE}
    written = len(at.written)
    only = {ONE: offsets[ONE]}
    again = at.commit_in_transaction(PRODUCER, only) if transactional else at.commit(only)
    assert again.response.errors == {ONE: ErrorCode.OFFSET_METADATA_TOO_LARGE}
    assert len(at.written) == written


def test_deleting_offsets_of_no_group(at: Harness) -> None:
    """testDeleteOffsetOfNonExistingGroup, testDeleteOffsetOfDeadConsumerGroup"""
    for _ in range(2):
        deleted = at.delete_offsets(FOO)
        assert (deleted.error, deleted.errors) == (ErrorCode.GROUP_ID_NOT_FOUND, {})
        if not at.hold:
            at.dead_group()


def test_deleting_offsets_of_a_group_in_use_that_is_no_consumer(at: Harness) -> None:
    """testDeleteOffsetOfNonEmptyNonConsumerGroup, testValidateOffsetDelete"""
    at.joined(protocol_type="My Protocol")
    deleted = at.delete_offsets(FOO)
    assert (deleted.error, deleted.errors) == (ErrorCode.NON_EMPTY_GROUP, {})


@pytest.mark.parametrize("protocol_type", ["My Protocol", "consumer"])
def test_deleting_offsets_of_an_empty_group(at: Harness, protocol_type: str) -> None:
    """testDeleteOffsetOfEmptyNonConsumerGroup, testDeleteOffsetOfEmptyConsumerGroup, testGenericGroupOffsetDelete"""
    joined = at.stable_member(protocol_type=protocol_type)
    assert errors(at.commit({FOO: 37, BAR: 37}, joined.member_id, 1).response) == {ErrorCode.NONE}
    at.leave(joined.member_id)
    deleted = at.delete_offsets(FOO)
    assert (deleted.error, deleted.errors) == (ErrorCode.NONE, {FOO: ErrorCode.NONE})
    assert at.fetched(FOO, BAR) == {FOO: NOTHING, BAR: 37}


def test_deleting_offsets_when_nobody_knows_the_subscription(at: Harness) -> None:
    """testDeleteOffsetOfConsumerGroupWithUnparsableProtocol"""
    joined = at.stable_member()
    at.commit({FOO: 37}, joined.member_id, 1)
    deleted = at.delete_offsets(FOO)
    assert (deleted.error, deleted.errors) == (ErrorCode.NONE, {FOO: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC})
    assert at.fetched(FOO) == {FOO: 37}


def test_deleting_offsets_of_topics_that_are_not_subscribed(at: Harness) -> None:
    """testDeleteOffsetOfStableConsumerGroup, testGenericGroupOffsetDeleteWithErrors"""
    subscription = encode_subscription(ConsumerProtocolSubscription(("bar",)))
    joined = at.stable_member(protocols=(Protocol("protocol", subscription),))
    at.commit({FOO: 37, BAR: 37}, joined.member_id, 1)
    deleted = at.delete_offsets(FOO, BAR)
    assert deleted.errors == {FOO: ErrorCode.NONE, BAR: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC}
    assert at.fetched(FOO, BAR) == {FOO: NOTHING, BAR: 37}


def test_offsets_of_topics_that_are_gone(at: Harness) -> None:
    """testOnTopicsDeleted, testGenericGroupOffsetDeleteWithPendingTransactionalOffsets,
    testDeleteGroupAllOffsetsWithPendingTransactionalOffsets: of every group, subscribed or not. Offsets pending in a
    transaction are removed where the tombstones of the era apply to them."""
    at.commit({FOO: 1, BAR: 2})
    at.commit_in_transaction(PRODUCER, {FOO: 3})
    at.take(at.shard.topics_deleted(frozenset({"foo"}), at.now_ms))
    assert at.fetched() == {BAR: 2}
    at.end_transaction(PRODUCER, ControlType.COMMIT)
    assert at.fetched() == ({BAR: 2} if at.era == "4" else {BAR: 2, FOO: 3})


def test_a_commit_is_answered_when_the_log_has_it(at: Harness) -> None:
    """Beside the cases: until then it cannot be fetched. A `requireStable` fetch gets a retriable error, or waits (KIP-447)."""
    at.hold = True
    call = at.commit({ONE: 5})
    stable = at.ask_for_offsets(ONE)
    assert not call.answered
    assert at.fetch(ONE, stable=False).offsets == {ONE: FetchedOffset()}
    assert stable.answered == (at.era == "3")
    at.release()
    assert errors(call.response) == {ErrorCode.NONE}
    unstable = FetchedOffset(error=ErrorCode.UNSTABLE_OFFSET_COMMIT)
    assert stable.response.offsets == {ONE: unstable if at.era == "3" else FetchedOffset(5)}
    assert at.fetched(ONE) == {ONE: 5}


@pytest.mark.parametrize(("retention_ms", "version", "expires"), [(-1, None, -1), (1000, 1, 1000)])
def test_the_record_of_a_commit(at: Harness, retention_ms: int, version: int | None, expires: int) -> None:
    """testGenericGroupOffsetCommitWithRetentionTime; value version 3 of Scala brokers, 4 since 4.1, and 1, which has no leader
    epoch, for a commit with a retention time."""
    at.commit({ONE: OffsetToCommit(5, 2, None)}, retention_ms=retention_ms)
    record = at.written[-1]
    assert record.value_version == (version or {"3": 3, "4": 4}[at.era])
    expire_timestamp = -1 if expires == -1 else at.now_ms + expires
    assert record.value == OffsetCommitValue(5, 2 if expires == -1 else -1, "", at.now_ms, expire_timestamp)
    assert expect(OffsetCommitKey, record.key).group == GROUP
