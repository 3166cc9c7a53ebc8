"""Folders of topics with data: a broker loads ours after transactions, a compaction and a kill, and we load a broker's."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import IsolationLevel, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from eventually import eventually
from live_kafka import QUIET, SeenRecord, create_topic
from patience import PATIENCE_SECONDS
from read_topics import read_records
from wire_connection import Wire

from coordinator_core.codec.topic_partition import TopicPartition as Place
from coordinator_core.protocol import apis
from coordinator_core.protocol.topics import DescribeProducersRequest
from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.examples.private.kafka.ports import PortReservation
from pipelines.examples.private.private_coordinator import PrivateCoordinator

pytestmark = [pytest.mark.broker, pytest.mark.long]

DELETED, COMPACTED = "orders", "prices"
#: The smallest size that brokers of 4.x accept.
SEGMENT_BYTES = 1_048_576
CONFIGS = {
    DELETED: {"segment.bytes": str(SEGMENT_BYTES)},
    COMPACTED: {"segment.bytes": str(SEGMENT_BYTES), "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"},
}
VALUE_BYTES, ROUNDS, KEYS = 20_000, 30, 7
FILES = (".log", ".snapshot", ".txnindex")
#: Its methods have no types.
SPECS: Any = OffsetSpec


@dataclass(frozen=True)
class View:
    """Everything that clients see of both topics."""

    committed: dict[str, list[SeenRecord]]
    uncommitted: dict[str, list[SeenRecord]]
    stable_offsets: dict[str, int]
    producers: dict[str, list[tuple[int, ...]]]


def write(bootstrap: str) -> Producer:
    """Idempotent records, committed and aborted transactions; the returned producer has a transaction open."""
    plain = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, **QUIET})
    writers = [Producer({"bootstrap.servers": bootstrap, "transactional.id": f"writer-{i}", **QUIET}) for i in range(2)]
    for writer in writers:
        writer.init_transactions(PATIENCE_SECONDS)
    for number in range(ROUNDS):
        for topic in CONFIGS:
            plain.produce(topic, b"%d plain " % number + bytes(VALUE_BYTES), key=b"%d" % (number % KEYS), partition=0)
        assert plain.flush(PATIENCE_SECONDS) == 0
        writer = writers[number % 2]
        writer.begin_transaction()
        for topic in CONFIGS:
            for each in range(2):
                value = b"%d transactional " % number + bytes(VALUE_BYTES)
                writer.produce(topic, value, key=b"%d" % ((number + each) % KEYS), partition=0)
        # an abort drops what was not sent yet
        assert writer.flush(PATIENCE_SECONDS) == 0
        (writer.commit_transaction if number % 3 else writer.abort_transaction)(30)
    writers[0].begin_transaction()
    for topic in CONFIGS:
        writers[0].produce(topic, b"open", key=b"open", partition=0)
    assert writers[0].flush(PATIENCE_SECONDS) == 0
    for topic in CONFIGS:
        plain.produce(topic, b"after", key=b"after", partition=0)
    assert plain.flush(PATIENCE_SECONDS) == 0
    return writers[0]


def view(bootstrap: str) -> View:
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    wire = Wire(int(bootstrap.rpartition(":")[2]))
    stable, producers = {}, {}
    for topic in CONFIGS:
        at = TopicPartition(topic, 0)
        found = admin.list_offsets({at: SPECS.latest()}, isolation_level=IsolationLevel.READ_COMMITTED)[at].result(
            PATIENCE_SECONDS
        )
        stable[topic] = found.offset
        described = wire.ask(apis.DESCRIBE_PRODUCERS, 0, DescribeProducersRequest((Place(topic, 0),)))
        producers[topic] = sorted(tuple(each) for each in described.partitions[Place(topic, 0)].producers)
    wire.close()
    return View(
        {topic: read_records(bootstrap, topic, 1) for topic in CONFIGS},
        {topic: read_records(bootstrap, topic, 1, "read_uncommitted") for topic in CONFIGS},
        stable,
        producers,
    )


def until_compacted(folder: Path) -> None:
    """Wait until the segment at offset 0 of the compacted topic is smaller than at its end."""
    first = folder / f"{COMPACTED}-0" / f"{0:020}.log"
    eventually("the topic is compacted", lambda: first.stat().st_size, lambda size: size < SEGMENT_BYTES // 2, pause_seconds=0.1)


@pytest.fixture(scope="module")
def listen() -> Iterator[str]:
    reserved = PortReservation()
    yield f"127.0.0.1:{reserved.port}"
    reserved.release()


def ours(folder: Path, listen: str) -> PrivateCoordinator:
    topics: dict[str, Any] = {
        name: {"partitions": 1, "data": True, **{key.replace(".", "_"): _typed(value) for key, value in configs.items()}}
        for name, configs in CONFIGS.items()
    }
    settings: dict[str, Any] = {"offsets_topic_num_partitions": 2, "transaction_state_log_num_partitions": 2}
    return PrivateCoordinator(folder, topics=topics, listen=listen, log_cleaner_interval_ms=200, **settings)


def _typed(value: str) -> str | int:
    return int(value) if value.isdigit() else value


@pytest.fixture(scope="module", params=[pytest.param(version, marks=pytest.mark.slow) for version in ("4.1.1", "3.9.1")])
def broker(request: pytest.FixtureRequest) -> Iterator[PrivateBroker]:
    properties = {"log.cleaner.backoff.ms": "200", "log.initial.task.delay.ms": "0"}
    with PrivateBroker(request.param, properties=properties) as running:
        for name, configs in CONFIGS.items():
            create_topic(running.bootstrap, name, 1, **{key.replace(".", "_"): value for key, value in configs.items()})
        yield running


@dataclass(frozen=True)
class Written:
    """A node that was killed, its view before, and a copy of its folder."""

    before: View
    folder: Path


def written(bootstrap: str, folder: Path, kill: Callable[[], None], copy: Path) -> Written:
    write(bootstrap)
    until_compacted(folder)
    before = view(bootstrap)
    assert len(before.uncommitted[COMPACTED]) < len(before.uncommitted[DELETED])
    assert len(before.committed[DELETED]) < len(before.uncommitted[DELETED])
    kill()
    for name in CONFIGS:
        shutil.copytree(folder / f"{name}-0", copy / f"{name}-0")
    return Written(before, copy)


def test_a_broker_loads_our_folders(broker: PrivateBroker, tmp_path: Path, listen: str) -> None:
    with ours(tmp_path / "log", listen) as coordinator:
        found = written(coordinator.bootstrap, tmp_path / "log", coordinator.kill, tmp_path / "copy")
    names = {path.suffix for path in (found.folder / f"{DELETED}-0").iterdir()}
    assert set(FILES) <= names
    broker.stop()
    for name in CONFIGS:
        broker.place_segments(found.folder, name, FILES)
    broker.start()
    eventually("the broker has loaded the topics", lambda: view(broker.bootstrap), lambda now: now == found.before)


@pytest.mark.slow
def test_we_load_the_folders_of_a_broker(tmp_path: Path, listen: str) -> None:
    properties = {"log.cleaner.backoff.ms": "200"}
    with PrivateBroker("4.1.1", properties=properties) as broker:
        for name, configs in CONFIGS.items():
            create_topic(broker.bootstrap, name, 1, **{key.replace(".", "_"): value for key, value in configs.items()})
        found = written(broker.bootstrap, broker.data, broker.kill, tmp_path / "copy")
    with ours(tmp_path / "log", listen) as coordinator:
        coordinator.stop()
        for name in CONFIGS:
            shutil.rmtree(tmp_path / "log" / f"{name}-0")
            shutil.copytree(found.folder / f"{name}-0", tmp_path / "log" / f"{name}-0")
        coordinator.start()
        coordinator.wait_until_loaded()
        assert view(coordinator.bootstrap) == found.before
