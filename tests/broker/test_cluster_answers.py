"""Answers about topics without data and about groups of another protocol, from a broker and from the coordinator of its era.

Requests and responses are kafka-python's own messages, so that no product code is involved.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest
from describe_layouts import DESCRIBE, Reader, array
from group_offsets import commit_offsets
from kafka.protocol.consumer import FetchRequest, FetchResponse, ListOffsetsRequest, ListOffsetsResponse
from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse, MetadataRequest, MetadataResponse
from kafka.protocol.producer import ProduceRequest, ProduceResponse
from kafka.record import MemoryRecordsBuilder
from live_kafka import create_topic
from protocol_connection import ProtocolConnection

from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.examples.private.private_coordinator import PrivateCoordinator

pytestmark = pytest.mark.broker

TOPIC, GROUP = "orders", "classic"
PRODUCE, FETCH, LIST_OFFSETS, METADATA, CONSUMER_GROUP_DESCRIBE = 0, 1, 2, 3, 69
#: First versions by topic id.
PRODUCE_BY_ID, FETCH_BY_ID = 13, 13
NO_ID, NO_TOPIC_ID = UUID(int=0), UUID(int=99)


class Side:
    """One of the two servers."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        listed = self.request(ApiVersionsRequest(client_software_name="t", client_software_version="1"), ApiVersionsResponse, 3)
        self.versions = {api.api_key: range(api.min_version, api.max_version + 1) for api in listed.api_keys}
        kind = MetadataRequest.MetadataRequestTopic
        found = self.request(metadata(kind(name=TOPIC, topic_id=NO_ID)), MetadataResponse, 12)
        self.topic_id: UUID = found.topics[0].topic_id

    def request(self, request: Any, response: Any, version: int) -> Any:
        with ProtocolConnection(self.bootstrap, "test") as connection:
            return connection.request(request, response, version)


@dataclass(frozen=True)
class Sides:
    era: str
    broker: Side
    ours: Side

    def common(self, api: int) -> range:
        """The versions that both list."""
        theirs, ours = self.broker.versions[api], self.ours.versions[api]
        return range(max(theirs.start, ours.start), min(theirs.stop, ours.stop))


def metadata(*topics: Any) -> Any:
    return MetadataRequest(
        topics=list(topics),
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )


@pytest.fixture(scope="module", params=[("4.1.1", "4"), pytest.param(("3.9.1", "3"), marks=pytest.mark.slow)])
def sides(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    log = tmp_path_factory.mktemp("coordinator") / "log"
    version, era = request.param
    ours = PrivateCoordinator(log, topics={TOPIC: 2}, era=era, offsets_topic_num_partitions=2)
    with PrivateBroker(version, offsets_partitions=2) as broker, ours:
        create_topic(broker.bootstrap, TOPIC, 2)
        for bootstrap in (broker.bootstrap, ours.bootstrap):
            commit_offsets(bootstrap, GROUP, {(TOPIC, 0): 5})
        yield Sides(era, Side(broker.bootstrap), Side(ours.bootstrap))


def test_produce_and_old_versions_are_listed(sides: Sides) -> None:
    assert sides.ours.versions[PRODUCE] == sides.broker.versions[PRODUCE]
    assert sides.ours.versions[FETCH].start == sides.broker.versions[FETCH].start
    # brokers of 3.7 to 3.9 list it, and reject it unless an early-access protocol is switched on
    expected = sides.broker.versions[CONSUMER_GROUP_DESCRIBE] if sides.era == "4" else None
    assert sides.ours.versions.get(CONSUMER_GROUP_DESCRIBE) == expected


def listed_offset(side: Side, version: int, topic: str, timestamp: int) -> tuple[int, ...]:
    kind = ListOffsetsRequest.ListOffsetsTopic
    partition = kind.ListOffsetsPartition(partition_index=0, current_leader_epoch=-1, timestamp=timestamp)
    request = ListOffsetsRequest(
        replica_id=-1, isolation_level=0, topics=[kind(name=topic, partitions=[partition])], timeout_ms=1000
    )
    found = side.request(request, ListOffsetsResponse, version).topics[0].partitions[0]
    return found.error_code, found.offset, found.timestamp, found.leader_epoch


def test_offsets_of_an_empty_partition(sides: Sides) -> None:
    """Latest, earliest, of the largest timestamp, earliest on disk, latest tiered, invalid positions, and times.

    Latest differs: of a topic without data it is the highest offset that a group has committed.
    """
    for version in sides.common(LIST_OFFSETS):
        for timestamp in (-1, -2, -3, -4, -5, -6, -100, 0, 1_700_000_000_000):
            theirs, ours = (listed_offset(side, version, TOPIC, timestamp) for side in (sides.broker, sides.ours))
            if timestamp == -1:
                ours = (ours[0], theirs[1], *ours[2:])
            assert ours == theirs, (version, timestamp)
    assert listed_offset(sides.ours, 7, TOPIC, -3) == (0, -1, -1, -1)
    assert listed_offset(sides.ours, 7, "unknown", -3)[0] == listed_offset(sides.broker, 7, "unknown", -3)[0] == 3


def described_topic(side: Side, version: int, name: str | None, topic_id: UUID) -> tuple[Any, ...]:
    topic = side.request(
        metadata(MetadataRequest.MetadataRequestTopic(name=name, topic_id=topic_id)), MetadataResponse, version
    ).topics[0]
    return topic.error_code, topic.name, topic.topic_id == side.topic_id, topic.topic_id == topic_id, len(topic.partitions)


@pytest.mark.parametrize("name", ["", None, "another", TOPIC])
def test_an_id_wins_over_a_name(sides: Sides, name: str | None) -> None:
    for version in range(12, sides.common(METADATA).stop):
        for known in (True, False):
            theirs, ours = (
                described_topic(side, version, name, side.topic_id if known else NO_TOPIC_ID)
                for side in (sides.broker, sides.ours)
            )
            assert ours == theirs
            assert ours[:2] == ((0, TOPIC) if known else (100, None))


def fetched(side: Side, version: int, topic: str) -> tuple[Any, ...]:
    kind = FetchRequest.FetchTopic
    partition = kind.FetchPartition(
        partition=0,
        current_leader_epoch=-1,
        fetch_offset=0,
        last_fetched_epoch=-1,
        log_start_offset=-1,
        partition_max_bytes=1000,
    )
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1000,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=[kind(topic=topic, topic_id=NO_ID, partitions=[partition])],
        forgotten_topics_data=[],
        rack_id="",
    )
    answer = side.request(request, FetchResponse, version)
    found = answer.responses[0].partitions[0]
    return answer.responses[0].topic, found.error_code, found.high_watermark, found.records or b""


