"""One partition of the log's topic, as its owner reads and writes it.

The owner has the transactional id of the partition. InitProducerId fences the owner before it and ends its transaction; what is
read after that, up to the end of the log, contains every acknowledged append. Each append is a transaction, acknowledged when it
is committed (docs/adr/0051).
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message

from coordinator_core.log.columns import RecordColumns
from coordinator_core.log.errors import LogUnreachable
from coordinator_core.producers.append import ProducerRejected
from coordinator_core.producers.state_manager import ProducerStateManager
from coordinator_core.segment_log.append_batch import AppendBatch
from coordinator_core.segment_log.errors import PartitionFailed
from coordinator_core.topic_log.broker_clients import TopicReader, TransactionalProducer
from coordinator_core.topic_log.errors import PartitionFenced, PartitionLost

#: Errors that say that another owner has called InitProducerId, or that the cluster has forgotten this one.
_FENCED = frozenset(
    {
        KafkaError._FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.INVALID_PRODUCER_ID_MAPPING,
        KafkaError.PRODUCER_FENCED,
    }
)
_FENCE_SECONDS = 10.0
#: Between two requests for the last stable offset, while a transaction is open behind it.
_STABLE_POLL_SECONDS = 0.05
_FULL_QUEUE_POLL_SECONDS = 0.05


class OwnedPartition:
    """A partition that this process may own; it does while `read_columns` was the last call that fenced it.

    `new_producer` makes a producer with this transactional id. `new_source` opens the topic with an isolation level.
    `append` and `read_columns` run in threads, one call at a time.
    """

    leader_epoch = 0

    def __init__(
        self,
        topic: str,
        partition: int,
        new_producer: Callable[[str], TransactionalProducer],
        new_source: Callable[[str], TopicReader],
        append_seconds: float,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.transactional_id = f"grouplake-{topic}-{partition}"
        #: Empty: transactions of clients are not served.
        self.producers = ProducerStateManager()
        self._new_producer = new_producer
        self._new_source = new_source
        self._append_seconds = append_seconds
        self._producer: TransactionalProducer | None = None
        self._lock = threading.Lock()

    def check_producers(self, batches: Sequence[AppendBatch], now_ms: int) -> Mapping[int, ProducerRejected]:  # noqa: ARG002
        """Return nothing: no batch has a producer of a client."""
        return {}

    def read_columns(self) -> Iterator[RecordColumns]:
        """Become the owner, and yield all committed records in pieces, in the order of offsets.

        Raises LogUnreachable, which a retry may help, and other errors of `KafkaSource`.
        """
        with self._lock:
            self._drop_producer()
            self._producer = self._fence()
            with self._new_source("read_uncommitted") as source:
                end = source.end_offsets()[self.partition]
            with self._new_source("read_committed") as source:
                self._wait_until_stable(source, end)
                start = source.earliest_offsets()[self.partition]
                yield from source.read_columns(self.partition, start, end)

    def append(self, batches: Sequence[AppendBatch], now_ms: int) -> Sequence[int]:
        """Append all batches in one transaction and return their base offsets. `now_ms` is the timestamp of their records.

        Raises PartitionFenced if there is another owner. Any other failure is PartitionLost, whether the outcome is unknown or
        the brokers rejected a record: the fence of the next load ends the transaction, and the log decides.
        """
        with self._lock:
            producer = self._producer
            if producer is None:
                raise PartitionLost(f"{self._name}: not the owner")
            offsets = [-1] * len(batches)
            try:
                producer.begin_transaction()
                for position, batch in enumerate(batches):
                    self._produce(producer, batch, now_ms, partial(_note_offset, offsets, position))
                self._commit(producer)
            except KafkaException as error:
                self._drop_producer()
                raise self._failure(error.args[0]) from None
            return offsets

    def release(self) -> None:
        """Give up the partition: nothing is appended any more. The next owner ends a transaction under way."""
        with self._lock:
            self._drop_producer()

    @property
    def _name(self) -> str:
        return f"partition {self.partition} of topic {self.topic}"

    # ---- the fence

    def _fence(self) -> TransactionalProducer:
        producer = self._new_producer(self.transactional_id)
        try:
            producer.init_transactions(_FENCE_SECONDS)
        except KafkaException as error:
            raise LogUnreachable(f"{self._name}: {error.args[0].str()}") from None
        return producer

    def _wait_until_stable(self, source: TopicReader, end: int) -> None:
        """Wait until no transaction is open below `end`; only one of another writer can be."""
        give_up = time.monotonic() + _FENCE_SECONDS
        while (stable := source.end_offsets()[self.partition]) < end:
            if time.monotonic() >= give_up:
                raise LogUnreachable(
                    f"{self._name}: a transaction that does not belong to its owner is open at offset {stable}: "
                    "only coordinators may write to the topic"
                )
            time.sleep(_STABLE_POLL_SECONDS)

    def _drop_producer(self) -> None:
        producer, self._producer = self._producer, None
        if producer is not None:
            # without it, the end of the library's object waits for the messages
            producer.purge()

    # ---- a transaction

    def _produce(
        self,
        producer: TransactionalProducer,
        batch: AppendBatch,
        now_ms: int,
        note_offset: Callable[[KafkaError | None, Message], None],
    ) -> None:
        for number, (key, value) in enumerate(batch.records):
            arguments: dict[str, Any] = {"partition": self.partition, "timestamp": now_ms}
            if number == 0:
                arguments["on_delivery"] = note_offset
            while True:
                try:
                    producer.produce(self.topic, value, key, **arguments)
                    break
                except BufferError:
                    producer.poll(_FULL_QUEUE_POLL_SECONDS)

    def _commit(self, producer: TransactionalProducer) -> None:
        give_up = time.monotonic() + self._append_seconds
        while True:
            try:
                producer.commit_transaction(max(give_up - time.monotonic(), 0.0))
                return
            except KafkaException as error:
                # the call continues where the one before stopped
                if not error.args[0].retriable() or time.monotonic() >= give_up:
                    raise

    def _failure(self, error: KafkaError) -> PartitionFailed:
        reason = f"{self._name}: {error.str()}"
        if error.code() in _FENCED:
            return PartitionFenced(f"{reason}: another coordinator owns the partition")
        return PartitionLost(reason)


def _note_offset(offsets: list[int], position: int, error: KafkaError | None, message: Any) -> None:
    if error is None:
        offsets[position] = message.offset()
