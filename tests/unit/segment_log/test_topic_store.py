"""The store of topics with data: creation, restarts after kills in between, deletion, retention, compaction."""

import json
from pathlib import Path

import pytest
from data_partitions import LIMITS, NOW_MS, batch

from coordinator_core.producers.entry import BatchMetadata, ProducerStateEntry
from coordinator_core.producers.rules import RULES
from coordinator_core.producers.snapshot import write_snapshot
from coordinator_core.producers.state_manager import ProducerStateManager
from coordinator_core.segment_log.cleaner_offsets import read_cleaner_offsets, write_cleaner_offsets
from coordinator_core.segment_log.data_partition import DataPartition, OffsetOutOfRange
from coordinator_core.segment_log.errors import LogDamaged, SegmentLogError
from coordinator_core.segment_log.producer_files import ProducerFiles
from coordinator_core.segment_log.topic_config import InvalidConfig, TopicConfig
from coordinator_core.segment_log.topic_store import TopicStore
from coordinator_core.service.topics.batch_check import check_batch

NONE = TopicConfig({})


def opened(directory: Path, **declared: tuple[int, TopicConfig]) -> TopicStore:
    return TopicStore(directory, declared, RULES["4"], 86_400_000)


def append(partition: DataPartition, value: bytes = b"v", timestamp: int = NOW_MS, key: bytes = b"k") -> int:
    checked = check_batch(batch([value], timestamp=timestamp, key=key), LIMITS, timestamp)
    appended = partition.append(checked.header, checked.placed, checked.max_timestamp)
    partition.advance(partition.log.end_offset, partition.appended_bytes)
    return appended.base_offset


def unexpected(partition: DataPartition, error: SegmentLogError) -> None:
    raise AssertionError(f"{partition}: {error}")


def test_topics_survive_a_restart(tmp_path: Path) -> None:
    store = opened(tmp_path, declared=(2, TopicConfig({"retention.ms": "5000"})))
    made = store.create("made", 1, NONE)
    append(made.partitions[0])
    store.add_partitions("made", 3)
    store.configure("made", TopicConfig({"segment.bytes": "500"}))
    ids = {name: topic.topic_id for name, topic in store.topics.items()}
    store.close_files()
    again = opened(tmp_path, declared=(2, TopicConfig({"retention.ms": "6000"})))
    assert {name: topic.topic_id for name, topic in again.topics.items()} == ids
    assert {name: (len(t.partitions), t.is_declared, dict(t.config.values)) for name, t in again.topics.items()} == {
        "declared": (2, True, {"retention.ms": "6000"}),
        "made": (3, False, {"segment.bytes": "500"}),
    }
    assert again.topics["made"].partitions[0].high_watermark == 1
    again.close_files()


def test_a_declared_topic_keeps_its_partitions(tmp_path: Path) -> None:
    opened(tmp_path, orders=(4, NONE)).close_files()
    fewer = opened(tmp_path, orders=(2, NONE))
    assert len(fewer.topics["orders"].partitions) == 4
    fewer.close_files()
    undeclared = opened(tmp_path)
    assert (len(undeclared.topics["orders"].partitions), undeclared.topics["orders"].is_declared) == (4, False)
    undeclared.close_files()


def test_a_topic_that_is_created_again_is_another_one(tmp_path: Path) -> None:
    store = opened(tmp_path)
    first = store.create("t", 1, NONE)
    append(first.partitions[0])
    write_cleaner_offsets(tmp_path, "t", {0: 1})
    write_cleaner_offsets(tmp_path, "other", {0: 9})
    store.delete("t")
    assert not list(tmp_path.glob("t-0*"))
    assert (read_cleaner_offsets(tmp_path, "t"), read_cleaner_offsets(tmp_path, "other")) == ({}, {0: 9})
    second = store.create("t", 1, NONE)
    assert second.topic_id != first.topic_id
    assert second.partitions[0].high_watermark == 0
    store.close_files()


def test_folders_of_a_killed_creation_and_deletion(tmp_path: Path) -> None:
    """A creation is killed before the topic is listed, a deletion before the folders are removed."""
    store = opened(tmp_path)
    append(store.create("t", 1, NONE).partitions[0])
    store.close_files()
    (tmp_path / "topics.json").write_text(json.dumps({"version": 1, "topics": {}}))
    (tmp_path / "gone-0.0123-delete").mkdir()
    again = opened(tmp_path)
    assert again.topics == {}
    assert not (tmp_path / "gone-0.0123-delete").exists()
    assert again.create("t", 1, NONE).partitions[0].high_watermark == 0
    again.close_files()


def test_an_unreadable_list_of_topics(tmp_path: Path) -> None:
    (tmp_path / "topics.json").write_text("{")
    with pytest.raises(LogDamaged, match="unreadable list of topics"):
        opened(tmp_path)


