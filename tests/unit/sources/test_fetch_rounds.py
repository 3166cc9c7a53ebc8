"""Reading from several brokers in rounds: leaders that move, responses too small, gaps, logs that shrink. No broker needed."""

from typing import Any
from uuid import UUID

import pytest
from fake_cluster import TOPIC, TOPIC_ID, FakeCluster, FakePartition

from coordinator_core.log.damage import Problem
from coordinator_core.log.errors import (
    LogTruncated,
    LogUnreachable,
    LogUnreadable,
    NotAuthorized,
    RequestRejected,
    TopicMissing,
    TopicRecreated,
)
from coordinator_core.sources.kafka import KafkaSource

NOT_LEADER, AUTHORIZATION, CORRUPT, UNKNOWN_TOPIC_ID = 6, 29, 2, 100


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    pauses: list[float] = []
    monkeypatch.setattr("coordinator_core.sources.kafka_topic.time.sleep", pauses.append)
    return pauses


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    """Three partitions of ten records in five batches; broker 1 leads the first two, broker 2 the third."""
    made = FakeCluster({number: FakePartition(leader=2 if number == 2 else 1) for number in range(3)})
    for partition in made.partitions.values():
        for first in range(0, 10, 2):
            partition.append(b"%d" % first, b"%d" % (first + 1))
    monkeypatch.setattr("coordinator_core.sources.kafka.borrow_connection", lambda *_: made)
    return made


def log(**settings: Any) -> KafkaSource:
    return KafkaSource(f"kafka://h:9092/{TOPIC}", {"retry_seconds": str(settings.pop("limit", 60))}, **settings)


