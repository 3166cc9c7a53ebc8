"""Lag on a live broker: markers, open transactions, idle producers, recreated and truncated logs, known ages."""

import itertools
import shutil
import threading
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import java_tools
import pytest
from confluent_kafka import Producer, TopicPartition
from end_offset_rows import samples_from
from eventually import eventually
from group_offsets import commit_offsets
from live_kafka import create_topic, delete_topic, produce
from live_lag import LiveLag, now_ms
from patience import PATIENCE_SECONDS

from coordinator_core.sources.kafka_connection import close_idle_connections
from coordinator_core.sources.segment_offsets import SegmentOffsetsSampler
from coordinator_core.sources.topic_offsets import TopicOffsetsSampler
from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.examples.private.kafka.clients import Clients

pytestmark = [pytest.mark.broker, pytest.mark.long]


@pytest.fixture(scope="module")
def broker() -> Iterator[PrivateBroker]:
    """Not the session's: it is stopped, and its segments are replaced."""
    with PrivateBroker("4.1.1", offsets_partitions=2) as running:
        yield running
        close_idle_connections()


@pytest.fixture
def clients(broker: PrivateBroker) -> Iterator[Clients]:
    with Clients(broker.bootstrap) as made:
        yield made


@pytest.fixture
def lag(broker: PrivateBroker, tmp_path: Path) -> LiveLag:
    return LiveLag(broker.bootstrap, tmp_path / "tables")


def commit(broker: PrivateBroker, topic: str, offset: int, group: str = "reader") -> None:
    """Commit an offset of partition 0, as a simple consumer."""
    commit_offsets(broker.bootstrap, f"{group}-{topic}", {(topic, 0): offset})


def row_of(lag: LiveLag, topic: str, group: str = "reader", *, with_commits: bool = True) -> dict[str, Any]:
    """The row of partition 0 after a sample."""
    return lag.sample(with_commits=with_commits)[f"{group}-{topic}", topic, 0]


def write(broker: PrivateBroker, topic: str, count: int, key: bytes | None = None) -> tuple[float, float]:
    """Write records to partition 0; returns the times before the first request and after the last response."""
    before = time.time()
    produce(broker.bootstrap, topic, [(0, key, b"record")] * count)
    return before, time.time()


def transaction(producer: Producer, topic: str, count: int) -> None:
    """Begin a transaction with records in partition 0; they are in the log."""
    producer.begin_transaction()
    for _ in range(count):
        producer.produce(topic, b"record", partition=0)
    assert producer.flush(PATIENCE_SECONDS) == 0


def seconds(at: datetime) -> float:
    return at.timestamp()


def assert_bounds(row: dict[str, Any], readable: tuple[float, float]) -> None:
    """The true age lies within the bounds. The record became readable between the two times."""
    first, last = readable
    at = seconds(row["sampled_at"])
    assert row["lag_seconds_low"] <= row["lag_seconds"] <= row["lag_seconds_high"]
    # clocks are read in whole milliseconds
    assert row["lag_seconds_low"] <= at - first + 0.002
    assert row["lag_seconds_high"] >= at - last - 0.002


def assert_as_kafka_describes(lag: LiveLag, broker: PrivateBroker, group: str) -> None:
    described = java_tools.table(java_tools.consumer_groups(broker.bootstrap, "--describe", "--group", group))
    theirs = sorted((r["TOPIC"], r["PARTITION"], r["CURRENT-OFFSET"], r["LOG-END-OFFSET"], r["LAG"]) for r in described)
    columns = ("topic", "partition", "group_offset", "latest_offset", "lag")
    ours = sorted(
        tuple("-" if row[name] is None else str(row[name]) for name in columns)
        for row in lag.rows().values()
        if row["group_id"] == group
    )
    assert ours == theirs


