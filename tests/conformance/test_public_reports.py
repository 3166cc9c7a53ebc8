"""Logs from public reports on Kafka, its clients and other readers of the topic. docs/conformance.md lists the reports."""

from base64 import b64decode
from typing import Any

import pytest
from log_builder import GROUP, NOW_MS, TOPIC, Log, offsets, retention_ms

from coordinator_core.codec import Malformed, Record, decode, encode
from coordinator_core.codec.messages.classic import GroupMetadataKey, GroupMetadataValue
from coordinator_core.codec.messages.consumer import ConsumerGroupMetadataValue
from coordinator_core.codec.messages.offsets import ZERO_UUID, OffsetCommitKey, OffsetCommitValue
from coordinator_core.codec.messages.streams import StreamsGroupMetadataValue
from coordinator_core.state.anomaly import AnomalyKind

#: A group value of a Redpanda cluster: Kafka's version 3, but each member begins with a version of its own (franz-go 799).
REDPANDA_VALUE = b64decode(
    "AAMAB2Nvbm5lY3QAAAAJAAlzZXNzaW9uZWQAPGNvbm5lY3QtMTcyLjIzLjAuNTo4MDgzLTRhNjQ2YTJjLTQ5YjMtNDE4ZC05MjJlLWY4ZDdkMjk4MTRjYgAA"
    "AZEZRlAJAAAAAQADADxjb25uZWN0LTE3Mi4yMy4wLjU6ODA4My00YTY0NmEyYy00OWIzLTQxOGQtOTIyZS1mOGQ3ZDI5ODE0Y2L//wAXY29ubmVjdC0xNzIu"
    "MjMuMC41OjgwODMACjE3Mi4yMy4wLjUAAOpgAAAnEAAAAJYAAgAXaHR0cDovLzE3Mi4yMy4wLjU6ODA4My8AAAAAAAAAMQAAAG8AAgAAADxjb25uZWN0LTE3"
    "Mi4yMy4wLjU6ODA4My0wNDhmYzNkNC1lZTJkLTQ1NDgtYWIzYi01MWI1NWFjNDQxZjcAF2h0dHA6Ly8xNzIuMjMuMC41OjgwODMvAAAAAAAAAC0AAAAAAAAA"
    "AAAAAAAAAABvAAIAAAA8Y29ubmVjdC0xNzIuMjMuMC41OjgwODMtNGE2NDZhMmMtNDliMy00MThkLTkyMmUtZjhkN2QyOTgxNGNiABdodHRwOi8vMTcyLjIz"
    "LjAuNTo4MDgzLwAAAAAAAAAxAAAAAAAAAAAAAAAA"
)


@pytest.mark.parametrize(
    ("record_type", "value", "group_type"),
    [
        (3, ConsumerGroupMetadataValue(7), "consumer"),
        (17, StreamsGroupMetadataValue(7, 0), "streams"),
    ],
    ids=["consumer", "streams"],
)
def test_offsets_of_a_classic_group_before_its_successor(record_type: int, value: Any, group_type: str) -> None:
    """KAFKA-20254: compaction removed the classic group and its tombstone, and left its offsets."""
    log = Log()
    log.commit(0, 100)
    log.modern(record_type, value)
    state = log.load("4")
    assert [(group.group_type, group.generation) for group in state.groups().values()] == [(group_type, 7)]
    assert offsets(state) == {0: 100}


@pytest.mark.parametrize(("era", "retention"), [("1", retention_ms("1")), ("2", None), ("3", None), ("4", None)])
def test_an_offset_of_value_version_1_without_an_expiry(era: str, retention: int | None) -> None:
    """KAFKA-8069: brokers 2.1 took the -1 for a time, and removed such offsets at once."""
    log = Log()
    log.append(Record(1, OffsetCommitKey(GROUP, TOPIC, 0), OffsetCommitValue(100, -1, "", NOW_MS, -1, ZERO_UUID), 1))
    (commit,) = log.load(era).committed(GROUP).values()
    assert commit.expire_timestamp == (None if retention is None else NOW_MS + retention)


def test_a_group_value_that_a_redpanda_cluster_wrote() -> None:
    """franz-go 799: Kafka's layout cannot read it; Redpanda's reads every byte."""
    key, _ = encode(Record(2, GroupMetadataKey(GROUP), None, None))
    found = decode(key, REDPANDA_VALUE)
    assert isinstance(found, Record)
    group = found.value
    assert isinstance(group, GroupMetadataValue)
    assert (group.protocol_type, group.generation, group.protocol) == ("connect", 9, "sessioned")
    assert group.current_state_timestamp == 1_722_705_924_105
    (member,) = group.members
    assert member.member_id == group.leader == "connect-172.23.0.5:8083-4a646a2c-49b3-418d-922e-f8d7d29814cb"
    assert (member.client_id, member.client_host) == ("connect-172.23.0.5:8083", "172.23.0.5")
    assert (member.group_instance_id, member.rebalance_timeout, member.session_timeout) == (None, 60_000, 10_000)
    assert (len(member.subscription), len(member.assignment)) == (150, 111)


def test_a_group_value_of_no_layout() -> None:
    """The value of franz-go 799 with its last byte cut off: it is named as unreadable, and no member is made up."""
    key, _ = encode(Record(2, GroupMetadataKey(GROUP), None, None))
    found = decode(key, REDPANDA_VALUE[:-1])
    assert isinstance(found, Malformed)
    assert (found.part, found.problem) == ("value", "needs 28526 bytes, 372 are left")


@pytest.mark.parametrize("value", [None, b"", b"\x00" * 8], ids=["tombstone", "empty", "zeros"])
def test_a_key_that_ends_early(value: bytes | None) -> None:
    """prometheus-kafka-consumer-group-exporter 34: the bytes 00 00 00 01."""
    found = decode(b"\x00\x00\x00\x01", value)
    assert isinstance(found, Malformed)
    assert (found.part, found.problem) == ("key", "needs 1 bytes, 0 are left")


def test_records_around_an_unreadable_one_are_loaded() -> None:
    """prometheus-kafka-consumer-group-exporter 22: it stopped at the first such record."""
    log = Log()
    log.commit(0, 100)
    log.raw(b"\x00\x00\x00\x01", b"\x00")
    log.raw(encode(Record(2, GroupMetadataKey(GROUP), None, None))[0], REDPANDA_VALUE[:-1])
    log.commit(1, 200)
    state, anomalies = log.load_with_anomalies("4")
    assert offsets(state) == {0: 100, 1: 200}
    assert [(anomaly.offset, anomaly.kind) for anomaly in anomalies] == [
        (1, AnomalyKind.UNDECODABLE),
        (2, AnomalyKind.UNDECODABLE),
    ]
