"""Producers of a live broker: steady records, more of them in one partition, short transactions, one that is left open."""

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle

from allowance import Allowance
from confluent_kafka import KafkaException, Producer
from live_kafka import QUIET
from patience import PATIENCE_SECONDS

_PAUSE_SECONDS = 0.05
_TRANSACTION_SECONDS = 1.0
#: Longer than any run, so that no coordinator ends the transaction that is left open.
_TIMEOUT_MS = 3_600_000


@dataclass(frozen=True)
class Stream:
    """A topic with its records a second, over all partitions. `transactional_id`: of the writer that writes in transactions."""

    topic: str
    partitions: int
    rate: float
    transactional_id: str | None = None


class Traffic:
    """Writes streams until the context ends; a broker that does not answer delays records."""

    def __init__(self, bootstrap: str, streams: Sequence[Stream]) -> None:
        self._bootstrap = bootstrap
        self._closing = threading.Event()
        self._failures: list[BaseException] = []
        self._open: dict[str, Producer] = {}
        self._hot: dict[tuple[str, int], Allowance] = {}
        plain = [stream for stream in streams if stream.transactional_id is None]
        self._threads = [threading.Thread(target=self._guarded, args=(plain,), daemon=True)]
        self._threads += [
            threading.Thread(target=self._guarded, args=([stream],), daemon=True) for stream in streams if stream.transactional_id
        ]

    def __enter__(self) -> "Traffic":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        for thread in self._threads:
            thread.join(PATIENCE_SECONDS)
        self._open.clear()

    def failure(self) -> str | None:
        """The reason why a producer has ended."""
        return repr(self._failures[0]) if self._failures else None

    def heat(self, topic: str, partition: int, rate: float) -> None:
        """Write more records a second to one partition from now on."""
        self._hot[topic, partition] = Allowance(rate)

    def leave_transaction_open(self, transactional_id: str, topic: str, partition: int, records: int) -> None:
        """Begin a transaction with records in a partition; they are in the log."""
        producer = self._transactional(transactional_id)
        producer.begin_transaction()
        for number in range(records):
            producer.produce(topic, b"open %d" % number, partition=partition)
        assert producer.flush(PATIENCE_SECONDS) == 0
        self._open[transactional_id] = producer

    def abort_transaction(self, transactional_id: str) -> None:
        """Abort the transaction that was left open."""
        self._open.pop(transactional_id).abort_transaction(PATIENCE_SECONDS)

    def _guarded(self, streams: Sequence[Stream]) -> None:
        try:
            (self._write_in_transactions if streams and streams[0].transactional_id else self._write)(streams)
        except BaseException as error:
            self._failures.append(error)

    def _write(self, streams: Sequence[Stream]) -> None:
        producer = Producer({"bootstrap.servers": self._bootstrap, "linger.ms": 5, "message.timeout.ms": 0, **QUIET})
        due = {stream: (Allowance(stream.rate), cycle(range(stream.partitions))) for stream in streams}
        while not self._closing.wait(_PAUSE_SECONDS):
            for stream, (limit, partitions) in due.items():
                count = limit.now()
                for _ in range(count):
                    producer.produce(stream.topic, b"record", partition=next(partitions))
                limit.spend(count)
            for (topic, partition), limit in list(self._hot.items()):
                count = limit.now()
                for _ in range(count):
                    producer.produce(topic, b"record", partition=partition)
                limit.spend(count)
            producer.poll(0)
        producer.flush(PATIENCE_SECONDS)

    def _write_in_transactions(self, streams: Sequence[Stream]) -> None:
        (stream,) = streams
        producer = self._transactional(stream.transactional_id or "")
        limit, partitions = Allowance(stream.rate), cycle(range(stream.partitions))
        while not self._closing.wait(_TRANSACTION_SECONDS):
            count = limit.now()
            producer.begin_transaction()
            for _ in range(count):
                producer.produce(stream.topic, b"in a transaction", partition=next(partitions))
            try:
                producer.commit_transaction(PATIENCE_SECONDS)
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise
                # an idempotent producer of librdkafka can stand still after a broker has paused; its successor aborts this one's
                producer = self._transactional(stream.transactional_id or "")
            limit.spend(count)

    def _transactional(self, transactional_id: str) -> Producer:
        settings = {"transactional.id": transactional_id, "client.id": f"{transactional_id}-client"}
        producer = Producer(
            {"bootstrap.servers": self._bootstrap, "transaction.timeout.ms": _TIMEOUT_MS, "linger.ms": 5, **settings, **QUIET}
        )
        producer.init_transactions(PATIENCE_SECONDS)
        return producer


def rates(streams: Sequence[Stream]) -> Mapping[str, float]:
    """Records a second by topic."""
    return {stream.topic: stream.rate for stream in streams}


def now() -> float:
    """Seconds since the epoch, the time of every record of a run."""
    return time.time()
