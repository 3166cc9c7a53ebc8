"""OffsetCommit v0 to v4, which clients still send to brokers before 4.0: timestamps, retentions, and offsets in ZooKeeper."""

import pytest
from coordinator_harness import GROUP, START_MS, Harness
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_core.codec import decode
from coordinator_core.codec.messages.offsets import OffsetCommitValue
from coordinator_core.codec.records import Record
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.offsets import FetchedOffset, OffsetCommitRequest, OffsetFetchRequest, OffsetToCommit
from coordinator_core.state.era import ERAS

AT = TopicPartition("orders", 0)
OTHER = TopicPartition("orders", 1)
#: Eras whose commits all expire (before KIP-211).
EXPIRING = ("0.9", "0.10", "1")
LATER = ("2", "3", "4")
WITH_ZOOKEEPER = ("0.9", "0.10", "1", "2")
DAY_MS = 86_400_000
INT64 = st.integers(-(2**63), 2**63 - 1)


def written(harness: Harness) -> OffsetCommitValue:
    """The value of the last commit in the log."""
    log_record = harness.logs[harness.partition][-1]
    record = decode(log_record.key, log_record.value)
    assert isinstance(record, Record)
    assert isinstance(record.value, OffsetCommitValue)
    return record.value


def committed(era: str, *, timestamp: int = -1, retention_ms: int = -1) -> OffsetCommitValue:
    harness = Harness(era, offsets_retention_minutes=1440)
    call = harness.commit({AT: OffsetToCommit(5, commit_timestamp=timestamp)}, retention_ms=retention_ms)
    assert call.response.errors == {AT: ErrorCode.NONE}
    return written(harness)


def of_java(number: int) -> int:
    """A `long`: the lowest 64 bits."""
    return int.from_bytes((number % 2**64).to_bytes(8), signed=True)


@pytest.mark.parametrize("era", LATER)
def test_the_timestamp_of_a_client_is_the_time_of_the_commit(era: str) -> None:
    assert committed(era, timestamp=42).commit_timestamp == 42
    assert committed(era, timestamp=42).expire_timestamp == -1
    assert committed(era).commit_timestamp == START_MS


@pytest.mark.parametrize("era", EXPIRING)
def test_the_timestamp_of_a_client_begins_the_retention(era: str) -> None:
    value = committed(era, timestamp=42)
    assert (value.commit_timestamp, value.expire_timestamp) == (START_MS, 42 + DAY_MS)
    value = committed(era)
    assert (value.commit_timestamp, value.expire_timestamp) == (START_MS, START_MS + DAY_MS)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("retention_ms", [2**63 - 1, 2**62, -2, -(2**63), 0, 1])
def test_a_retention_of_any_size_is_stored_as_java_adds_it(era: str, retention_ms: int) -> None:
    assert committed(era, retention_ms=retention_ms).expire_timestamp == of_java(START_MS + retention_ms)


def test_the_retention_of_old_clients_that_means_for_ever() -> None:
    """2.8.2 wrote -9223370241132607229 at 1795722168580."""
    value = committed("3", retention_ms=2**63 - 1)
    assert value.expire_timestamp == -(2**63) + START_MS - 1


@settings(max_examples=40, deadline=None)
@given(era=st.sampled_from(sorted(ERAS)), timestamp=INT64, retention_ms=INT64)
def test_any_numbers_can_be_stored_and_fetched(era: str, timestamp: int, retention_ms: int) -> None:
    harness = Harness(era)
    call = harness.commit({AT: OffsetToCommit(5, commit_timestamp=timestamp)}, retention_ms=retention_ms)
    assert call.response.errors == {AT: ErrorCode.NONE}
    assert harness.fetch(AT).offsets[AT].offset == 5
    harness.advance(harness.config.offsets_retention_check_interval_ms)
    harness.crash()


@pytest.mark.parametrize("era", ERAS)
def test_offsets_in_zookeeper(era: str) -> None:
    """v0: brokers with KRaft refuse it. Those with ZooKeeper keep no metadata, and have an error for no offset."""
    harness = Harness(era)
    to_zookeeper = OffsetCommitRequest(GROUP, {AT: OffsetToCommit(5, metadata="m")}, in_zookeeper=True)
    from_zookeeper = OffsetFetchRequest(GROUP, (AT, OTHER), in_zookeeper=True)
    committed_there, fetched = harness.send(to_zookeeper).response, harness.send(from_zookeeper).response
    if era in WITH_ZOOKEEPER:
        assert committed_there.errors == {AT: ErrorCode.NONE}
        assert fetched.offsets == {
            AT: FetchedOffset(5),
            OTHER: FetchedOffset(error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        }
    else:
        assert committed_there.errors == {AT: ErrorCode.UNSUPPORTED_VERSION}
        assert fetched.error is ErrorCode.UNSUPPORTED_VERSION
        assert harness.logs[harness.partition] == []
