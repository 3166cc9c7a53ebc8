"""Lag and status of healthy groups after the job was away: never the lag of commits that it has not read yet."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from eventually import at_least, eventually
from following import Job
from group_offsets import commit_offsets
from live_kafka import QUIET, create_topic
from patience import LIMIT_SECONDS, PATIENCE_SECONDS

from coordinator_core.sources.kafka_connection import close_idle_connections
from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.query.engine import Snapshot
from pipelines.runtime.errors import GrouplakeError, UsageError

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.slow]

PARTITIONS = 2
RECORDS_PER_SECOND = 200
AWAY_SECONDS = 30
#: Consumers commit every second. Ten seconds of records are more than a healthy group is ever behind, and a third of what a
#: comparison with commits from before the absence would show.
MOST_LAG = 10 * RECORDS_PER_SECOND
#: Commits of another group during the absence: several small batches. The groups bring four commits a second, so that also a
#: machine that needs half a minute for a batch catches up.
BURST_COMMITS, SMALL_BATCH = 1_000, 200


@pytest.fixture(scope="module")
def broker() -> Iterator[PrivateBroker]:
    """A broker of this file's own: in small batches, the job would read the commits of other tests for minutes."""
    with PrivateBroker("4.1.1", offsets_partitions=4) as running:
        yield running
        close_idle_connections()


@contextmanager
def traffic(bootstrap: str, topic: str, groups: list[str]) -> Iterator[None]:
    """Records at a steady rate, and consumers that keep up."""
    stop = threading.Event()

    def produce() -> None:
        producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5, **QUIET})
        started, sent = time.monotonic(), 0
        while not stop.wait(0.05):
            while sent < (time.monotonic() - started) * RECORDS_PER_SECOND:
                producer.produce(topic, b"record", partition=sent % PARTITIONS)
                sent += 1
            producer.poll(0)
        producer.flush(PATIENCE_SECONDS)

    def consume(group: str) -> None:
        settings = {"group.id": group, "auto.offset.reset": "earliest", "auto.commit.interval.ms": 1_000}
        consumer = Consumer({"bootstrap.servers": bootstrap, **settings, **QUIET})
        consumer.subscribe([topic])
        while not stop.is_set():
            consumer.consume(1_000, 0.2)
        consumer.close()

    threads = [threading.Thread(target=produce), *(threading.Thread(target=consume, args=(group,)) for group in groups)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def burst(bootstrap: str, topic: str) -> None:
    """Many commits of a group at once."""
    commit_offsets(bootstrap, f"{topic}-burst", {(topic, 0): 0})
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": f"{topic}-burst", **QUIET})
    for offset in range(BURST_COMMITS):
        consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    consumer.close()


def committed(bootstrap: str, topic: str, groups: list[str]) -> Iterator[int]:
    """The committed offsets of each group, as a broker answers."""
    for group in groups:
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, **QUIET})
        partitions = [TopicPartition(topic, n) for n in range(PARTITIONS)]
        yield from (each.offset for each in consumer.committed(partitions, PATIENCE_SECONDS))
        consumer.close()


