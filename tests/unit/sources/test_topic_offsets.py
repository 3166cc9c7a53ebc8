"""Samples of the offsets of topics: one request of each kind per leader, and a reason for every partition without an answer."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from uuid import UUID

import pytest
from end_offset_rows import samples_from
from kafka.protocol.consumer import ListOffsetsResponse
from kafka.protocol.metadata import MetadataResponse

from coordinator_core.codec.uuids import uuid_text
from coordinator_core.health import EndOffsetSample
from coordinator_core.log.errors import LogError, LogUnreachable
from coordinator_core.sources import topic_offsets
from coordinator_core.sources.topic_offsets import TopicOffsetsSampler

EARLIEST, READ_COMMITTED, NOT_LEADER, NOT_AUTHORIZED, MISSING = -2, 1, 6, 29, 3


@dataclass
class Partition:
    leader: int = 1
    start: int = 0
    end: int = 0
    stable: int = 0
    error: int = 0


@dataclass
class Brokers:
    """Stands for a `KafkaConnection` to brokers with these topics; a number instead of a topic is its error."""

    topics: dict[str, dict[int, Partition] | int]
    silent: set[int] = field(default_factory=set)
    before_requests: Callable[[int], None] = lambda _round: None
    requests: list[Mapping[int, list[tuple[str, int]]]] = field(default_factory=list)
    lookups: list[list[str]] = field(default_factory=list)
    release: str | None = "4.1"

    def metadata(self, topics: Sequence[str] | None) -> Any:
        self.lookups.append(list(topics or ()))
        kind = MetadataResponse.MetadataResponseTopic
        found = []
        for name in topics or ():
            topic = self.topics.get(name, MISSING)
            if isinstance(topic, int):
                found.append(kind(error_code=topic, name=name, topic_id=UUID(int=0), partitions=[]))
                continue
            partitions = [
                kind.MetadataResponsePartition(error_code=0, partition_index=number, leader_id=each.leader, leader_epoch=3)
                for number, each in topic.items()
            ]
            found.append(kind(error_code=0, name=name, topic_id=topic_id(name), partitions=partitions))
        response = MetadataResponse(brokers=[], topics=found)
        response.API_VERSION = 13
        return response

    def send_all(self, requests: Mapping[int, Callable[[Any], Any]]) -> dict[int, Any]:
        self.before_requests(len(self.requests))
        sent = {node: request(None) for node, request in requests.items()}
        self.requests.append(
            {node: [(t.name, p.partition_index) for t in request.topics for p in t.partitions] for node, request in sent.items()}
        )
        return {node: self._answer(node, request) for node, request in sent.items()}

    def send_in_order(
        self, rounds: Sequence[Mapping[int, Callable[[Any], Any]]], received: Callable[[int, dict[int, Any]], object]
    ) -> None:
        for number, requests in enumerate(rounds):
            received(number, self.send_all(requests))

    def _answer(self, node: int, request: Any) -> Any:
        if node in self.silent:
            return LogUnreachable("connection refused")
        kind = ListOffsetsResponse.ListOffsetsTopicResponse
        topics = []
        for wanted in request.topics:
            answers = []
            for each in wanted.partitions:
                topic = self.topics[wanted.name]
                assert isinstance(topic, dict)
                held = topic[each.partition_index]
                latest = held.stable if request.isolation_level == READ_COMMITTED else held.end
                offset = held.start if each.timestamp == EARLIEST else latest
                error = held.error or (NOT_LEADER if held.leader != node else 0)
                answers.append(
                    kind.ListOffsetsPartitionResponse(
                        partition_index=each.partition_index, error_code=error, timestamp=-1, offset=offset, leader_epoch=3
                    )
                )
            topics.append(kind(name=wanted.name, partitions=answers))
        return ListOffsetsResponse(throttle_time_ms=0, topics=topics)


def topic_id(name: str) -> UUID:
    return UUID(bytes=name.encode().ljust(16, b"\1"))


@pytest.fixture
def sampler(monkeypatch: pytest.MonkeyPatch) -> Callable[[Brokers], TopicOffsetsSampler]:
    """A sampler of given brokers, with a clock that ticks at every look."""

    def of(brokers: Brokers) -> TopicOffsetsSampler:
        ticks = count(1_000)
        monkeypatch.setattr(topic_offsets, "borrowed_connection", lambda *_: nullcontext(brokers))
        return TopicOffsetsSampler("kafka://here:1/__consumer_offsets", None, lambda: next(ticks), more_topics=["offsets"])

    return of


Sampler = Callable[[Brokers], TopicOffsetsSampler]


def sampled(sampler: TopicOffsetsSampler, wanted: Mapping[str, Sequence[int]]) -> list[EndOffsetSample]:
    return samples_from(sampler.sample(wanted))


def described_leaders(sampler: TopicOffsetsSampler) -> list[tuple[str, int, int | None]]:
    metadata = sampler.cluster_metadata()
    assert metadata is not None
    return [(each.topic, each.partition, each.leader) for each in metadata.partitions]


def test_one_request_of_each_kind_per_leader(sampler: Sampler) -> None:
    brokers = Brokers(
        {
            "orders": {0: Partition(1, 2, 10, 9), 1: Partition(2, 0, 5, 5)},
            "bills": {0: Partition(1, 0, 7, 8), 1: Partition(1, 0, 1, 1)},
        }
    )
    samples = sampled(sampler(brokers), {"orders": [1, 0], "bills": [0]})
    assert [(s.topic, s.partition, s.log_start, s.log_end, s.last_stable, s.leader_epoch) for s in samples] == [
        # the last stable offset was requested after the log end
        ("bills", 0, 0, 7, 7, 3),
        ("orders", 0, 2, 10, 9, 3),
        ("orders", 1, 0, 5, 5, 3),
    ]
    assert {s.topic_id for s in samples} == {uuid_text(topic_id("bills")), uuid_text(topic_id("orders"))}
    assert all(s.asked_at_ms < s.answered_at_ms for s in samples)
    assert brokers.lookups == [["bills", "offsets", "orders"]]
    assert brokers.requests == [{1: [("bills", 0), ("orders", 0)], 2: [("orders", 1)]}] * 3


def test_nothing_is_requested_for_no_partition(sampler: Sampler) -> None:
    brokers = Brokers({})
    assert sampled(sampler(brokers), {"orders": []}) == []
    assert brokers.lookups == []


def test_partitions_without_an_answer_have_the_reason(sampler: Sampler) -> None:
    brokers = Brokers(
        {
            "orders": {0: Partition(end=4, stable=4), 1: Partition(leader=-1), 2: Partition(leader=2), 3: Partition(error=29)},
            "secret": NOT_AUTHORIZED,
        },
        silent={2},
    )
    samples = sampled(sampler(brokers), {"orders": [0, 1, 2, 3, 4], "secret": [0], "gone": [0]})
    assert [(s.topic, s.partition, s.log_end, s.reason) for s in samples] == [
        ("gone", 0, None, "unknown_topic_or_partition"),
        ("orders", 0, 4, None),
        ("orders", 1, None, "leader_not_available"),
        ("orders", 2, None, "leader_does_not_answer"),
        ("orders", 3, None, "topic_authorization_failed"),
        ("orders", 4, None, "unknown_topic_or_partition"),
        ("secret", 0, None, "topic_authorization_failed"),
    ]
    # a broker that did not answer is not requested in a later round
    assert len(brokers.lookups) > 1
    assert [sorted(request) for request in brokers.requests] == [[1, 2]] * 3


def test_a_leader_that_moved_is_found(sampler: Sampler) -> None:
    orders = {0: Partition(1, end=4, stable=4), 1: Partition(1, end=6, stable=6)}
    brokers = Brokers({"orders": orders})

    def move(number: int) -> None:
        if number == 1:
            orders[1].leader = 2

    brokers.before_requests = move
    moved = sampler(brokers)
    samples = sampled(moved, {"orders": [0, 1]})
    assert [(s.partition, s.log_end, s.reason) for s in samples] == [(0, 4, None), (1, 6, None)]
    assert brokers.requests[3:] == [{2: [("orders", 1)]}] * 3
    assert described_leaders(moved) == [("orders", 0, 1), ("orders", 1, 2)]


def test_the_responses_of_a_sample_describe_the_cluster(sampler: Sampler) -> None:
    brokers = Brokers({"offsets": {0: Partition(1)}, "bills": {0: Partition(-1)}, "orders": {0: Partition(2), 1: Partition(1)}})
    described = sampler(brokers)
    assert described.cluster_metadata() is None
    sampled(described, {"orders": [0], "bills": [0]})
    # `bills` has no leader and was looked up again, with `offsets`; the response with `orders` was the first one
    assert brokers.lookups == [["bills", "offsets", "orders"], ["bills", "offsets"], ["bills", "offsets"]]
    found = described.cluster_metadata()
    assert found is not None
    assert found.release == "4.1"
    assert described_leaders(described) == [("bills", 0, None), ("offsets", 0, 1), ("orders", 0, 2), ("orders", 1, 1)]
    # the next sample replaces the description
    del brokers.topics["bills"]
    sampled(described, {"orders": [0]})
    assert described_leaders(described) == [("offsets", 0, 1), ("orders", 0, 2), ("orders", 1, 1)]


def test_a_topic_deleted_between_the_requests(sampler: Sampler) -> None:
    orders = {0: Partition(end=4, stable=4)}
    brokers = Brokers({"orders": orders, "bills": {0: Partition(end=2, stable=2)}})

    def delete(number: int) -> None:
        if number == 1:
            orders[0].error = MISSING
            brokers.topics["orders"] = MISSING if len(brokers.lookups) > 1 else orders

    brokers.before_requests = delete
    samples = sampled(sampler(brokers), {"orders": [0], "bills": [0]})
    assert [(s.topic, s.log_end, s.reason) for s in samples] == [
        ("bills", 2, None),
        ("orders", None, "unknown_topic_or_partition"),
    ]


def test_no_broker_at_all_is_an_error(sampler: Sampler, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(*_: object) -> None:
        raise LogUnreachable("no broker answers at here:1")

    brokers = Brokers({})
    monkeypatch.setattr(brokers, "metadata", unreachable)
    with pytest.raises(LogError, match="no broker answers"):
        sampler(brokers).sample({"orders": [0]})