def test_a_marker_at_the_end_is_no_data(broker: PrivateBroker, clients: Clients, lag: LiveLag, topic: str) -> None:
    create_topic(broker.bootstrap, topic)
    producer = clients.transaction(f"writer-{topic}")
    transaction(producer, topic, 5)
    producer.commit_transaction(PATIENCE_SECONDS)
    commit(broker, topic, 5)
    first = row_of(lag, topic)
    assert (first["latest_offset"], first["lag"], first["data_lag"]) == (6, 1, None)
    # unchanged in two samples: counted by a Fetch
    second = row_of(lag, topic)
    assert (second["lag"], second["data_lag"], second["lag_reason"]) == (1, 0, "only_markers")
    assert (second["lag_seconds"], second["lag_method"]) == (0, "exact")
    assert_as_kafka_describes(lag, broker, f"reader-{topic}")
    # a record after the marker
    transaction(producer, topic, 1)
    producer.commit_transaction(PATIENCE_SECONDS)
    assert row_of(lag, topic)["data_lag"] is None
    assert row_of(lag, topic)["data_lag"] == 1


def row_at_end(lag: LiveLag, topic: str, end: int) -> dict[str, Any]:
    """The row once the log ends there: brokers answer the end of a transaction before they write its marker."""
    return eventually(f"{topic} ends at {end}", lambda: row_of(lag, topic), lambda row: row["latest_offset"] == end)


def test_an_open_transaction_blocks_and_aborted_records_are_no_data(
    broker: PrivateBroker, clients: Clients, lag: LiveLag, topic: str
) -> None:
    create_topic(broker.bootstrap, topic)
    producer = clients.transaction(f"writer-{topic}")
    transaction(producer, topic, 5)
    producer.commit_transaction(PATIENCE_SECONDS)
    commit(broker, topic, 6)
    assert row_at_end(lag, topic, 6)["blocked_by_transaction"] is False
    transaction(producer, topic, 3)
    opened = row_of(lag, topic)
    assert (opened["latest_offset"], opened["lag"], opened["blocked_by_transaction"]) == (9, 3, True)
    assert opened["lag_reason"] == "open_transaction"
    (sample,) = lag.query(f"SELECT last_stable FROM end_offsets WHERE topic = '{topic}' ORDER BY asked_at DESC LIMIT 1")
    assert sample["last_stable"] == 6
    # the fate of the records is open
    assert row_of(lag, topic)["data_lag"] is None
    producer.abort_transaction(PATIENCE_SECONDS)
    aborted = row_at_end(lag, topic, 10)
    assert (aborted["lag"], aborted["blocked_by_transaction"]) == (4, False)
    counted = row_of(lag, topic)
    assert (counted["data_lag"], counted["lag_reason"], counted["lag_seconds"]) == (0, "only_markers", 0)
    assert_as_kafka_describes(lag, broker, f"reader-{topic}")


def test_the_age_grows_while_the_producer_is_idle(broker: PrivateBroker, lag: LiveLag, topic: str) -> None:
    create_topic(broker.bootstrap, topic)
    write(broker, topic, 3)
    commit(broker, topic, 3)
    assert (row_of(lag, topic)["lag_seconds"], lag.rows()[f"reader-{topic}", topic, 0]["lag_method"]) == (0, "exact")
    readable = write(broker, topic, 2)
    ages = []
    for _ in range(3):
        row = row_of(lag, topic)
        assert (row["lag_method"], row["lag"]) == ("interpolated", 2)
        assert_bounds(row, readable)
        ages.append(row["lag_seconds"])
        time.sleep(0.5)
    assert ages[0] < ages[1] < ages[2]
    # "stopped" takes a minute without a commit
    assert row["lag_reason"] is None
    assert row["data_lag"] == 2


