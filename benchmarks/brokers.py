"""Brokers with a generated log and the JVM settings of Kafka's scripts, and the duration of their load of that log."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from confluent_kafka import Consumer

from benchmarks.logs import GeneratedLog
from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.examples.private.kafka.distribution import PrivateKafkaError

VERSION = "4.1.1"
_LOAD_LIMIT_SECONDS = 300
_RUNTIME = "org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime"

#: JVM options of `kafka-run-class.sh` and `kafka-server-start.sh`, instead of the private broker's small heap.
JVM = (
    *("-Xms1g", "-Xmx1g", "-XX:TieredStopAtLevel=4", "-XX:-UseSerialGC", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
    *("-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent"),
    f"-Dorg.slf4j.simpleLogger.log.{_RUNTIME}=info",
)
#: Without log cleaner and retention, so that the log does not change while it is read.
STILL_LOG = {"log.cleaner.enable": "false", "offsets.retention.check.interval.ms": "86400000"}


@dataclass(frozen=True, slots=True)
class LoadTime:
    """Seconds of a coordinator's load of all partitions: from the first start of a partition to the last end, summed
    over the partitions, and from the start of the process to the last end.
    """

    wall: float
    total: float
    since_start: float
    records: int


class LogBroker:
    """A running broker over a copy of a generated log."""

    def __init__(self, log: GeneratedLog, broker: PrivateBroker) -> None:
        self._log = log
        self._broker = broker

    @property
    def bootstrap(self) -> str:
        """`127.0.0.1:PORT`."""
        return self._broker.bootstrap

    def reload(self) -> LoadTime:
        """Restart the broker cleanly, and wait until it has loaded every partition."""
        self._broker.stop()
        lines = self._broker.data.parent / "broker.log"
        begin = lines.stat().st_size
        started = time.time()
        self._broker.start()
        return _await_load(lines, begin, started, self._log.shape.partitions)


@contextmanager
def broker_with(log: GeneratedLog) -> Iterator[LogBroker]:
    """A broker whose `__consumer_offsets` is `log`, loaded once."""
    with PrivateBroker(VERSION, offsets_partitions=log.shape.partitions, properties=STILL_LOG, jvm_arguments=JVM) as broker:
        _make_offsets_topic(broker.bootstrap)
        broker.stop()
        broker.place_segments(log.directory)
        broker.start()
        yield LogBroker(log, broker)


def _make_offsets_topic(bootstrap: str) -> None:
    """Let the broker create the topic, which it does at the first FindCoordinator request."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "makes-the-offsets-topic", "log_level": 0})
    try:
        deadline = time.monotonic() + 60
        while "__consumer_offsets" not in consumer.list_topics(timeout=10).topics:
            if time.monotonic() > deadline:
                raise PrivateKafkaError("the broker did not create __consumer_offsets")
            consumer.subscribe(["nothing"])
            consumer.poll(0.2)
    finally:
        consumer.close()


_FINISHED = re.compile(
    r"^(\S+ \S+) .*Finished loading of metadata from __consumer_offsets-(\d+) .*? in (\d+)ms where (\d+)ms was spent in the "
    r"scheduler\. Loaded (\d+) records"
)


def _await_load(lines: Path, begin: int, started: float, partitions: int) -> LoadTime:
    deadline = time.monotonic() + _LOAD_LIMIT_SECONDS
    while True:
        with lines.open("rb") as file:
            file.seek(begin)
            found = [match for line in file.read().decode(errors="replace").splitlines() if (match := _FINISHED.match(line))]
        if len({match[2] for match in found}) == partitions:
            break
        if time.monotonic() > deadline:
            raise PrivateKafkaError(
                f"the broker has loaded {len(found)} of {partitions} partitions after {_LOAD_LIMIT_SECONDS} s"
            )
        time.sleep(0.1)
    ends = [datetime.strptime(match[1], "%Y-%m-%d %H:%M:%S.%f").timestamp() for match in found]
    spent = [(int(match[3]) - int(match[4])) / 1000 for match in found]
    first = min(end - seconds for end, seconds in zip(ends, spent, strict=True))
    return LoadTime(max(ends) - first, sum(spent), max(ends) - started, sum(int(match[5]) for match in found))