def test_deleted_records_stay_deleted(tmp_path: Path) -> None:
    store = opened(tmp_path)
    partition = store.create("t", 1, NONE).partitions[0]
    for _ in range(5):
        append(partition)
    assert partition.delete_records(3) == 3
    assert partition.delete_records(1) == 3
    with pytest.raises(OffsetOutOfRange):
        partition.delete_records(6)
    with pytest.raises(OffsetOutOfRange):
        partition.read(2, 1000, 5)
    store.store_start_offsets()
    store.close_files()
    again = opened(tmp_path)
    assert again.topics["t"].partitions[0].log_start_offset == 3
    again.close_files()


def test_retention_by_size_and_time(tmp_path: Path) -> None:
    store = opened(tmp_path)
    configs = {"segment.bytes": "14", "retention.ms": "-1", "retention.bytes": "-1"}
    partition = store.create("t", 1, TopicConfig(configs)).partitions[0]
    for number in range(5):
        append(partition, timestamp=NOW_MS + 1000 * number)
    size = partition.log.segments[0].size
    assert store.remove_old_segments(NOW_MS + 10_000, unexpected) == 0
    store.configure("t", TopicConfig({**configs, "retention.bytes": str(3 * size)}))
    assert store.remove_old_segments(NOW_MS + 10_000, unexpected) == 2
    assert partition.log_start_offset == 2
    store.configure("t", TopicConfig({**configs, "retention.ms": "1500"}))
    assert store.remove_old_segments(NOW_MS + 4400, unexpected) == 1
    assert partition.log_start_offset == 3
    # the active segment is closed and deleted, too
    assert store.remove_old_segments(NOW_MS + 60_000, unexpected) == 2
    assert (partition.log_start_offset, partition.high_watermark) == (5, 5)
    assert append(partition) == 5
    store.close_files()


def test_retention_passes_over_a_failed_partition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = opened(tmp_path)
    partitions = store.create("t", 2, TopicConfig({"segment.bytes": "14", "retention.ms": "1000"})).partitions
    for partition in partitions:
        append(partition)
    reported: list[tuple[DataPartition, str]] = []

    def remove() -> int:
        return store.remove_old_segments(NOW_MS + 60_000, lambda partition, error: reported.append((partition, str(error))))

    def refused(_descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr("coordinator_core.segment_log.partition_log.force", refused)
        partitions[1].log.fail("fsync failed: Input/output error")
        assert remove() == 0
    (failed, reason), *more = reported
    assert (failed, more, "Input/output error" in reason) == (partitions[0], [], True)
    assert [partition.log.failure is None for partition in partitions] == [False, False]
    assert (remove(), len(reported)) == (0, 1)
    store.close_files()


def test_compaction_keeps_the_last_value_of_a_key(tmp_path: Path) -> None:
    store = opened(tmp_path)
    compacted = TopicConfig({"segment.bytes": "14", "cleanup.policy": "compact"})
    kept = store.create("kept", 1, TopicConfig({"segment.bytes": "14"})).partitions[0]
    partition = store.create("t", 1, compacted).partitions[0]
    for value in (b"1", b"2", b"3"):
        append(partition, value)
        append(kept, value)
    append(partition, b"other", key=b"o")
    result = store.clean(NOW_MS)
    assert result is not None
    assert store.clean(NOW_MS) is None
    assert partition.find_timestamp(NOW_MS, 10).offset == 2
    read = partition.read(0, 100_000, partition.high_watermark)
    assert int.from_bytes(read.data[:8], "big") == 2
    assert kept.find_timestamp(NOW_MS, 10).offset == 0
    assert read_cleaner_offsets(tmp_path, "t") == {0: 3}
    store.close_files()


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("no.config", "1", "unknown topic config"),
        ("retention.ms", "x", "is not a number"),
        ("retention.ms", "-2", "must be -1"),
        ("cleanup.policy", "burn", "must be delete, compact or both"),
        ("cleanup.policy", "", "must be"),
        ("compression.type", "gzip", "must be one of producer"),
        ("message.timestamp.type", "LogAppendTime", "must be one of CreateTime"),
        ("min.cleanable.dirty.ratio", "2", "must be 0–1"),
    ],
)
def test_invalid_configs(name: str, value: str, problem: str) -> None:
    with pytest.raises(InvalidConfig, match=problem):
        TopicConfig({name: value})


@pytest.mark.parametrize(
    "entries",
    [
        [ProducerStateEntry(7, 0, 5, NOW_MS, 9)],
        [ProducerStateEntry(7, 0, 5, NOW_MS, -1, (BatchMetadata(0, 9, 0, NOW_MS),))],
        [ProducerStateEntry(7, 0, 5, NOW_MS, 4), ProducerStateEntry(8, 0, 5, NOW_MS, 4)],
    ],
    ids=["a transaction after its end", "a batch after its end", "two transactions at one offset"],
)
def test_a_snapshot_that_contradicts_its_offset(tmp_path: Path, entries: list[ProducerStateEntry]) -> None:
    """It is removed like one with a wrong checksum, and the log is readable."""
    files = ProducerFiles(tmp_path)
    path = tmp_path / f"{9:020}.snapshot"
    path.write_bytes(write_snapshot(entries))
    states = ProducerStateManager()
    files.load(states, 9)
    assert (dict(states.entries), states.map_end_offset, path.exists()) == ({}, 9, False)
