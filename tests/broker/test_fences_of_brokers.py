"""Brokers, librdkafka and their models in tests fence alike: `test_owners_of_a_log_partition` rests on the models."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any, Protocol
from uuid import uuid4

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from data_partitions import batch
from eventually import eventually
from hostile_requests import PLAIN, Target, now_ms
from live_kafka import create_topic
from modelled_brokers import ModelledCoordinator, ModelledPartition, Queued
from modelled_clients import Fate, ModelledProducer, Network
from patience import PATIENCE_SECONDS
from stepped_calls import SteppedCall

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.log.entries import ControlType
from coordinator_core.protocol import apis
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.groups import CoordinatorType, FindCoordinatorRequest
from coordinator_core.protocol.offsets import ProducerEpoch
from coordinator_core.protocol.transactions import AddPartitionsToTxnRequest, EndTxnRequest, InitProducerIdRequest
from coordinator_core.topic_log.client_options import client_options
from pipelines.examples.private.kafka.broker import PrivateBroker

pytestmark = pytest.mark.broker

#: The versions that librdkafka has: transactions of version 1.
_INIT, _ADD, _END = 4, 3, 4


@pytest.fixture(scope="module")
def broker() -> Iterator[PrivateBroker]:
    """A broker of this file."""
    with PrivateBroker() as running:
        create_topic(running.bootstrap, PLAIN, 1)
        yield running


class Side(Protocol):
    """A transactional id and one partition: requests that wait while the coordinator is busy, and the names of their errors."""

    def init(self) -> ProducerEpoch: ...

    def add(self, producer: ProducerEpoch) -> str: ...

    def produce(self, producer: ProducerEpoch, sequence: int) -> str: ...

    def end(self, producer: ProducerEpoch, *, commit: bool) -> str: ...


class OfBroker:
    def __init__(self, bootstrap: str) -> None:
        self.name = f"id-{uuid4().hex[:8]}"
        self.target = Target(bootstrap)
        self.target.ask(apis.FIND_COORDINATOR, 3, FindCoordinatorRequest((self.name,), CoordinatorType.TRANSACTION))

    def init(self) -> ProducerEpoch:
        request = InitProducerIdRequest(self.name, 60_000)
        answer = self.target.until_it_is_served(apis.INIT_PRODUCER_ID, _INIT, request, lambda each: ErrorCode(each.error))
        assert answer.error is ErrorCode.NONE
        return ProducerEpoch(*answer.producer)

    def add(self, producer: ProducerEpoch) -> str:
        request = AddPartitionsToTxnRequest(self.name, producer, (TopicPartition(PLAIN, 0),))
        return self.target.error(apis.ADD_PARTITIONS_TO_TXN, _ADD, request)

    def produce(self, producer: ProducerEpoch, sequence: int) -> str:
        data = batch(
            [b"a"],
            timestamp=now_ms(),
            producer=producer.producer_id,
            epoch=producer.producer_epoch,
            sequence=sequence,
            transactional=True,
        )
        return self.target.produced(data, at=(PLAIN, 0), transactional_id=self.name)

    def end(self, producer: ProducerEpoch, *, commit: bool) -> str:
        return self.target.error(apis.END_TXN, _END, EndTxnRequest(self.name, producer, commit))


class OfModel:
    def __init__(self) -> None:
        self.coordinator = ModelledCoordinator(ModelledPartition())

    def init(self) -> ProducerEpoch:
        while (answer := self.coordinator.init_producer_id())[1] is None:
            assert answer[0] is ErrorCode.CONCURRENT_TRANSACTIONS
            self.coordinator.write_markers(0)
        return answer[1]

    def add(self, producer: ProducerEpoch) -> str:
        return self.marked(lambda: self.coordinator.add_partition(producer))

    def produce(self, producer: ProducerEpoch, sequence: int) -> str:
        return self.coordinator.produce(producer, sequence, [Queued(b"k", b"a", 0)])[0].name

    def end(self, producer: ProducerEpoch, *, commit: bool) -> str:
        return self.marked(lambda: self.coordinator.end(producer, ControlType.COMMIT if commit else ControlType.ABORT))

    def marked(self, request: Callable[[], ErrorCode]) -> str:
        """The error after all markers are written."""
        self.coordinator.write_markers(0)
        error = request()
        self.coordinator.write_markers(0)
        return error.name


def story(side: Side) -> Iterator[tuple[str, object]]:
    """What owners of a partition do, with the answers."""
    first = side.init()
    yield "a batch before AddPartitionsToTxn", side.produce(first, 0)
    yield "AddPartitionsToTxn", side.add(first)
    yield "a batch", side.produce(first, 0)
    yield "the same batch again", side.produce(first, 0)
    yield "a batch after a gap", side.produce(first, 5)
    yield "EndTxn", side.end(first, commit=True)
    yield "EndTxn again", side.end(first, commit=True)
    yield "EndTxn with the other outcome", side.end(first, commit=False)
    yield "a batch after EndTxn", side.produce(first, 1)
    yield "the next transaction", side.add(first)
    yield "its batch", side.produce(first, 1)
    yield "its EndTxn", side.end(first, commit=True)
    second, third = side.init(), side.init()
    for producer in (second, third):
        yield "InitProducerId", (producer.producer_id == first.producer_id, producer.producer_epoch - first.producer_epoch)
    yield "AddPartitionsToTxn of a fenced epoch", side.add(second)
    yield "a batch of a fenced epoch", side.produce(second, 0)
    yield "EndTxn of a fenced epoch", side.end(second, commit=True)
    yield "EndTxn without a transaction", side.end(third, commit=True)
    yield "the owner's transaction", side.add(third)
    yield "a first batch with a later sequence number", side.produce(third, 3)
    yield "its first batch", side.produce(third, 0)
    yield "a batch of an earlier epoch in the meantime", side.produce(first, 2)
    fourth = side.init()
    yield "InitProducerId ends a transaction", fourth.producer_epoch - third.producer_epoch
    yield "a batch of the ended transaction", side.produce(third, 1)
    yield "EndTxn of the ended transaction", side.end(third, commit=True)
    yield "another producer id", side.end(ProducerEpoch(fourth.producer_id + 1_000_000, 0), commit=True)
    yield "the next owner's transaction", side.add(fourth)
    yield "its abort", side.end(fourth, commit=False)
    yield "EndTxn after an abort", side.end(fourth, commit=True)


def test_a_broker_and_its_model_give_the_same_answers(broker: PrivateBroker) -> None:
    real = OfBroker(broker.bootstrap)
    with closing(real.target):
        assert list(story(real)) == list(story(OfModel()))


# ---- the library

Outcome = tuple[int, bool, bool] | None


def outcome(work: Callable[[], object]) -> Outcome:
    """Code, fatal and retriable of the error; None without one."""
    try:
        work()
    except KafkaException as raised:
        error: KafkaError = raised.args[0]
        return error.code(), error.fatal(), error.retriable()
    return None


def real_producer(bootstrap: str, name: str) -> Any:
    return Producer({**client_options((bootstrap,), {}, time.time), "transactional.id": name, "linger.ms": 0})


class ModelledCalls:
    """A modelled producer whose requests are all answered."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._producer = ModelledProducer(network, 100)

    def produce(self, *arguments: Any, **named: Any) -> None:
        self._producer.produce(*arguments, **named)

    def flush(self, timeout: float) -> None:  # noqa: ARG002 - of a producer
        """What librdkafka sends before EndTxn."""
        self._call(self._producer.send)

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *arguments: self._call(lambda: getattr(self._producer, name)(*arguments))

    def _call(self, work: Callable[[], None]) -> None:
        call = SteppedCall(work)
        while not call.is_over:
            call.step(Fate.ANSWERED)
            self._network.coordinator.write_markers(0)
        if call.error is not None:
            raise call.error


