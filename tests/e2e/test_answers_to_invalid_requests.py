"""Responses to requests that valid clients do not send, as brokers of 4.3 give them; `tests/differential` compares them."""

from collections.abc import Iterator
from typing import Any

import pytest
from data_partitions import batch
from differential_side import CLOSED, Side, Step
from hostile_requests import now_ms
from transaction_scenario import PLAIN, TransactionClient
from wire_connection import Wire

from coordinator_core.codec.messages.offsets import ZERO_UUID
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.log.entries import ControlType
from coordinator_core.protocol import apis
from coordinator_core.protocol.api import AnyApi
from coordinator_core.protocol.cluster import FetchPartition, FetchRequest, IsolationLevel, ProducePartition, ProduceRequest
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.offsets import ProducerEpoch, TxnMarkerRequest
from coordinator_core.protocol.transactions import InitProducerIdRequest
from coordinator_core.wire import PartitionMarker
from pipelines.examples.private.private_coordinator import PrivateCoordinator

DATA = TopicPartition("data", 0)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateCoordinator]:
    topics: dict[str, int | dict[str, int | str | bool]] = {
        "orders": 1,
        "data": {"partitions": 1, "data": True},
        "fetched": {"partitions": 1, "data": True},
    }
    directory = tmp_path_factory.mktemp("invalid") / "log"
    with PrivateCoordinator(directory, topics=topics, group_initial_rebalance_delay_ms=0) as process:
        yield process
        assert process.events("unexpected error") == []


@pytest.fixture
def wire(served: PrivateCoordinator) -> Iterator[Wire]:
    connection = Wire(served.port)
    yield connection
    connection.close()


@pytest.fixture
def side(served: PrivateCoordinator) -> Iterator[Side]:
    connection = Side("Grouplake", served.port)
    yield connection
    connection.close()


def ask(side: Side, api: AnyApi, version: int, **body: Any) -> dict[str, Any]:
    return side.ask(Step(0, api, version, body))


@pytest.mark.parametrize("kind", [-1, 2, 77])
def test_coordinators_of_an_unknown_type(side: Side, kind: int) -> None:
    one = ask(side, apis.FIND_COORDINATOR, 2, key="a", key_type=kind)
    assert (one["error_code"], one["node_id"]) == (42, -1)
    several = ask(side, apis.FIND_COORDINATOR, 4, coordinator_keys=["a", "b"], key_type=kind)["coordinators"]
    assert [(each["key"], each["error_code"]) for each in several] == [("a", 42), ("b", 42)]


@pytest.mark.parametrize("name", [None, "id"])
@pytest.mark.parametrize("producer", [ProducerEpoch(5, -1), ProducerEpoch(-1, 5)])
def test_half_a_producer(wire: Wire, name: str | None, producer: ProducerEpoch) -> None:
    found = wire.ask(apis.INIT_PRODUCER_ID, 4, InitProducerIdRequest(name, 60_000, producer))
    assert (found.error, found.producer) == (ErrorCode.INVALID_REQUEST, ProducerEpoch(-1, -1))


@pytest.mark.parametrize("at", [DATA, TopicPartition("__consumer_offsets", 0)])
@pytest.mark.parametrize("producer", [ProducerEpoch(7, -1), ProducerEpoch(-1, 0)])
def test_markers_of_no_producer(wire: Wire, at: TopicPartition, producer: ProducerEpoch) -> None:
    marker = PartitionMarker(*at, TxnMarkerRequest(producer, ControlType.ABORT))
    assert wire.ask(apis.WRITE_TXN_MARKERS, 1, marker).error is ErrorCode.UNKNOWN_SERVER_ERROR
    missing = marker._replace(topic="nope")
    assert wire.ask(apis.WRITE_TXN_MARKERS, 1, missing).error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_authorized_operations_of_groups(side: Side) -> None:
    for wanted, operations in ((True, {3, 6, 8, 10, 11}), (False, None)):
        (group,) = ask(side, apis.DESCRIBE_GROUPS, 5, groups=["g"], include_authorized_operations=wanted)["groups"]
        assert group["authorized_operations"] == operations


@pytest.mark.parametrize("version", [0, 1, 2])
def test_produce_versions_that_are_only_listed(side: Side, version: int) -> None:
    assert ask(side, apis.PRODUCE, version, acks=1, timeout_ms=9, topic_data=[]) == CLOSED