def test_fetch_by_name(sides: Sides) -> None:
    """Versions 0–3 too where brokers support them: Sarama's of Kafka 0.10.2 sends v2."""
    versions = [version for version in sides.common(FETCH) if version < FETCH_BY_ID]
    assert versions[0] == sides.broker.versions[FETCH].start
    for version in versions:
        for topic in (TOPIC, "unknown"):
            assert fetched(sides.ours, version, topic) == fetched(sides.broker, version, topic), (version, topic)


def consumer_groups(side: Side, version: int, *group_ids: str) -> list[tuple[Any, ...]]:
    api, _, layout = DESCRIBE["consumer"]
    head = api.to_bytes(2) + version.to_bytes(2) + bytes(4) + b"\x00\x01t\x00"
    with ProtocolConnection(side.bootstrap, "test") as connection:
        connection.send_bytes(head + array(group_ids) + b"\x00\x00")
        reader = Reader(connection.receive_bytes(), 5)
    assert reader.int32() == 0
    return sorted(
        (each["group_id"], each["error_code"], each["error_message"], each["members"]) for each in reader.structs(layout)
    )


def test_groups_of_the_consumer_protocol(sides: Sides) -> None:
    for version in sides.common(CONSUMER_GROUP_DESCRIBE) if sides.era == "4" else ():
        theirs, ours = (consumer_groups(side, version, GROUP, "missing", "") for side in (sides.broker, sides.ours))
        assert ours == theirs
        assert [error for _, error, _, _ in ours] == [24, 69, 69]


def refused(side: Side, version: int, topic: str, partition: int, acks: int) -> tuple[int, ...]:
    kind = ProduceRequest.TopicProduceData
    records = MemoryRecordsBuilder(magic=2 if version >= 3 else version // 2, compression_type=0, batch_size=1000)
    records.append(1, b"k", b"v")
    records.close()
    data = kind.PartitionProduceData(index=partition, records=records.buffer())
    request = ProduceRequest(
        transactional_id=None, acks=acks, timeout_ms=1000, topic_data=[kind(name=topic, topic_id=NO_ID, partition_data=[data])]
    )
    answer = side.request(request, ProduceResponse, version).responses[0]
    found = answer.partition_responses[0]
    return answer.name, found.index, found.error_code, found.base_offset, found.log_append_time_ms, found.log_start_offset


def test_what_a_producer_may_not_write(sides: Sides) -> None:
    """About topics without data the coordinator answers like a broker about the topic that clients must not write to."""
    # a broker of 4.x lists versions 0–2 and closes the connection when it receives them
    first = 3 if sides.era == "4" else 0
    for version in sides.common(PRODUCE)[first:PRODUCE_BY_ID]:
        for topic, partition, acks in (("__consumer_offsets", 0, 1), ("unknown", 0, -1), (TOPIC, 99, 1), (TOPIC, 0, 5)):
            theirs, ours = (refused(side, version, topic, partition, acks) for side in (sides.broker, sides.ours))
            assert ours == theirs, (version, topic, partition, acks)
        ours = refused(sides.ours, version, TOPIC, 0, 1)
        assert ours[2:] == refused(sides.broker, version, "__consumer_offsets", 0, 1)[2:]