def library_story(new_producer: Callable[[], Any], topic: str) -> Iterator[tuple[str, Outcome]]:
    """What a fenced owner's library says, at each step at which it may learn of it."""

    def owner() -> Any:
        producer = new_producer()
        eventually("the producer has an epoch", lambda: outcome(lambda: producer.init_transactions(PATIENCE_SECONDS)) is None)
        return producer

    first = owner()
    first.begin_transaction()
    first.produce(topic, b"v", b"k", 0)
    yield "committed", outcome(lambda: first.commit_transaction(PATIENCE_SECONDS))
    second = owner()
    first.begin_transaction()
    first.produce(topic, b"v", b"k", 0)
    yield "fenced between transactions", outcome(lambda: first.commit_transaction(PATIENCE_SECONDS))
    second.begin_transaction()
    second.produce(topic, b"v", b"k", 0)
    second.flush(PATIENCE_SECONDS)
    third = owner()
    yield "fenced before EndTxn", outcome(lambda: second.commit_transaction(PATIENCE_SECONDS))
    third.begin_transaction()
    third.produce(topic, b"v", b"k", 0)
    third.flush(PATIENCE_SECONDS)
    owner()
    third.produce(topic, b"v", b"k", 0)
    yield "fenced before a further batch", outcome(lambda: third.commit_transaction(PATIENCE_SECONDS))


def test_the_library_and_its_model_raise_the_same_errors(broker: PrivateBroker) -> None:
    name = f"id-{uuid4().hex[:8]}"
    real = list(library_story(lambda: real_producer(broker.bootstrap, name), PLAIN))
    network = Network(ModelledCoordinator(ModelledPartition()))
    assert real == list(library_story(lambda: ModelledCalls(network), PLAIN))
