"""Workers that transform records of a topic into another while they and the coordinator are killed; a seed decides the kills."""

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import IO

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from eventually import NotReached, at_least, equal_to, eventually
from group_offsets import committed
from live_kafka import QUIET, SURVIVES_RESTARTS
from patience import PATIENCE_SECONDS
from read_topics import read_topic
from transform_worker import transformed

from pipelines.examples.private.kafka.ports import PortReservation
from pipelines.examples.private.private_coordinator import PrivateCoordinator

INPUT, OUTPUT, GROUP = "input", "output", "transformers"
PARTITIONS = 8
_PROGRAM = Path(__file__).with_name("transform_worker.py")
#: Shares of kills: of the coordinator, of one worker; the others kill the coordinator and some workers together.
_COORDINATOR, _WORKER = 0.35, 0.5
#: Share of the coordinator's starts that are killed before they have loaded the log.
_KILLED_WHILE_LOADING = 0.2
#: Share of kills that wait for a transaction first, so that slow machines have them too, and how long they wait.
_BUSY, _BUSY_SECONDS = 0.7, 10


@dataclass
class Kills:
    """Counts of a run."""

    coordinator: int = 0
    workers: int = 0
    while_loading: int = 0
    #: Kills before which a transaction had written records since the last kill.
    busy: int = 0
    #: Workers that ended by themselves, and were started again, by the last line that they printed.
    ended: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        return self.coordinator + self.workers


class Workers:
    """Worker processes by number, which are started again when they have ended."""

    def __init__(self, bootstrap: str, count: int, folder: Path, kills: Kills) -> None:
        self._bootstrap = bootstrap
        self._folder = folder
        self._kills = kills
        self._errors: dict[int, IO[bytes]] = {number: (folder / f"worker-{number}.log").open("ab") for number in range(count)}
        self._processes = {number: self._started(number) for number in range(count)}

    def _started(self, number: int) -> "subprocess.Popen[bytes]":
        arguments = [self._bootstrap, f"worker-{number}", GROUP, INPUT, OUTPUT]
        return subprocess.Popen([sys.executable, str(_PROGRAM), *arguments], stderr=self._errors[number])

    def kill(self, number: int) -> None:
        """Kill a worker and start it again."""
        self._processes[number].kill()
        self._processes[number].wait()
        self._kills.workers += 1
        self._processes[number] = self._started(number)

    def restart_ended(self) -> None:
        """Start workers that have ended by themselves."""
        for number, process in self._processes.items():
            if process.poll() is not None:
                lines = (self._folder / f"worker-{number}.log").read_text(errors="replace").split("\n")
                self._kills.ended[next((line for line in reversed(lines) if line), "")] += 1
                self._processes[number] = self._started(number)

    def close(self) -> None:
        """Kill all workers."""
        for process in self._processes.values():
            process.kill()
            process.wait()
        for errors in self._errors.values():
            errors.close()


