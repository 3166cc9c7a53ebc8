"""Transactions of Kafka's Java producer that contain only offsets of a group."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from java_clients import JavaClients, _properties
from py4j.protocol import Py4JJavaError

_BYTES = "org.apache.kafka.common.serialization.ByteArraySerializer"


class JavaOffsetProducer:
    """A `KafkaProducer` with a transactional id. Calls raise JavaFailure with the class of the client's exception."""

    def __init__(self, clients: JavaClients, bootstrap: str, transactional_id: str) -> None:
        self._jvm = clients._jvm
        settings = {
            "bootstrap.servers": bootstrap,
            "transactional.id": transactional_id,
            "enable.idempotence": "true",
            "max.block.ms": "60000",
            "key.serializer": _BYTES,
            "value.serializer": _BYTES,
        }
        self._producer = self._jvm.org.apache.kafka.clients.producer.KafkaProducer(_properties(self._jvm, settings))

    def init(self) -> None:
        """`initTransactions`."""
        self._call(self._producer.initTransactions)

    def commit(self, group: str, topic: str, offset: int, *, aborts: bool = False) -> None:
        """A transaction with one offset of a group that has no members."""
        self._call(self._producer.beginTransaction)
        offsets = self._jvm.java.util.HashMap()
        at = self._jvm.org.apache.kafka.common.TopicPartition(topic, 0)
        offsets.put(at, self._jvm.org.apache.kafka.clients.consumer.OffsetAndMetadata(offset))
        self._call(lambda: self._producer.sendOffsetsToTransaction(offsets, self._group(group)))
        self._call(self._producer.abortTransaction if aborts else self._producer.commitTransaction)

    def _group(self, group: str) -> Any:
        """The metadata of the group, or its id in clients before 2.5."""
        try:
            return self._jvm.org.apache.kafka.clients.consumer.ConsumerGroupMetadata(group)
        except TypeError:
            return group

    def close(self) -> None:
        self._producer.close()

    def _call(self, method: Any) -> None:
        try:
            method()
        except Py4JJavaError as error:
            raise JavaFailure(str(error.java_exception.getClass().getSimpleName())) from error


class JavaFailure(Exception):
    """An exception of the Java client; the message is its class."""


@contextmanager
def java_offset_producer(clients: JavaClients, bootstrap: str, transactional_id: str) -> Iterator[JavaOffsetProducer]:
    """A producer, closed at the end."""
    producer = JavaOffsetProducer(clients, bootstrap, transactional_id)
    try:
        yield producer
    finally:
        producer.close()
