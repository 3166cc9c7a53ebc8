"""Consumers of three libraries behind an open transaction that follows a finished one: blocked, since when, by whom."""

import subprocess
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, Producer
from eventually import eventually
from java_clients import JavaClients, java_clients
from live_kafka import create_topic
from live_lag import LiveLag, now_ms
from member_programs import go_member
from patience import PATIENCE_SECONDS

from coordinator_core.health import FirstRecord, StatusSettings
from coordinator_core.sources.first_records import FirstRecordReader
from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.examples.private.kafka.clients import Clients
from pipelines.lag.tables.blocked_history import blocked_intervals
from pipelines.lag.tables.blocking_transactions import blocking_transactions
from pipelines.query.engine import Snapshot

# the first run downloads and builds the clients
pytestmark = [pytest.mark.broker, pytest.mark.long]

RECORDS = 5
#: Kafka's clock and this one are the same; timestamps are whole milliseconds.
HANGING = StatusSettings(transaction_ms=1_000)


class Blocked(NamedTuple):
    """Groups behind the open transaction of a producer, which began between two times in ms."""

    topic: str
    producer: Producer
    transactional_id: str
    groups: dict[str, int]
    began_after: int
    began_by: int

    def append(self) -> None:
        """Append a record to the open transaction."""
        self.producer.produce(self.topic, b"open", partition=0)
        assert self.producer.flush(PATIENCE_SECONDS) == 0


@pytest.fixture(scope="module")
def java() -> Iterator[JavaClients]:
    with java_clients("2.7.2") as running:
        yield running


@pytest.fixture
def clients(broker: PrivateBroker) -> Iterator[Clients]:
    with Clients(broker.bootstrap) as made:
        yield made


@pytest.fixture
def blocked(broker: PrivateBroker, clients: Clients, java: JavaClients, topic: str) -> Blocked:
    create_topic(broker.bootstrap, topic)
    name = f"importer-{topic}"
    producer = clients.transaction(name)
    producer.begin_transaction()
    for _ in range(RECORDS):
        producer.produce(topic, b"committed", partition=0)
    producer.commit_transaction(PATIENCE_SECONDS)
    read_with_librdkafka(broker.bootstrap, f"librdkafka-{topic}", topic)
    subprocess.run(
        [*go_member("committed"), broker.bootstrap, f"franz-{topic}", topic, str(RECORDS)], check=True, timeout=PATIENCE_SECONDS
    )
    java.read_and_commit(broker.bootstrap, f"java-{topic}", topic, RECORDS)
    began = now_ms()
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0)
    assert producer.flush(PATIENCE_SECONDS) == 0
    # the marker of the finished transaction is at offset 5
    groups = {f"librdkafka-{topic}": RECORDS, f"franz-{topic}": RECORDS, f"java-{topic}": RECORDS + 1}
    return Blocked(topic, producer, name, groups, began, now_ms())


def read_with_librdkafka(bootstrap: str, group: str, topic: str) -> None:
    settings = {"group.id": group, "auto.offset.reset": "earliest", "isolation.level": "read_committed"}
    consumer = Consumer({"bootstrap.servers": bootstrap, "enable.auto.commit": False, "log_level": 0, **settings})
    consumer.subscribe([topic])
    try:
        read: list[Any] = []
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(read) < RECORDS and time.monotonic() < deadline:
            read += consumer.consume(RECORDS, 0.5)
        assert len(read) == RECORDS
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()


def ms(at: datetime) -> float:
    return at.timestamp() * 1000


def rows_of(lag: LiveLag, blocked: Blocked) -> dict[str, dict[str, Any]]:
    """The rows of `lag` after a sample, by group."""
    rows = lag.sample()
    return {group: rows[group, blocked.topic, 0] for group in blocked.groups}


def findings(lag: LiveLag, group: str) -> list[dict[str, Any]]:
    (row,) = lag.query(f"SELECT status, findings FROM group_status WHERE group_id = '{group}'")
    return [found for found in row["findings"] if found["rule"] == "hanging_transaction"]


def assert_blocked(blocked: Blocked, rows: dict[str, dict[str, Any]]) -> None:
    """Whatever a library commits."""
    assert {group: row["group_offset"] for group, row in rows.items()} == blocked.groups
    for group, row in rows.items():
        assert (row["blocked_by_transaction"], row["lag_reason"]) == (True, "open_transaction"), group
        assert row["lag_seconds_high"] is None or row["lag_seconds_high"] >= row["lag_seconds"]