class ExactlyOnce:
    """A coordinator with both topics, and workers. Records are written to the input all the time."""

    def __init__(self, folder: Path, seed: int, workers: int, era: str = "4") -> None:
        self.kills = Kills()
        self.written: list[bytes] = []
        self._draw = Random(seed)
        self._worker_count = workers
        self._folder = folder
        self._reserved = PortReservation()
        self.coordinator = PrivateCoordinator(
            folder / "log",
            topics={name: {"partitions": PARTITIONS, "data": True, "segment_bytes": 200_000} for name in (INPUT, OUTPUT)},
            listen=f"127.0.0.1:{self._reserved.port}",
            era=era,
            offsets_topic_num_partitions=4,
            transaction_state_log_num_partitions=4,
            offsets_topic_segment_bytes=100_000,
            transaction_state_log_segment_bytes=100_000,
            log_cleaner_interval_ms=500,
            log_min_cleanable_ratio=0.1,
            group_min_session_timeout_ms=1000,
            group_initial_rebalance_delay_ms=100,
            transaction_abort_timed_out_transaction_cleanup_interval_ms=1000,
        )

    @contextmanager
    def running(self) -> Iterator["ExactlyOnce"]:
        """Start everything; end it with the context."""
        self.coordinator.start()
        self._workers = Workers(self.coordinator.bootstrap, self._worker_count, self._folder, self.kills)
        self._producer = Producer(
            {
                "bootstrap.servers": self.coordinator.bootstrap,
                "enable.idempotence": True,
                "message.timeout.ms": 0,
                **SURVIVES_RESTARTS,
                **QUIET,
            }
        )
        try:
            yield self
        finally:
            self._workers.close()
            self.coordinator.kill()
            self._reserved.release()

    def kill_at_random(self, kills: int, longest_seconds: float, records: int) -> None:
        """Kill processes at random moments; write some records before each kill."""
        while self.kills.total < kills:
            before = self._output_bytes()
            self.write(records)
            self._wait_at_random(before, longest_seconds)
            self.kills.busy += self._output_bytes() > before
            self._workers.restart_ended()
            self._kill_some()

    def _wait_at_random(self, before: int, longest_seconds: float) -> None:
        if self._draw.random() < _BUSY:
            with suppress(NotReached):
                eventually("an output", self._output_bytes, at_least(before + 1), patience_seconds=_BUSY_SECONDS)
        time.sleep(self._draw.uniform(0, longest_seconds))

    def _kill_some(self) -> None:
        kind = self._draw.random()
        some = self._draw.sample(range(self._worker_count), self._draw.randint(1, max(1, self._worker_count // 3)))
        if kind < _COORDINATOR:
            self._kill_coordinator()
        elif kind < _COORDINATOR + _WORKER:
            self._workers.kill(some[0])
        else:
            for number in some:
                self._workers.kill(number)
            self._kill_coordinator()

    def _output_bytes(self) -> int:
        return sum(path.stat().st_size for path in self.coordinator.directory.glob(f"{OUTPUT}-*/*.log"))

    def _kill_coordinator(self) -> None:
        self.coordinator.kill()
        self.kills.coordinator += 1
        self.coordinator.start()
        while self._draw.random() < _KILLED_WHILE_LOADING:
            self.coordinator.kill()
            self.kills.coordinator += 1
            self.kills.while_loading += 1
            self.coordinator.start()

    def write(self, count: int) -> None:
        """Send records to the input, in the background."""
        for number in range(len(self.written), len(self.written) + count):
            value = b"record %d" % number
            self._producer.produce(INPUT, value, partition=number % PARTITIONS, on_delivery=_delivered)
            self.written.append(value)
        self._producer.poll(0)

    def finish(self) -> None:
        """Wait until every record is written and its transformation committed."""
        self.coordinator.wait_until_loaded()
        assert self._producer.flush(PATIENCE_SECONDS) == 0
        ends = self.ends(INPUT)

        def done() -> dict[tuple[str, int], int]:
            self._workers.restart_ended()
            return committed(AdminClient({"bootstrap.servers": self.coordinator.bootstrap, **QUIET}), GROUP)

        wanted = {(INPUT, partition): end for partition, end in enumerate(ends) if end}
        eventually("every record is transformed", done, equal_to(wanted), pause_seconds=0.2)

    def ends(self, topic: str) -> list[int]:
        """End offsets of the partitions of a topic."""
        client = Consumer({"bootstrap.servers": self.coordinator.bootstrap, "group.id": "ends", **QUIET})
        try:
            partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
            return [client.get_watermark_offsets(partition, PATIENCE_SECONDS)[1] for partition in partitions]
        finally:
            client.close()

    def differences(self) -> list[str]:
        """Records of the input that are not exactly once in the output, and records of the output without one in the input."""
        sent, found = (read_topic(self.coordinator.bootstrap, topic, PARTITIONS) for topic in (INPUT, OUTPUT))
        wrong = _differences("input", Counter(self.written), Counter(sent))
        return wrong + _differences("output", Counter(map(transformed, self.written)), Counter(found))


def _delivered(error: KafkaError | None, _message: Message) -> None:
    assert error is None, error


def _differences(name: str, wanted: Counter[bytes], found: Counter[bytes]) -> list[str]:
    def shown(records: Sequence[bytes]) -> str:
        return f"{len(records)} such as {sorted(records)[:5]}"

    missing, more = list((wanted - found).elements()), list((found - wanted).elements())
    return [
        *([f"{name} lacks {shown(missing)}"] if missing else []),
        *([f"{name} has more often than once {shown(more)}"] if more else []),
    ]
