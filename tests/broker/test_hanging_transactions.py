"""`kafka-transactions` of 4.1.1 finds a transaction that its coordinator does not have, describes its producer and aborts it."""

import time
from collections.abc import Iterator
from typing import Any

import java_tools
import pytest
from confluent_kafka import Producer
from data_partitions import batch
from live_kafka import QUIET, create_topic
from patience import PATIENCE_SECONDS
from read_topics import read_topic
from wire_connection import Wire

from coordinator_core.codec.messages.offsets import ZERO_UUID
from coordinator_core.protocol import apis
from coordinator_core.protocol.cluster import ProducePartition, ProduceRequest
from coordinator_core.protocol.error_code import ErrorCode
from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.examples.private.private_coordinator import PrivateCoordinator

pytestmark = [pytest.mark.broker, pytest.mark.long]

TOPIC, PRODUCER_ID, EPOCH = "orders", 4711, 3
#: Last version of Produce whose transactions a leader does not add to the coordinator.
_PRODUCE_VERSION = 11
_HOUR_MS = 3_600_000


@pytest.fixture(scope="module", params=["coordinator", pytest.param("4.1.1", marks=pytest.mark.slow)])
def bootstrap(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A node that lets producers write to transactions without verification; node id 1."""
    if request.param != "coordinator":
        properties = {"transaction.partition.verification.enable": "false"}
        with PrivateBroker(request.param, properties=properties) as broker:
            create_topic(broker.bootstrap, TOPIC, 2)
            yield broker.bootstrap
        return
    topics: dict[str, Any] = {TOPIC: {"partitions": 2, "data": True}}
    settings: dict[str, Any] = {"transaction_partition_verification_enable": False, "transaction_state_log_num_partitions": 2}
    log = tmp_path_factory.mktemp("coordinator") / "log"
    with PrivateCoordinator(log, topics=topics, offsets_topic_num_partitions=2, **settings) as running:
        yield running.bootstrap
        assert [line["reason"] for line in running.events("connection ended")] == []


def test_a_hanging_transaction(bootstrap: str) -> None:
    genuine = Producer({"bootstrap.servers": bootstrap, "transactional.id": "genuine", **QUIET})
    genuine.init_transactions(PATIENCE_SECONDS)
    genuine.begin_transaction()
    genuine.produce(TOPIC, b"committed", partition=1)
    genuine.commit_transaction(PATIENCE_SECONDS)
    genuine.begin_transaction()
    genuine.produce(TOPIC, b"open", partition=1)
    assert genuine.flush(PATIENCE_SECONDS) == 0

    # a producer that no coordinator has, an hour ago
    an_hour_ago = int(time.time() * 1000) - _HOUR_MS
    data = batch([b"hanging"], producer=PRODUCER_ID, epoch=EPOCH, sequence=0, transactional=True, timestamp=an_hour_ago)
    wire = Wire(int(bootstrap.rpartition(":")[2]))
    request = ProduceRequest((ProducePartition(TOPIC, ZERO_UUID, 0, data),), transactional_id="forgotten")
    (produced,) = wire.ask(apis.PRODUCE, _PRODUCE_VERSION, request).partitions
    assert produced.error is ErrorCode.NONE
    wire.close()

    listed = java_tools.transactions(bootstrap, "list")
    assert [(row["TransactionalId"], row["TransactionState"]) for row in listed] == [("genuine", "Ongoing")]
    (described,) = java_tools.transactions(bootstrap, "describe", "--transactional-id", "genuine")
    assert (described["TransactionState"], described["TopicPartitions"]) == ("Ongoing", f"{TOPIC}-1")

    def producer() -> dict[str, str]:
        (row,) = java_tools.transactions(bootstrap, "describe-producers", "--topic", TOPIC, "--partition", "0")
        return {name: row[name] for name in ("ProducerId", "ProducerEpoch", "LastSequence", "CurrentTransactionStartOffset")}

    last = {"ProducerId": f"{PRODUCER_ID}", "ProducerEpoch": f"{EPOCH}", "LastSequence": "0"}
    assert producer() == {**last, "CurrentTransactionStartOffset": "0"}

    def hanging() -> list[dict[str, str]]:
        return java_tools.transactions(bootstrap, "find-hanging", "--broker-id", "1", "--max-transaction-timeout", "15")

    (found,) = hanging()
    assert (found["Topic"], found["Partition"], found["ProducerId"], found["StartOffset"]) == (TOPIC, "0", f"{PRODUCER_ID}", "0")
    java_tools.transactions(bootstrap, "abort", "--topic", TOPIC, "--partition", "0", "--start-offset", "0")
    assert hanging() == []
    assert producer() == {**last, "CurrentTransactionStartOffset": "None"}
    assert read_topic(bootstrap, TOPIC, 2) == [b"committed"]
    genuine.commit_transaction(PATIENCE_SECONDS)
    assert sorted(read_topic(bootstrap, TOPIC, 2)) == [b"committed", b"open"]