@pytest.mark.parametrize("reads", [True, False], ids=["transactions", "without transactions"])
def test_three_libraries_behind_an_open_transaction(
    broker: PrivateBroker, blocked: Blocked, tmp_path: Path, *, reads: bool
) -> None:
    # the job starts when the transaction has been open for a while
    time.sleep(2)
    started = now_ms()
    lag = LiveLag(broker.bootstrap, tmp_path / "tables", transactions=reads, status=HANGING)
    rows_of(lag, blocked)
    blocked.append()
    rows = rows_of(lag, blocked)
    assert_blocked(blocked, rows)
    (producer_id,) = {row["blocked_by_producer_id"] for row in rows.values()}
    assert producer_id >= 0
    name = blocked.transactional_id if reads else f"producer {producer_id}"
    for group, row in rows.items():
        assert row["blocked_by_transactional_id"] == (blocked.transactional_id if reads else None)
        assert row["blocked_since_method"] == ("transaction" if reads else "record")
        # the start of the transaction, not the first sample
        assert blocked.began_after <= ms(row["blocked_since"]) <= blocked.began_by < started
        (found,) = findings(lag, group)
        assert f"transaction of {name}, open since" in found["detail"]
        assert found["window_seconds"] > 2
    # nothing changes while records arrive
    expected = {(group, blocked.topic, 0): [name] for group in blocked.groups}
    for _ in range(3):
        blocked.append()
        assert_blocked(blocked, rows_of(lag, blocked))
        named = blocking_transactions(Snapshot.open(lag.root), list(blocked.groups))
        assert named == expected
    blocked.producer.abort_transaction(PATIENCE_SECONDS)
    # a broker answers before it has written the markers
    after = eventually(
        "the marker is written",
        lambda: rows_of(lag, blocked),
        lambda rows: not any(row["blocked_by_transaction"] for row in rows.values()),
    )
    assert not any(findings(lag, group) for group in blocked.groups)
    lag.close()
    # the event remains
    for group in blocked.groups:
        history = lag.query(f"SELECT * FROM lag_history WHERE group_id = '{group}' ORDER BY sampled_at")
        (interval,) = blocked_intervals(history)
        assert interval.until == after[group]["sampled_at"]
        assert (interval.transaction.producer_id, interval.transaction.since_ms) == (
            producer_id,
            ms(rows[group]["blocked_since"]),
        )


def test_a_group_with_records_before_the_open_transaction_is_not_blocked(
    broker: PrivateBroker, clients: Clients, blocked: Blocked, tmp_path: Path
) -> None:
    consumer = clients.consumer(f"behind-{blocked.topic}")
    clients.commit(consumer, [(blocked.topic, 0, RECORDS - 1)])
    lag = LiveLag(broker.bootstrap, tmp_path / "tables", status=HANGING)
    for _ in range(2):
        row = lag.sample()[f"behind-{blocked.topic}", blocked.topic, 0]
    assert (row["blocked_by_transaction"], row["blocked_since"]) == (False, None)
    assert findings(lag, f"behind-{blocked.topic}") == []
    blocked.producer.abort_transaction(PATIENCE_SECONDS)


def test_first_records_of_several_partitions(broker: PrivateBroker, clients: Clients, topic: str) -> None:
    """A broker returns a batch above the size of the request for the first partition only."""
    create_topic(broker.bootstrap, topic, 5)
    producer = clients.transaction(f"writer-{topic}")
    producer.begin_transaction()
    began = now_ms()
    for partition in range(4):
        producer.produce(topic, b"x" * (300_000 if partition in (1, 2) else 10), partition=partition)
    assert producer.flush(PATIENCE_SECONDS) == 0
    offsets = {(topic, partition): 0 for partition in range(5)} | {(topic, 99): 0, (f"{topic}-missing", 0): 0, (topic, 3): 7}
    found = FirstRecordReader(f"kafka://{broker.bootstrap}/__consumer_offsets", None).read(offsets, PATIENCE_SECONDS)
    records = [found[topic, partition] for partition in range(3)]
    assert all(isinstance(record, FirstRecord) for record in records), records
    for record in records:
        assert isinstance(record, FirstRecord)
        assert record.timestamp_ms is not None
        assert began <= record.timestamp_ms <= now_ms()
    assert len({record.producer_id for record in records if isinstance(record, FirstRecord)}) == 1
    assert {key: found[key] for key in offsets if key not in {(topic, partition) for partition in range(3)}} == {
        (topic, 3): "offset_out_of_range",
        (topic, 4): "no_record",
        (topic, 99): "unknown_topic_or_partition",
        (f"{topic}-missing", 0): "unknown_topic_or_partition",
    }
    producer.abort_transaction(PATIENCE_SECONDS)