class Reader:
    """What a reader of the tables is told: every status and lag of some groups, by batch."""

    def __init__(self, tables: Path, groups: list[str]) -> None:
        self._tables = tables
        self._named = ", ".join(f"'{group}'" for group in groups)
        self.statuses: dict[tuple[int, str], str] = {}
        self.lags: dict[tuple[int, str, int], tuple[int | None, str | None]] = {}

    def look(self) -> int:
        """Read the newest batch. Returns the number of samples seen so far."""
        try:
            snapshot = Snapshot.open(str(self._tables))
            statuses = self._rows(snapshot, "group_status")
            lags = self._rows(snapshot, "lag")
        except (UsageError, GrouplakeError):
            return len(self.samples)
        self.statuses |= {(row["batch_id"], row["group_id"]): row["status"] for row in statuses}
        keys = ((row["batch_id"], row["group_id"], row["partition"]) for row in lags)
        self.lags |= {key: (row["lag"], row["lag_reason"]) for key, row in zip(keys, lags, strict=True)}
        return len(self.samples)

    def _rows(self, snapshot: Snapshot, table: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = snapshot.query(f"SELECT * FROM {table} WHERE group_id IN ({self._named})").to_pylist()
        return rows

    @property
    def samples(self) -> set[int]:
        return {batch for batch, _, _ in self.lags}

    def wait(self, samples: int, job: Job) -> None:
        """Look until there are so many more samples with a known lag."""
        wanted = len(self.known()) + samples
        eventually(
            f"{samples} more samples with lag",
            lambda: self.look() and len(self.known()),
            at_least(wanted),
            unless=job.failure,
            patience_seconds=LIMIT_SECONDS,
            pause_seconds=1,
        )

    def known(self) -> set[int]:
        """Samples in which every lag is known."""
        return {
            batch for batch in self.samples if all(lag is not None for (b, _, _), (lag, _) in self.lags.items() if b == batch)
        }


@pytest.mark.parametrize("limit", [0, SMALL_BATCH], ids=["one batch", "small batches"])
def test_a_job_that_comes_back_calls_no_healthy_group_dead(broker: PrivateBroker, topic: str, tmp_path: Path, limit: int) -> None:
    create_topic(broker.bootstrap, topic, PARTITIONS)
    groups = [f"{topic}-{name}" for name in ("billing", "search")]
    settings = tmp_path / "job.toml"
    settings.write_text(f"[lag]\ninterval_seconds = 2\n[job]\nmax_records_per_batch = {limit}\n")
    source, tables = f"kafka://{broker.bootstrap}/__consumer_offsets", tmp_path / "tables"
    reader = Reader(tables, groups)
    with traffic(broker.bootstrap, topic, groups):
        with Job(source, tables, "--conf", str(settings)) as job:
            reader.wait(3, job)
            job.signal(signal.SIGKILL, whole_group=True)
            job.ended()
        before = max(reader.samples)
        burst(broker.bootstrap, topic)
        time.sleep(AWAY_SECONDS)
        with Job(source, tables, "--conf", str(settings)) as job:
            reader.wait(4, job)
            job.signal(signal.SIGTERM)
            assert job.ended() == 0
    wrong = {key: lag for key, (lag, _) in reader.lags.items() if lag is not None and not 0 <= lag <= MOST_LAG}
    assert not wrong, wrong
    assert {status for (batch, _), status in reader.statuses.items() if batch > before} <= {"OK", "UNKNOWN"}
    reasons = {reason for (batch, _, _), (lag, reason) in reader.lags.items() if batch > before and lag is None}
    assert reasons == {"catching_up"}
    history = Snapshot.open(str(tables)).query(
        "SELECT lag, commits_read_until, sampled_at FROM lag_history "
        f"WHERE group_id IN ('{groups[0]}', '{groups[1]}') AND lag IS NOT NULL"
    )
    assert all(row["lag"] <= MOST_LAG for row in history.to_pylist())
    assert all((row["sampled_at"] - row["commits_read_until"]).total_seconds() <= 10 for row in history.to_pylist())


def test_a_scheduled_run_calls_no_healthy_group_dead(broker: PrivateBroker, topic: str, tmp_path: Path) -> None:
    """The first run loads the log with Spark, the second one after a pause reads it in the driver; each samples at its end."""
    create_topic(broker.bootstrap, topic, PARTITIONS)
    groups = [f"{topic}-{name}" for name in ("billing", "search")]
    source, tables = f"kafka://{broker.bootstrap}/__consumer_offsets", tmp_path / "tables"
    reader = Reader(tables, groups)
    with traffic(broker.bootstrap, topic, groups):
        eventually(
            "the groups commit", lambda: [*committed(broker.bootstrap, topic, groups)], lambda ends: all(e > 0 for e in ends)
        )
        for pause_seconds in (0, AWAY_SECONDS):
            time.sleep(pause_seconds)
            with Job(source, tables, trigger="available-now") as job:
                assert job.ended() == 0, job.text
            reader.look()
    assert len(reader.known()) == len(reader.samples) == 2
    assert all(lag is not None and 0 <= lag <= MOST_LAG for lag, _ in reader.lags.values()), reader.lags
    assert set(reader.statuses.values()) == {"OK"}