def test_a_recreated_topic_is_another_incarnation(broker: PrivateBroker, lag: LiveLag, topic: str) -> None:
    create_topic(broker.bootstrap, topic)
    write(broker, topic, 10)
    commit(broker, topic, 4)
    assert row_of(lag, topic)["lag"] == 6
    delete_topic(broker.bootstrap, topic)
    # the broker has removed the commit, and the job has not read that yet
    gone = row_of(lag, topic, with_commits=False)
    assert (gone["group_offset"], gone["lag"], gone["lag_reason"]) == (4, None, "unknown_topic_or_partition")
    create_topic(broker.bootstrap, topic)
    write(broker, topic, 20)
    row = row_of(lag, topic, with_commits=False)
    assert (row["lag_reason"], row["lag_seconds"], row["data_lag"]) == ("other_incarnation", None, None)
    assert len(lag.query(f"SELECT DISTINCT topic_id FROM end_offsets WHERE topic = '{topic}' AND log_end IS NOT NULL")) == 2
    # a commit to the new topic counts
    commit(broker, topic, 20, group="new")
    assert row_of(lag, topic, "new")["lag_reason"] is None


def test_deleted_records_are_lost_and_the_age_is_kept(broker: PrivateBroker, clients: Clients, lag: LiveLag, topic: str) -> None:
    create_topic(broker.bootstrap, topic)
    commit(broker, topic, 0)
    row_of(lag, topic)
    readable = write(broker, topic, 10)
    row_of(lag, topic)
    clients.admin.delete_records([TopicPartition(topic, 0, 7)])[TopicPartition(topic, 0)].result(PATIENCE_SECONDS)
    row = row_of(lag, topic)
    # a commit that has not been read yet may be beyond the new log start; the next sample proves that there is none
    assert (row["earliest_offset"], row["messages_lost"], row["lag_reason"]) == (7, None, "loss_unknown")
    row = row_of(lag, topic)
    assert (row["earliest_offset"], row["messages_lost"], row["lag_reason"]) == (7, 7, "records_lost")
    assert (row["lag"], row["retention_margin_seconds"]) == (10, 0)
    assert_bounds(row, readable)
    assert row_of(lag, topic)["data_lag"] == 3


def test_a_commit_beyond_the_end(broker: PrivateBroker, lag: LiveLag, topic: str) -> None:
    create_topic(broker.bootstrap, topic)
    write(broker, topic, 2)
    commit(broker, topic, 50)
    row = row_of(lag, topic)
    assert (row["lag"], row["lag_reason"], row["lag_seconds"], row["data_lag"]) == (-48, "commit_beyond_end", None, None)


def test_settings_of_topics(broker: PrivateBroker, lag: LiveLag, topic: str) -> None:
    compacted = f"{topic}-compacted"
    create_topic(broker.bootstrap, compacted, cleanup_policy="compact", retention_ms="1000")
    create_topic(broker.bootstrap, topic, retention_ms="60000")
    for name in (compacted, topic):
        commit(broker, name, 0)
    lag.sample()
    for name in (compacted, topic):
        write(broker, name, 3, key=b"k")
    rows = lag.sample()
    row = rows[f"reader-{compacted}", compacted, 0]
    assert (row["lag_reason"], row["retention_margin_seconds"], row["lag_method"]) == ("compacted", None, "interpolated")
    row = rows[f"reader-{topic}", topic, 0]
    assert row["retention_margin_seconds"] == pytest.approx(60 - row["lag_seconds_high"])


@pytest.mark.long
def test_append_times_narrow_the_age(broker: PrivateBroker, tmp_path: Path, topic: str) -> None:
    lag = LiveLag(broker.bootstrap, tmp_path / "tables", lag_narrowed_partitions=10)
    other = f"{topic}-created"
    create_topic(broker.bootstrap, topic, message_timestamp_type="LogAppendTime")
    create_topic(broker.bootstrap, other)
    for name in (topic, other):
        commit(broker, name, 4)
        write(broker, name, 4)
    lag.sample()
    time.sleep(2.5)
    readable = {name: write(broker, name, 1) for name in (topic, other)}
    time.sleep(2.5)
    for name in (topic, other):
        write(broker, name, 5)
    rows = lag.sample()
    row = rows[f"reader-{topic}", topic, 0]
    assert row["lag_method"] == "exact"
    assert row["lag_seconds_high"] - row["lag_seconds_low"] <= 1.0
    assert_bounds(row, readable[topic])
    # with CreateTime a later record may have an earlier time
    assert rows[f"reader-{other}", other, 0]["lag_method"] == "interpolated"
    assert_bounds(rows[f"reader-{other}", other, 0], readable[other])