@pytest.mark.parametrize("acks", [5, -2])
def test_invalid_acks(wire: Wire, acks: int) -> None:
    """After errors of the topic and of the transaction."""
    parts = tuple(ProducePartition(topic, ZERO_UUID, 0, batch([b"v"])) for topic in ("data", "nope"))
    found = wire.ask(apis.PRODUCE, 9, ProduceRequest(parts, acks)).partitions
    assert [each.error for each in found] == [ErrorCode.INVALID_REQUIRED_ACKS, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_errors_of_an_append_have_the_start_of_the_log(wire: Wire) -> None:
    producer = TransactionClient(wire).init(None, PLAIN)
    data = batch([b"v"], producer=producer.producer_id, epoch=0, sequence=0)
    part = ProducePartition("data", ZERO_UUID, 0, data)
    assert wire.ask(apis.PRODUCE, 9, ProduceRequest((part,))).partitions[0].error is ErrorCode.NONE
    part = part._replace(records=batch([b"v"], producer=producer.producer_id, epoch=0, sequence=9))
    (found,) = wire.ask(apis.PRODUCE, 9, ProduceRequest((part,))).partitions
    assert (found.error, found.base_offset, found.log_start_offset) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1, 0)


def test_a_member_id_is_not_returned_with_an_unexpected_error(side: Side) -> None:
    body: dict[str, Any] = {"group_id": "pending", "session_timeout_ms": 60_000, "rebalance_timeout_ms": 60_000}
    body |= {"protocol_type": "consumer", "protocols": [{"name": "range", "metadata": b""}]}
    known = ask(side, apis.JOIN_GROUP, 5, member_id="", **body)
    assert (known["error_code"], bool(known["member_id"])) == (79, True)
    refused = ask(side, apis.JOIN_GROUP, 5, member_id=known["member_id"], group_instance_id="i", **body)
    assert (refused["error_code"], refused["member_id"]) == (-1, "")


def test_a_group_is_hidden_until_the_next_record(side: Side) -> None:
    """Of a commit that is refused; a refused JoinGroup writes the empty group."""

    def commit(group: str, metadata: str) -> int:
        place = {"partition_index": 0, "committed_offset": 1, "committed_metadata": metadata}
        topics = [{"name": "orders", "partitions": [place]}]
        request = {"group_id": group, "generation_id_or_member_epoch": -1, "member_id": "", "topics": topics}
        return int(ask(side, apis.OFFSET_COMMIT, 8, **request)["topics"][0]["partitions"][0]["error_code"])

    def state(group: str) -> str:
        return str(ask(side, apis.DESCRIBE_GROUPS, 4, groups=[group])["groups"][0]["group_state"])

    assert commit("hidden", "x" * 5000) == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert state("hidden") == "Dead"
    assert "hidden" not in {each["group_id"] for each in ask(side, apis.LIST_GROUPS, 3)["groups"]}
    assert commit("hidden", "") == ErrorCode.NONE
    assert state("hidden") == "Empty"
    join = {"session_timeout_ms": 60_000, "rebalance_timeout_ms": 1, "member_id": "", "protocol_type": "consumer"}
    assert ask(side, apis.JOIN_GROUP, 3, group_id="refused", protocols=[], **join)["error_code"] == 23
    assert state("refused") == "Empty"


def test_aborted_transactions_beyond_the_last_stable_offset(wire: Wire) -> None:
    client, place = TransactionClient(wire), TopicPartition("fetched", 0)

    def write(name: str, *, end: bool | None) -> int:
        producer = client.init(name, PLAIN)
        client.add(name, producer, PLAIN, place.topic)
        # with an old timestamp, the next batch would begin a segment, where a read ends
        data = batch(
            [b"v"],
            producer=producer.producer_id,
            epoch=producer.producer_epoch,
            sequence=0,
            transactional=True,
            timestamp=now_ms(),
        )
        request = ProduceRequest((ProducePartition(place.topic, ZERO_UUID, 0, data),), transactional_id=name)
        assert wire.ask(apis.PRODUCE, 9, request).partitions[0].error is ErrorCode.NONE
        if end is not None:
            client.end(name, producer, PLAIN, commit=end)
            client.describe(name)
        return producer.producer_id

    write("committed", end=True)
    write("open", end=None)
    aborted = write("aborted", end=False)
    asked = FetchPartition(place.topic, ZERO_UUID, 0, 0)
    fetch = FetchRequest((asked,), isolation_level=IsolationLevel.READ_COMMITTED)
    (found,) = wire.ask(apis.FETCH, 11, fetch).partitions
    assert found.last_stable_offset == 2
    assert [(each.producer_id, each.first_offset) for each in found.aborted or ()] == [(aborted, 3)]
