"""franz-go and kafka-python as idempotent and transactional producers, with offsets in their transactions."""

import subprocess
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka.admin import AdminClient
from eventually import equal_to, eventually
from group_offsets import committed
from kafka import KafkaProducer
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata, TopicPartition
from live_kafka import QUIET
from member_programs import go_member
from patience import PATIENCE_SECONDS
from read_topics import read_topic

from pipelines.examples.private.private_coordinator import PrivateCoordinator

# the first run downloads and builds the clients
pytestmark = [pytest.mark.broker, pytest.mark.long]

PARTITIONS, RECORDS = 3, 200
SETTINGS: dict[str, Any] = {
    "offsets_topic_num_partitions": 2,
    "transaction_state_log_num_partitions": 2,
    "group_initial_rebalance_delay_ms": 0,
}


@pytest.fixture(scope="module", params=["4", pytest.param("3", marks=pytest.mark.slow)])
def coordinator(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateCoordinator]:
    log = tmp_path_factory.mktemp("coordinator") / "log"
    topics: dict[str, Any] = {
        name: {"partitions": PARTITIONS, "data": True} for name in ("franz-in", "franz-out", "python-out", "python-in")
    }
    with PrivateCoordinator(log, topics=topics, era=request.param, **SETTINGS) as running:
        yield running
        assert [line["reason"] for line in running.events("connection ended")] == []
        assert running.events("unexpected error") == []


def offsets(coordinator: PrivateCoordinator, group: str) -> dict[tuple[str, int], int]:
    return committed(AdminClient({"bootstrap.servers": coordinator.bootstrap, **QUIET}), group)


def test_franz_go(coordinator: PrivateCoordinator) -> None:
    group = f"franz-{uuid4().hex[:8]}"
    command = [*go_member("transactions"), coordinator.bootstrap, group, "franz-in", "franz-out", group, str(RECORDS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    ends = [line.split() for line in done.stdout.splitlines()]
    assert ends[0][0] == "false"
    assert sum(int(count) for is_committed, count in ends if is_committed == "true") == RECORDS
    values = sorted(b"franz %d" % number for number in range(RECORDS))
    assert sorted(read_topic(coordinator.bootstrap, "franz-in", PARTITIONS)) == values
    assert sorted(read_topic(coordinator.bootstrap, "franz-out", PARTITIONS)) == [b"moved " + value for value in values]
    moved = read_topic(coordinator.bootstrap, "franz-out", PARTITIONS, "read_uncommitted")
    assert len(moved) == RECORDS + int(ends[0][1])
    assert sum(offsets(coordinator, group).values()) == RECORDS


def test_kafka_python(coordinator: PrivateCoordinator) -> None:
    name = f"python-{uuid4().hex[:8]}"
    idempotent = KafkaProducer(bootstrap_servers=coordinator.bootstrap, enable_idempotence=True)
    for number in range(RECORDS):
        idempotent.send("python-in", b"python %d" % number)
    idempotent.flush(PATIENCE_SECONDS)
    idempotent.close()
    assert sorted(read_topic(coordinator.bootstrap, "python-in", PARTITIONS)) == sorted(
        b"python %d" % number for number in range(RECORDS)
    )

    first, second = (KafkaProducer(bootstrap_servers=coordinator.bootstrap, transactional_id=name) for _ in range(2))
    try:
        first.init_transactions()
        for number, is_committed in enumerate((True, False, True)):
            first.begin_transaction()
            for each in range(10):
                first.send("python-out", b"%d %d" % (number, each))
            at = {TopicPartition("python-in", 0): OffsetAndMetadata(10 + number, "", -1)}
            first.send_offsets_to_transaction(at, name)
            (first.commit_transaction if is_committed else first.abort_transaction)()
        expected = sorted(b"%d %d" % (number, each) for number in (0, 2) for each in range(10))

        def visible() -> list[bytes]:
            return sorted(read_topic(coordinator.bootstrap, "python-out", PARTITIONS))

        eventually("the markers are written", visible, equal_to(expected))
        assert offsets(coordinator, name) == {("python-in", 0): 12}

        second.init_transactions()
        first.begin_transaction()
        with pytest.raises(KafkaError):
            first.send("python-out", b"zombie").get(PATIENCE_SECONDS)
        second.begin_transaction()
        second.send("python-out", b"new").get(PATIENCE_SECONDS)
        second.commit_transaction()
        eventually("the new producer commits", visible, equal_to(sorted([*expected, b"new"])))
    finally:
        first.close()
        second.close()
