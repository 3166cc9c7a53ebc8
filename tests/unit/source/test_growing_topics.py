"""A job that follows a topic of brokers notices new partitions."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from fake_cluster import TOPIC, FakeCluster, FakePartition

from coordinator_core.log.errors import LogUnreachable
from coordinator_core.sources import kafka
from pipelines.source.address import parse_address
from pipelines.source.data_source import LogStreamReader
from pipelines.source.log_reading import SourceOptions
from pipelines.source.log_stream import LogStream
from pipelines.source.position import Position
from pipelines.source.ranges import ranges


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    made = FakeCluster({0: FakePartition(), 1: FakePartition(leader=2)})
    made.partitions[0].append(b"a", b"b", b"c")
    monkeypatch.setattr("coordinator_core.sources.kafka.borrow_connection", lambda *_: made)
    monkeypatch.setattr("coordinator_core.sources.kafka.give_back", lambda *_: None)
    return made


@pytest.fixture
def stream() -> LogStream:
    return LogStream(SourceOptions(parse_address(f"kafka://h:9092/{TOPIC}"), "4", 1, {}))


def test_new_partitions_are_noticed(cluster: FakeCluster, stream: LogStream, monkeypatch: pytest.MonkeyPatch) -> None:
    begin = stream.start()
    end = stream.end_after(begin)
    (read,) = ranges(begin.offsets, end.offsets, stream.ends)
    assert read.asked is not None
    assert read.asked.partitions == 2
    cluster.partitions[2] = FakePartition()
    cluster.partitions[2].append(b"d")
    lookups = cluster.lookups
    assert stream.end_after(end).offsets == {0: 3, 1: 0}, "metadata is not read for each batch"
    assert cluster.lookups == lookups
    monkeypatch.setattr(kafka, "_METADATA_AGE_SECONDS", 0.0)
    later = stream.end_after(end)
    assert later.offsets == {0: 3, 1: 0, 2: 1}
    (read,) = ranges(end.offsets, later.offsets, stream.ends)
    assert (read.partition, read.start, read.end) == (2, 0, 1)
    assert read.asked is not None
    assert read.asked.partitions == 3


def test_the_number_is_requested_after_the_end(cluster: FakeCluster, stream: LogStream) -> None:
    """Brokers restart with a new number, and one writes a record, just before the end of the log is requested."""
    end = stream.end_after(stream.start())
    before = cluster.current_metadata()
    cluster.partitions[2] = FakePartition(leader=2)
    cluster.partitions[0].append(b"d")
    # the leader of another partition does not know the new one yet
    cluster.stale[2] = before
    later = stream.end_after(end)
    assert later.offsets == {0: 4, 1: 0}
    (read,) = ranges(end.offsets, later.offsets, stream.ends)
    assert read.asked is not None
    assert read.asked.partitions == 3
    counted = cluster.counted
    assert stream.end_after(later).offsets == {0: 4, 1: 0, 2: 0}, "the new partition is read from the next batch on"
    assert cluster.counted == counted + 1
    assert stream.end_after(later).offsets == {0: 4, 1: 0, 2: 0}
    assert cluster.counted == counted + 1, "an idle log needs no request"


def test_a_batch_that_is_repeated_knows_the_number(cluster: FakeCluster) -> None:
    """Spark repeats a batch in a new process, which has not requested the end of the log."""
    cluster.partitions[0].append(b"d")
    reader = LogStreamReader(SourceOptions(parse_address(f"kafka://h:9092/{TOPIC}"), "4", 1, {}))
    (task,) = reader.partitions({"0": 1, "1": 0}, {"0": 3, "1": 0})
    (read,) = task.todo
    assert (read.start, read.end) == (1, 3)
    assert read.asked is not None
    assert (read.asked.offset, read.asked.partitions) == (4, 2)


def test_a_leader_that_is_gone_is_waited_for(cluster: FakeCluster, stream: LogStream) -> None:
    end = stream.end_after(stream.start())
    cluster.partitions[0].append(b"d")
    waits = 0

    def wait(_seconds: float) -> None:
        nonlocal waits
        waits += 1
        cluster.partitions[1].elect(1)

    ends = cluster.send_all

    def ends_then_outage(requests: Mapping[int, Callable[[Any], Any]]) -> dict[int, Any]:
        answers = ends(requests)
        cluster.node_errors = {} if waits else {2: LogUnreachable("gone")}
        return answers

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(cluster, "send_all", ends_then_outage)
        patched.setattr("coordinator_core.sources.kafka_topic.time.sleep", wait)
        assert stream.end_after(end).offsets == {0: 4, 1: 0}
    assert waits == 1
    assert stream.ends is not None
    assert stream.ends.partitions == 2


def test_a_broker_that_has_not_heard_of_a_growth_takes_no_partition_away(
    cluster: FakeCluster, stream: LogStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka, "_METADATA_AGE_SECONDS", 0.0)
    cluster.partitions[2] = FakePartition()
    end = stream.end_after(stream.start())
    del cluster.partitions[2]
    held = FakePartition()
    cluster.script.append(lambda: cluster.partitions.update({2: held}))
    assert stream.end_after(end).offsets == {0: 3, 1: 0, 2: 0}


def test_an_outage_is_left_to_the_requests(cluster: FakeCluster, stream: LogStream, monkeypatch: pytest.MonkeyPatch) -> None:
    end = stream.end_after(stream.start())
    monkeypatch.setattr(kafka, "_METADATA_AGE_SECONDS", 0.0)
    cluster.missing = True
    assert stream.end_after(end).offsets == end.offsets


def test_files_do_not_know_the_number(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("dump") / "log.jsonl"
    path.write_text('{"partition": 3, "offset": 0, "timestamp": 1, "key": null, "value": null}\n', encoding="utf-8")
    stream = LogStream(SourceOptions(parse_address(f"jsonl:{path}"), "4", 1, {}))
    end = stream.end_after(Position({}))
    (read,) = ranges({}, end.offsets, stream.ends)
    assert read.asked is not None
    assert read.asked.partitions is None