def test_a_copy_of_the_log_directory_has_the_same_ends(
    broker: PrivateBroker, clients: Clients, topic: str, tmp_path: Path
) -> None:
    create_topic(broker.bootstrap, topic, 3)
    produce(broker.bootstrap, topic, [(partition, None, b"record") for partition in range(2) for _ in range(500)])
    clients.admin.delete_records([TopicPartition(topic, 0, 30)])[TopicPartition(topic, 0)].result(PATIENCE_SECONDS)
    wanted = {topic: range(3)}
    live = TopicOffsetsSampler(f"kafka://{broker.bootstrap}/__consumer_offsets", None, now_ms).sample(wanted)
    before = now_ms()
    broker.stop()
    shutil.copytree(broker.data, tmp_path / "copy")
    broker.start()
    copied = SegmentOffsetsSampler(tmp_path / "copy", now_ms).sample(wanted)
    columns = ["topic_id", "topic", "partition", "log_start", "log_end"]
    assert copied.select(columns).to_pylist() == live.select(columns).to_pylist()
    assert [row["log_end"] for row in copied.to_pylist()] == [500, 500, 0]
    # a clean stop writes the checkpoints
    assert all(sample.asked_at_ms >= before for sample in samples_from(copied))


@pytest.mark.slow
def test_true_ages_at_known_speeds(broker: PrivateBroker, lag: LiveLag, topic: str) -> None:
    """One consumer follows at half of the producer's speed, one stands still, one keeps up."""
    create_topic(broker.bootstrap, topic)
    positions = {"half": 0, "still": 0, "end": 0}
    for group in positions:
        commit(broker, topic, 0, group)
    requests: list[tuple[float, float]] = []
    readable: list[tuple[float, float]] = []
    stop = threading.Event()

    def write_steadily() -> None:
        while not stop.wait(0.05):
            readable.append(write(broker, topic, 1))

    begun = time.time()
    lag.sample()
    requests.append((begun, time.time()))
    producer = threading.Thread(target=write_steadily)
    producer.start()
    try:
        for _ in range(8):
            time.sleep(1)
            written = len(readable)
            positions |= {"half": written // 2, "end": written}
            for group in ("half", "end"):
                commit(broker, topic, positions[group], group)
            begun = time.time()
            rows = lag.sample()
            requests.append((begun, time.time()))
            longest = max(after[1] - before[0] for before, after in itertools.pairwise(requests))
            for group, offset in positions.items():
                row = rows[f"{group}-{topic}", topic, 0]
                assert row["group_offset"] == offset
                if row["latest_offset"] <= offset:
                    assert row["lag_seconds"] == 0
                    continue
                if offset < len(readable):
                    assert_bounds(row, readable[offset])
                assert row["lag_method"] == "interpolated"
                assert row["lag_seconds_high"] - row["lag_seconds_low"] <= longest
    finally:
        stop.set()
        producer.join()
    lag.sample()
    for group in positions:
        assert_as_kafka_describes(lag, broker, f"{group}-{topic}")


@pytest.mark.long
def test_a_truncated_log(broker: PrivateBroker, lag: LiveLag, topic: str, tmp_path: Path) -> None:
    """An unclean election, simulated: the broker restarts with an earlier copy of its segments."""
    create_topic(broker.bootstrap, topic)
    write(broker, topic, 4)
    broker.stop()
    shutil.copytree(broker.data / f"{topic}-0", tmp_path / "earlier" / f"{topic}-0")
    broker.start()
    write(broker, topic, 6)
    commit(broker, topic, 9)
    assert row_of(lag, topic)["lag"] == 1
    broker.stop()
    broker.place_segments(tmp_path / "earlier", topic)
    broker.start()
    row = row_of(lag, topic)
    assert (row["latest_offset"], row["lag"], row["lag_reason"]) == (4, -5, "truncated")
    assert row["lag_seconds"] is None
