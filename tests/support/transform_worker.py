"""A worker of a consume-transform-produce chain with librdkafka: each batch of records and its offsets are one transaction.

    python transform_worker.py BOOTSTRAP NAME GROUP INPUT OUTPUT

NAME is its transactional id, so a worker that starts again fences the one before it. It runs until it is killed. An error that
no transaction survives ends it with exit code 1, and its parent starts it again, as a service manager does.
"""

import sys
from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from live_kafka import QUIET, SURVIVES_RESTARTS

#: Records of a transaction, at most.
_BATCH = 40
_POLL_SECONDS = 0.1
#: Limit of one call of the producer, which is repeated when it has passed.
_CALL_SECONDS = 5.0


def transformed(value: bytes) -> bytes:
    """The output record of an input record."""
    return value[::-1] + b"!"


class Worker:
    """A consumer of the group and a producer."""

    def __init__(self, bootstrap: str, name: str, group: str, source: str, target: str) -> None:
        common = {"bootstrap.servers": bootstrap, "client.id": name, **SURVIVES_RESTARTS, **QUIET}
        reading = {
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "session.timeout.ms": 3000,  # runs out: workers are killed
            "heartbeat.interval.ms": 300,
            "fetch.wait.max.ms": 100,
            "fetch.error.backoff.ms": 50,
        }
        writing = {"transactional.id": name, "transaction.timeout.ms": 8000, "linger.ms": 0, "retry.backoff.ms": 50}
        self._target = target
        self._consumer = Consumer({**common, **reading})
        self._producer = Producer({**common, **writing})
        _repeated(lambda: self._producer.init_transactions(_CALL_SECONDS))  # runs out: repeated
        self._consumer.subscribe([source])

    def run(self) -> None:
        """Transform batches for ever."""
        while True:
            messages = [message for message in self._consumer.consume(_BATCH, _POLL_SECONDS) if message.error() is None]
            if not messages:
                continue
            try:
                self._transform(messages)
            except KafkaException as failure:
                error: KafkaError = failure.args[0]
                if not error.txn_requires_abort():
                    raise
                _repeated(lambda: self._producer.abort_transaction(_CALL_SECONDS))  # runs out: repeated
                self._rewind()

    def _transform(self, messages: list[Message]) -> None:
        self._producer.begin_transaction()
        ends: dict[tuple[str, int], int] = {}
        for message in messages:
            at = message.partition() or 0
            self._producer.produce(self._target, transformed(message.value() or b""), partition=at)
            ends[message.topic() or "", at] = (message.offset() or 0) + 1
        offsets = [TopicPartition(*at, offset) for at, offset in ends.items()]
        metadata = self._consumer.consumer_group_metadata()
        _repeated(lambda: self._producer.send_offsets_to_transaction(offsets, metadata, _CALL_SECONDS))  # runs out: repeated
        _repeated(lambda: self._producer.commit_transaction(_CALL_SECONDS))  # runs out: repeated

    def _rewind(self) -> None:
        """Continue at the committed offsets."""
        while True:
            owned = self._consumer.assignment()
            try:
                for at in self._consumer.committed(owned, _CALL_SECONDS) if owned else []:  # runs out: repeated
                    self._consumer.seek(TopicPartition(at.topic, at.partition, max(at.offset, 0)))
            except KafkaException as failure:
                # not assigned any more: the next owner begins at the committed offset
                if failure.args[0].code() == KafkaError._STATE:
                    continue
                if not failure.args[0].retriable() and failure.args[0].code() != KafkaError._TIMED_OUT:
                    raise
            else:
                return


def _repeated(call: Callable[[], Any]) -> None:
    """Call until the result is not an error that may pass."""
    while True:
        try:
            call()
        except KafkaException as failure:
            if not failure.args[0].retriable():
                raise
        else:
            return


if __name__ == "__main__":
    Worker(*sys.argv[1:]).run()