def offsets(source: KafkaSource, wanted: dict[int, tuple[int, int]]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for partition, columns in source.read_many(wanted):
        assert columns.damages == ()
        found.setdefault(partition, []).extend(columns.offset.tolist())
    return found


EVERYTHING = {0: (0, 10), 1: (0, 10), 2: (0, 10)}
ALL_OFFSETS = {partition: list(range(10)) for partition in range(3)}


def test_each_leader_gets_one_request_for_all_its_partitions(cluster: FakeCluster) -> None:
    source = log()
    assert source.topic_id == TOPIC_ID
    assert source.end_offsets() == {0: 10, 1: 10, 2: 10}
    assert offsets(source, EVERYTHING) == ALL_OFFSETS
    assert cluster.rounds == [{1: [0, 1], 2: [2]}] * 2


def test_a_leader_that_moves_is_followed(cluster: FakeCluster, no_pauses: list[float]) -> None:
    source = log()

    cluster.script.append(lambda: cluster.partitions[1].elect(2))
    assert offsets(source, EVERYTHING) == ALL_OFFSETS
    assert cluster.rounds == [{1: [0, 1], 2: [2]}, {2: [1]}]
    assert no_pauses == []


def test_a_partition_without_leader_is_waited_for_while_the_others_are_read(cluster: FakeCluster, no_pauses: list[float]) -> None:
    cluster.partitions[2].leader = -1
    source = log()

    def elect() -> None:
        cluster.partitions[2].leader = 1

    cluster.script.extend([lambda: None, lambda: None, elect])
    assert offsets(source, EVERYTHING) == ALL_OFFSETS
    assert cluster.rounds[0] == {1: [0, 1]}
    assert cluster.rounds[-1] == {1: [2]}
    assert no_pauses == sorted(no_pauses)
    assert no_pauses


def test_an_unavailable_broker_ends_the_reading_after_the_limit(cluster: FakeCluster) -> None:
    source = log(limit=0)
    cluster.node_errors[2] = LogUnreachable("connection refused")
    with pytest.raises(LogUnreachable, match=f"broker 2, leader of partition 2 of {TOPIC}: connection refused"):
        offsets(source, {2: (0, 10)})


def test_an_error_that_waiting_does_not_cure_is_raised_at_once(cluster: FakeCluster, no_pauses: list[float]) -> None:
    for code, kind, why in (
        (AUTHORIZATION, NotAuthorized, "not authorized to read"),
        (CORRUPT, RequestRejected, r"CORRUPT_MESSAGE \(2\)"),
    ):
        cluster.errors = {1: code}
        with pytest.raises(kind, match=why):
            offsets(log(), EVERYTHING)
    cluster.errors, cluster.node_errors = {}, {1: RequestRejected("too old")}
    with pytest.raises(RequestRejected, match="too old"):
        log().end_offsets()
    assert no_pauses == []


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("response_bytes", [1, 80, 200, 450])
def test_responses_that_are_too_small_delay_and_lose_nothing(response_bytes: int) -> None:
    source = log(partition_bytes=response_bytes, response_bytes=response_bytes)
    assert offsets(source, EVERYTHING) == ALL_OFFSETS


def test_gaps_of_compaction_inside_and_at_the_end(cluster: FakeCluster) -> None:
    partition = cluster.partitions[0]
    partition.append(b"20", b"21", gap=10)
    partition.high_watermark = 40
    assert offsets(log(), {0: (5, 40)}) == {0: [*range(5, 10), 20, 21]}
    assert offsets(log(), {0: (10, 20)}) == {}
    assert offsets(log(), {0: (15, 21), 1: (10, 10)}) == {0: [20]}
    assert offsets(log(), {0: (22, 40), 1: (4, 10)}) == {1: [*range(4, 10)]}


def test_a_torn_tail_of_a_response_is_no_damage_but_a_bad_checksum_is(cluster: FakeCluster) -> None:
    base, end, data = cluster.partitions[0].batches[1]
    cluster.partitions[0].batches[1] = (base, end, data[:-3] + b"\xff" + data[-2:])
    pieces = list(log(partition_bytes=len(data) * 3 - 5).read_columns(0, 0, 10))
    assert [damage.problem for columns in pieces for damage in columns.damages] == [Problem.CRC_MISMATCH]
    assert [offset for columns in pieces for offset in columns.offset.tolist()] == list(range(10))


def test_bytes_that_cannot_be_framed_are_an_error_with_their_position(cluster: FakeCluster) -> None:
    base, end, data = cluster.partitions[0].batches[2]
    cluster.partitions[0].batches[2] = (base, end, data[:8] + b"\x00\x00\x00\x01" + data[12:])
    pieces = log().read_columns(0, 0, 10)
    assert next(pieces).offset.tolist() == [0, 1, 2, 3]
    with pytest.raises(LogUnreadable, match=f"partition 0 of {TOPIC}, offset 4: .*batch length is smaller than a batch header"):
        next(pieces)


def test_a_topic_recreated_during_the_reading(cluster: FakeCluster) -> None:
    source = log()
    cluster.topic_id, cluster.errors = UUID(int=8), {0: UNKNOWN_TOPIC_ID}
    with pytest.raises(TopicRecreated, match="start with new tables"):
        offsets(source, {0: (0, 10)})


def test_a_topic_that_a_restarted_broker_does_not_know_yet(cluster: FakeCluster) -> None:
    source = log()

    def forget() -> None:
        cluster.missing, cluster.errors = True, {0: NOT_LEADER}

    def remember() -> None:
        cluster.missing, cluster.errors = False, {}

    cluster.script.extend([forget, remember])
    assert offsets(source, {0: (0, 10)}) == {0: list(range(10))}
    cluster.missing = True
    with pytest.raises(TopicMissing, match=r"no topic __consumer_offsets: .*brokers create it when the first group commits"):
        log()


def test_a_high_watermark_that_lags_after_a_failover_is_waited_for(cluster: FakeCluster, no_pauses: list[float]) -> None:
    source = log()
    partition = cluster.partitions[0]
    held, partition.batches, partition.high_watermark = partition.batches, [], 4

    def catch_up() -> None:
        partition.batches, partition.high_watermark = held, 10

    cluster.script.extend([lambda: None, catch_up])
    assert offsets(source, {0: (4, 10)}) == {0: list(range(4, 10))}
    assert no_pauses
    partition.batches, partition.high_watermark = [], 4
    with pytest.raises(
        LogTruncated, match="partition 0 of __consumer_offsets ends at offset 4, but records up to offset 10 are needed"
    ):
        offsets(log(limit=0), {0: (4, 10)})


def test_a_throttled_response_has_no_partitions_and_is_no_outage(cluster: FakeCluster, no_pauses: list[float]) -> None:
    source = log()
    looked = cluster.lookups
    cluster.throttled = 3
    assert offsets(source, EVERYTHING) == ALL_OFFSETS
    assert (no_pauses, cluster.lookups) == ([], looked)


def test_throttling_without_end(cluster: FakeCluster) -> None:
    source = log(limit=0)
    cluster.throttled = 1_000_000
    with pytest.raises(LogUnreachable, match="the brokers throttle and return no data"):
        offsets(source, EVERYTHING)
    assert len(cluster.rounds) == 1


def test_a_log_that_was_truncated_and_has_grown_again(cluster: FakeCluster) -> None:
    source = log()
    ends, epochs = source.end_offsets(), source.leader_epochs()
    assert epochs == {0: 0, 1: 0, 2: 0}
    positions = {partition: (ends[partition], epochs[partition]) for partition in ends}
    before = len(cluster.rounds)
    assert source.truncated_partitions(positions) == {}
    assert len(cluster.rounds) == before
    cluster.partitions[0].elect(2)
    cluster.partitions[1].elect(2, holding=6)
    for partition in (0, 1):
        cluster.partitions[partition].append(*[b"later"] * 8)
    assert source.end_offsets() == {0: 18, 1: 14, 2: 10}
    assert source.leader_epochs() == {0: 1, 1: 1, 2: 0}
    assert source.truncated_partitions(positions) == {1: 6}
    assert source.truncated_partitions({1: (6, 0), 7: (1, 0)}) == {}


def test_a_leader_that_moves_during_a_request_for_ends_of_epochs(cluster: FakeCluster) -> None:
    source = log()
    cluster.partitions[0].elect(2, holding=4)
    source.end_offsets()
    cluster.script.append(lambda: cluster.partitions[0].elect(1))
    assert source.truncated_partitions({0: (10, 0)}) == {0: 4}


def test_a_reader_that_has_seen_the_topic_waits_for_it_from_the_first_request_on(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        cluster.missing = False

    monkeypatch.setattr("coordinator_core.sources.kafka_topic.time.sleep", pause)
    cluster.missing = True
    assert log(seen_before=True).end_offsets() == {0: 10, 1: 10, 2: 10}
    assert pauses == [0.1]


def test_a_connection_that_failed_at_once_is_not_kept(cluster: FakeCluster) -> None:
    cluster.topic_id = UUID(int=9)
    with pytest.raises(TopicRecreated):
        log(expected_topic_id=TOPIC_ID)
    assert cluster.closed


def without(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, number: int, instead: int | None) -> None:
    """Responses leave partition `number` out, or name another number for it."""
    answer = cluster._answer

    def changed(node: int, request: object) -> object:
        response = answer(node, request)
        for topic in getattr(response, "responses", None) or response.topics:
            for part in topic.partitions:
                if part.partition_index == number and instead is not None:
                    part.partition_index = instead
            topic.partitions = [part for part in topic.partitions if part.partition_index != number]
        return response

    monkeypatch.setattr(cluster, "_answer", changed)


@pytest.mark.parametrize("instead", [None, 77, 0])
def test_a_partition_that_a_broker_leaves_out(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, instead: int | None) -> None:
    source = log(limit=0)
    without(cluster, monkeypatch, 1, instead)
    with pytest.raises(LogUnreachable, match=f"broker 1, leader of partition 1 of {TOPIC}, left it out of its response"):
        source.end_offsets()
    with pytest.raises(LogUnreachable, match="left it out of its response"):
        offsets(source, {1: (0, 10)})


def test_a_batch_at_an_impossible_offset_is_not_taken_for_the_end(cluster: FakeCluster) -> None:
    source = log(limit=0)
    cluster.partitions[0].batches = [(0, 10, b"\x7f" + 7 * b"\xff" + data[8:]) for _, _, data in cluster.partitions[0].batches]
    with pytest.raises(LogUnreadable, match="offset 0: batch at offset 9223372036854775807, byte 0: offsets of the batch are"):
        offsets(source, {0: (0, 10)})


@pytest.mark.parametrize("empty", [None, []])
def test_metadata_without_partitions(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch, empty: list[object] | None) -> None:
    answer = cluster.metadata(None)
    answer.topics[0].partitions = empty
    monkeypatch.setattr(cluster, "metadata", lambda _: answer)
    with pytest.raises(LogUnreachable, match="returned no partition of it"):
        log(limit=0)
