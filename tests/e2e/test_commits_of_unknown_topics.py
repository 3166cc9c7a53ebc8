"""Commits for topics and partitions that do not exist: refused as by brokers, or by their number where no topic is known."""

from collections.abc import Iterator
from uuid import UUID

import pytest
from client_codecs import read_response
from transaction_scenario import PLAIN, TransactionClient
from wire_connection import Wire

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.protocol import apis
from coordinator_core.protocol.cluster import MetadataRequest
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.groups import ListGroupsRequest
from coordinator_core.protocol.offsets import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    OffsetToCommit,
    TxnOffsetCommitRequest,
)
from pipelines.examples.private.private_coordinator import PrivateCoordinator

ORDERS, AUDIT = TopicPartition("orders", 1), TopicPartition("audit", 0)
#: Out of range, negative, and of no topic.
MISSING = (TopicPartition("orders", 2), TopicPartition("orders", -1), TopicPartition("nope", 0))
UNKNOWN = dict.fromkeys(MISSING, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
EXPECTED = {ORDERS: ErrorCode.NONE, AUDIT: ErrorCode.NONE} | UNKNOWN


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateCoordinator]:
    topics: dict[str, int | dict[str, int | str | bool]] = {"orders": 2, "audit": {"partitions": 1, "data": True}}
    with PrivateCoordinator(tmp_path_factory.mktemp("declared") / "log", topics=topics) as process:
        yield process


@pytest.fixture
def client(served: PrivateCoordinator) -> Iterator[Wire]:
    wire = Wire(served.port)
    yield wire
    wire.close()


def offsets(*partitions: TopicPartition) -> dict[TopicPartition, OffsetToCommit]:
    return dict.fromkeys(partitions, OffsetToCommit(3))


def fetched(client: Wire, group: str) -> dict[TopicPartition, int]:
    """All committed offsets."""
    response = client.ask(apis.OFFSET_FETCH, 8, OffsetFetchRequest(group))
    return {partition: found.offset for partition, found in response.offsets.items()}


@pytest.mark.parametrize("version", [2, 7, 8, 9])
def test_offset_commit(client: Wire, version: int) -> None:
    group = f"plain-{version}"
    request = OffsetCommitRequest(group, offsets(ORDERS, AUDIT, *MISSING))
    assert client.ask(apis.OFFSET_COMMIT, version, request).errors == EXPECTED
    assert fetched(client, group) == {ORDERS: 3, AUDIT: 3}


def test_offset_commit_by_topic_id(client: Wire) -> None:
    ids = {topic.name: topic.topic_id for topic in client.ask(apis.METADATA, 12, MetadataRequest()).topics}
    by_id = {
        partition: OffsetToCommit(4, topic_id=ids.get(partition.topic, UUID(int=7))) for partition in (ORDERS, AUDIT, *MISSING)
    }
    client.send(apis.OFFSET_COMMIT, 10, OffsetCommitRequest("by-id", by_id))
    names = {topic_id: name for name, topic_id in ids.items()} | {UUID(int=7): "nope"}
    found = read_response(apis.OFFSET_COMMIT, 10, client.receive(), names).parts[0]
    assert isinstance(found, OffsetCommitResponse)
    assert found.errors == EXPECTED | {MISSING[2]: ErrorCode.UNKNOWN_TOPIC_ID}
    assert fetched(client, "by-id") == {ORDERS: 4, AUDIT: 4}


@pytest.mark.parametrize("version", [2, 4])
def test_offset_commit_in_a_transaction(client: Wire, version: int) -> None:
    transactions = TransactionClient(client)
    name = f"transaction-{version}"
    producer = transactions.init(name, PLAIN)
    transactions.add_offsets(name, producer, PLAIN)
    request = TxnOffsetCommitRequest(f"group-{name}", name, producer, offsets(ORDERS, *MISSING))
    assert client.ask(apis.TXN_OFFSET_COMMIT, version, request).errors == {ORDERS: ErrorCode.NONE} | UNKNOWN
    transactions.end(name, producer, PLAIN, commit=True)
    transactions.describe(name)
    assert fetched(client, f"group-{name}") == {ORDERS: 3}


def test_offset_delete(client: Wire) -> None:
    assert client.ask(apis.OFFSET_COMMIT, 8, OffsetCommitRequest("deleting", offsets(ORDERS, AUDIT))).errors[ORDERS] == 0
    request = OffsetDeleteRequest("deleting", (ORDERS, *MISSING))
    found = client.ask(apis.OFFSET_DELETE, 0, request)
    assert (found.error, found.errors) == (ErrorCode.NONE, {ORDERS: ErrorCode.NONE} | UNKNOWN)
    assert fetched(client, "deleting") == {AUDIT: 3}
    # an error of the group replaces those of partitions
    found = client.ask(apis.OFFSET_DELETE, 0, OffsetDeleteRequest("missing-group", (ORDERS, *MISSING)))
    assert (found.error, found.errors) == (ErrorCode.GROUP_ID_NOT_FOUND, {})


@pytest.mark.parametrize("partitions", [(), MISSING])
def test_nothing_that_exists_reaches_no_group(client: Wire, partitions: tuple[TopicPartition, ...]) -> None:
    """Not even a missing group is an error then, and none is created."""
    request = OffsetCommitRequest("never-created", offsets(*partitions), "member", 5)
    assert client.ask(apis.OFFSET_COMMIT, 9, request).errors == dict.fromkeys(partitions, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    listed = client.ask(apis.LIST_GROUPS, 4, ListGroupsRequest()).groups
    assert "never-created" not in {group.group_id for group in listed}


def test_a_coordinator_without_topics_takes_all_commits_for_possible_partitions(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """It does not know the topics of its clients, which are those of another cluster."""
    possible = (ORDERS, TopicPartition("orders", 2), TopicPartition("nope", 0), TopicPartition("nope", 99_999))
    impossible = tuple(TopicPartition("orders", number) for number in (-(2**31), -1, 100_000, 20_000_000, 2**31 - 1))
    with PrivateCoordinator(tmp_path_factory.mktemp("none") / "log") as process:
        wire = Wire(process.port)
        errors = wire.ask(apis.OFFSET_COMMIT, 8, OffsetCommitRequest("g", offsets(*possible, *impossible))).errors
        assert {at for at, error in errors.items() if error is ErrorCode.NONE} == set(possible)
        assert {errors[at] for at in impossible} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert fetched(wire, "g") == dict.fromkeys(possible, 3)
        wire.close()
