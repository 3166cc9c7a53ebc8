"""Members of groups that consume at a given rate and commit twice a second, with clients of three libraries.

librdkafka and franz-go commit "last record + 1"; Java commits its position, which is beyond the markers of transactions.
"""

import subprocess
import tempfile
import threading
import time
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import IO, Any, NamedTuple, Protocol

from allowance import Allowance
from confluent_kafka import Consumer, KafkaException, TopicPartition
from java_clients import JavaClients
from live_kafka import QUIET
from member_programs import go_member
from patience import PATIENCE_SECONDS

_PAUSE_SECONDS = 0.05
_COMMIT_SECONDS = 0.5


class Rewind(NamedTuple):
    """Offsets before and after, and the times of the request and the response of the lower commit."""

    from_offset: int
    to_offset: int
    asked: float
    answered: float


class Worker(Protocol):
    """One member. A rate of 0 keeps the membership and commits nothing; None is no limit."""

    def set_rate(self, rate: float | None) -> None:
        """Change the number of records that it reads in a second."""

    def close(self) -> None:
        """Leave the group."""

    def failure(self) -> str | None:
        """The reason why it no longer works."""


class LibrdkafkaWorker:
    """A consumer of confluent-kafka, polled by a thread of its own."""

    def __init__(self, bootstrap: str, group: str, topic: str, client_id: str, isolation: str) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "client.id": client_id,
                "isolation.level": isolation,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": 45_000,
                "heartbeat.interval.ms": 1_000,
                "fetch.wait.max.ms": 100,
                **QUIET,
            }
        )
        self._topic = topic
        self._skipped: frozenset[int] = frozenset()
        self._paused: set[int] = set()
        self._read: dict[int, int] = {}
        self._limit = Allowance(None)
        self._is_halted = False
        self._committed: dict[int, int] = {}
        self._rewinds: SimpleQueue[tuple[int, int, Future[Rewind]]] = SimpleQueue()
        self._closing = threading.Event()
        self._failure: BaseException | None = None
        self._consumer.subscribe([topic], on_revoke=self._revoked, on_lost=self._lost)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def set_rate(self, rate: float | None) -> None:
        self._is_halted = rate == 0
        self._limit.set(rate)

    def owned(self) -> set[int]:
        """The partitions that it owns."""
        return {each.partition for each in self._consumer.assignment()}

    def skip(self, partition: int) -> None:
        """Read no more records of a partition that it owns."""
        self._skipped |= {partition}

    def rewind(self, partition: int, records: int) -> Rewind:
        """Commit what was read, then an offset that is lower by `records`, and continue there."""
        done: Future[Rewind] = Future()
        self._rewinds.put((partition, records, done))
        return done.result(PATIENCE_SECONDS)

    def close(self) -> None:
        self._closing.set()
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive(), "the consumer does not close"
        self._consumer.close()

    def failure(self) -> str | None:
        return None if self._failure is None else repr(self._failure)

    def _run(self) -> None:
        committed = time.monotonic()
        try:
            while not self._closing.is_set():
                self._poll()
                if time.monotonic() - committed >= _COMMIT_SECONDS:
                    committed = time.monotonic()
                    self._commit()
        except BaseException as error:
            self._failure = error

    def _poll(self) -> None:
        self._pause()
        with suppress(Empty):
            self._rewind(*self._rewinds.get_nowait())
        most = self._limit.now()
        if self._is_halted or not most:
            # a consumer that does not poll leaves its group after max.poll.interval.ms
            self._consumer.consume(1, 0) if self._is_halted else None
            self._closing.wait(_PAUSE_SECONDS)
            return
        messages = [each for each in self._consumer.consume(most, _PAUSE_SECONDS) if each.error() is None]
        self._limit.spend(len(messages))
        for message in messages:
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            assert offset is not None
            self._read[partition] = offset + 1

    def _rewind(self, partition: int, records: int, done: "Future[Rewind]") -> None:
        self._commit()
        from_offset = self._committed[partition]
        to_offset = from_offset - records
        self._consumer.seek(TopicPartition(self._topic, partition, to_offset))
        self._read[partition] = to_offset
        asked = time.time()
        self._commit()
        done.set_result(Rewind(from_offset, to_offset, asked, time.time()))

    def _pause(self) -> None:
        """Pause what is not to be read; a new assignment is not paused."""
        owned = self.owned()
        wanted = owned if self._is_halted else owned & self._skipped
        for partitions, change in ((wanted, self._consumer.pause), (owned - wanted, self._consumer.resume)):
            if partitions and (wanted != self._paused or owned - wanted):
                change([TopicPartition(self._topic, partition) for partition in sorted(partitions)])
        self._paused = wanted

    def _revoked(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self._commit()
        self._lost(self._consumer, partitions)

    def _lost(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        """Forget what was read: the next owner commits for these partitions, and a commit of this member would move it back."""
        for each in partitions:
            self._read.pop(each.partition, None)

    def _commit(self) -> None:
        offsets = [TopicPartition(self._topic, partition, offset) for partition, offset in self._read.items()]
        # a broker that does not answer, or a rebalance: the next commit repeats it
        with suppress(KafkaException):
            if offsets:
                self._consumer.commit(offsets=offsets, asynchronous=False)
                self._committed |= self._read
                self._read.clear()


class FranzWorker:
    """The program `tests/clients/go/worker`."""

    def __init__(self, bootstrap: str, group: str, topic: str, client_id: str, isolation: str) -> None:
        self._errors: IO[str] = tempfile.TemporaryFile("w+")  # noqa: SIM115 - `close` closes it
        self._process = subprocess.Popen(
            [*go_member("worker"), bootstrap, group, topic, client_id, isolation],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            text=True,
            bufsize=1,
        )

    def set_rate(self, rate: float | None) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"rate {-1 if rate is None else rate}\n")

    def close(self) -> None:
        if self._errors.closed:
            return
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(PATIENCE_SECONDS)
        finally:
            self._process.kill()
            self._process.wait()
            self._errors.close()

    def failure(self) -> str | None:
        if self._process.poll() is None:
            return None
        self._errors.seek(0)
        return f"exit code {self._process.returncode}: {self._errors.read()[-2000:]}"


class JavaWorker:
    """A `KafkaConsumer` of Java, polled by a thread of its own; `max.poll.records` is small, so that the rate is steady."""

    def __init__(self, java: JavaClients, bootstrap: str, group: str, topic: str, client_id: str, isolation: str) -> None:
        settings = {
            "client.id": client_id,
            "isolation.level": isolation,
            "auto.offset.reset": "earliest",
            "max.poll.records": "20",
            "heartbeat.interval.ms": "1000",
            "fetch.max.wait.ms": "100",
        }
        self._java = java
        self._open = (bootstrap, group, topic, settings)
        self._limit = Allowance(None)
        self._is_halted = False
        self._closing = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def set_rate(self, rate: float | None) -> None:
        self._is_halted = rate == 0
        self._limit.set(rate)

    def close(self) -> None:
        self._closing.set()
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive(), "the consumer does not close"

    def failure(self) -> str | None:
        return None if self._failure is None else str(self._failure)

    def _run(self) -> None:
        bootstrap, group, topic, settings = self._open
        try:
            consumer = self._java.consumer(bootstrap, group, topic, settings)
            try:
                self._consume(consumer)
            finally:
                consumer.close()
        except BaseException as error:
            self._failure = error

    def _consume(self, consumer: Any) -> None:
        committed, is_paused = time.monotonic(), False
        while not self._closing.is_set():
            if self._is_halted or is_paused:
                (consumer.pause if self._is_halted else consumer.resume)(consumer.assignment())
                is_paused = self._is_halted
            if self._limit.now() > 0 or self._is_halted:
                self._limit.spend(int(consumer.poll(self._java.milliseconds(100)).count()))
            else:
                self._closing.wait(_PAUSE_SECONDS)
            if not self._is_halted and time.monotonic() - committed >= _COMMIT_SECONDS:
                committed = time.monotonic()
                # a broker that does not answer delays the commit
                with suppress(self._java.error):
                    consumer.commitSync()
