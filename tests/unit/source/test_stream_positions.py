"""The position of a stream, and its reaction to a log that does not continue there. No broker, no Spark session."""

from pathlib import Path
from uuid import UUID

import pytest
from appended_logs import NOW_MS, commit, folder_of, opened
from fake_cluster import TOPIC, TOPIC_ID, FakeCluster, FakePartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from coordinator_core.codec.uuids import uuid_text
from coordinator_core.log.errors import LogTruncated, TopicRecreated
from coordinator_core.segment_log.settings import SegmentLogSettings
from pipelines.source.data_source import LogStreamReader
from pipelines.source.log_reading import SourceOptions
from pipelines.source.position import Position


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.source.log_stream.time.sleep", lambda _seconds: None)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    made = FakeCluster({0: FakePartition(), 1: FakePartition(leader=2)})
    made.partitions[0].append(b"a", b"b", b"c")
    monkeypatch.setattr("coordinator_core.sources.kafka.borrow_connection", lambda *_: made)
    monkeypatch.setattr("coordinator_core.sources.kafka.give_back", lambda *_: None)
    return made


def reader() -> LogStreamReader:
    options = {"path": f"kafka://h:9092/{TOPIC}", "topicId": uuid_text(TOPIC_ID), "kafka.retry_seconds": "60"}
    return LogStreamReader(SourceOptions.parse(options))


def test_a_position_as_spark_keeps_it() -> None:
    position = Position({1: 4, 0: 17}, {1: 2})
    assert position.to_json() == {"0": 17, "1": 4, "leader_epochs": {"1": 2}}
    assert list(position.to_json()) == ["0", "1", "leader_epochs"]
    assert Position.from_json(position.to_json()) == position
    assert Position.from_json({"0": 17}) == Position({0: 17})
    assert Position({0: 17}).to_json() == {"0": 17}
    assert Position({0: 17}, {0: 3, 5: 9}).known_epochs() == {0: (17, 3)}


@pytest.mark.usefixtures("cluster")
def test_the_end_of_the_log_with_the_epochs_of_its_leaders() -> None:
    stream = reader()
    start = stream.initialOffset()
    assert start == {"0": 0, "1": 0}
    assert stream.latestOffset(start, ReadAllAvailable()) == {"0": 3, "1": 0, "leader_epochs": {"0": 0, "1": 0}}
    assert stream.latestOffset(start, ReadMaxRows(2)) == {"0": 2, "1": 0, "leader_epochs": {"0": 0, "1": 0}}
    stream.prepareForTriggerAvailableNow()
    end = stream.latestOffset(start, ReadAllAvailable())
    assert stream.latestOffset(end, ReadAllAvailable()) == end
    (todo,) = stream.partitions(start, end)
    assert [(each.partition, each.start, each.end) for each in todo.todo] == [(0, 0, 3)]


def test_a_log_that_is_shorter_for_a_moment_is_looked_at_again(cluster: FakeCluster) -> None:
    stream = reader()
    end = stream.latestOffset(stream.initialOffset(), ReadAllAvailable())
    held, cluster.partitions[0].high_watermark = cluster.partitions[0].high_watermark, 1
    cluster.script.extend([lambda: None, lambda: setattr(cluster.partitions[0], "high_watermark", held)])
    assert stream.latestOffset(end, ReadAllAvailable()) == end


def test_a_broker_that_does_not_know_of_a_later_leader_gets_the_request_again(cluster: FakeCluster) -> None:
    cluster.partitions[0].elect(2)
    stream = reader()
    end = stream.latestOffset(stream.initialOffset(), ReadAllAvailable())
    assert end["leader_epochs"] == {"0": 1, "1": 0}
    cluster.partitions[0].epoch = 0
    cluster.script.extend([lambda: None, lambda: setattr(cluster.partitions[0], "epoch", 1)])
    assert stream.latestOffset(end, ReadAllAvailable()) == end
    cluster.partitions[0].epoch = 0
    with pytest.raises(LogTruncated, match=r"partition 0: the leader epoch is 0, but was 1 when the tables read it: .*run again"):
        stream.latestOffset(end, ReadAllAvailable())


def test_a_log_that_remains_shorter_ends_the_stream(cluster: FakeCluster) -> None:
    stream = reader()
    end = stream.latestOffset(stream.initialOffset(), ReadAllAvailable())
    cluster.partitions[0].high_watermark = 1
    with pytest.raises(LogTruncated, match="partition 0: the log ends at offset 1, before offset 3 where the tables continue"):
        stream.latestOffset(end, ReadAllAvailable())


def test_a_log_that_lost_records_and_has_grown_again_ends_the_stream(cluster: FakeCluster) -> None:
    stream = reader()
    end = stream.latestOffset(stream.initialOffset(), ReadAllAvailable())
    cluster.partitions[0].elect(2)
    cluster.partitions[0].append(b"d")
    further = stream.latestOffset(end, ReadAllAvailable())
    assert further == {"0": 4, "1": 0, "leader_epochs": {"0": 1, "1": 0}}
    cluster.partitions[0].elect(1, holding=3)
    cluster.partitions[0].append(b"D", b"E", b"F")
    with pytest.raises(LogTruncated, match="partition 0: the log was truncated to offset 3, before offset 4 where the tables"):
        reader().latestOffset(further, ReadAllAvailable())
    assert reader().latestOffset(end, ReadAllAvailable())["0"] == 6


def test_a_topic_that_was_recreated_ends_the_stream(cluster: FakeCluster) -> None:
    stream = reader()
    end = stream.latestOffset(stream.initialOffset(), ReadAllAvailable())
    cluster.topic_id, cluster.partitions[0].high_watermark = UUID(int=8), 0
    with pytest.raises(TopicRecreated, match=f"its id was {uuid_text(TOPIC_ID)} and is {uuid_text(UUID(int=8))} now"):
        stream.latestOffset(end, ReadAllAvailable())
    with pytest.raises(TopicRecreated):
        reader().initialOffset()


def test_a_log_of_the_coordinator_that_lost_records_and_has_grown_again_ends_the_stream(tmp_path: Path) -> None:
    def written(values: list[bytes]) -> None:
        log = opened(tmp_path, SegmentLogSettings())
        log.partition(0).append([commit(b"key", value) for value in values], NOW_MS)
        log.close()

    def stream() -> LogStreamReader:
        return LogStreamReader(SourceOptions.parse({"path": f"segments:{tmp_path}"}))

    written([b"1", b"2"])
    written([b"3"])
    begin = stream().initialOffset()
    end = stream().latestOffset(begin, ReadAllAvailable())
    assert end == {"0": 3, "leader_epochs": {"0": 1}}
    (path,) = folder_of(tmp_path).glob("*.log")
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 3)
    written([b"4", b"5", b"6"])
    with pytest.raises(LogTruncated, match="partition 0: the log was truncated to offset 1, before offset 3 where the tables"):
        stream().latestOffset(end, ReadAllAvailable())
    assert stream().latestOffset(begin, ReadAllAvailable()) == {"0": 4, "leader_epochs": {"0": 2}}
