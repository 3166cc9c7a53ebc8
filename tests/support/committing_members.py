"""Members of three libraries that commit all the time, and what was acknowledged to them.

A committed offset is the time of its request in µs. So it names the commit, and a later commit of a partition has a higher one.
"""

import json
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, TopicPartition
from eventually import eventually
from java_clients import JavaClients
from live_kafka import QUIET
from member_programs import go_member
from patience import PATIENCE_SECONDS

_POLL_SECONDS, _POLL_MS = 0.5, 500
#: A library that does not report the outcome of a commit for this time has forgotten it.
_FORGOTTEN_SECONDS = 180.0


class Acknowledged(NamedTuple):
    """A commit that was acknowledged `at` this time in seconds. `generation` is -1 where the library does not report it."""

    group: str
    partition: int
    offset: int
    generation: int
    at: float
    member: str


class Commits:
    """The answers that members of all threads and processes received."""

    def __init__(self) -> None:
        self.acknowledged: list[Acknowledged] = []
        #: Reason → commits that were not acknowledged.
        self.refused: Counter[str] = Counter()
        #: Commits of which a library never reported the outcome.
        self.forgotten = 0

    def count(self) -> int:
        return len(self.acknowledged)

    def groups(self) -> set[str]:
        """Groups with an acknowledged commit."""
        return {each.group for each in self.acknowledged}


class FranzCrowd:
    """Members with franz-go in one process: `size` of each group."""

    def __init__(self, commits: Commits, bootstrap: str, topic: str, groups: Sequence[str], size: int, seconds: float, log: Path):
        self._commits = commits
        self._log = log.open("wb")
        command = [*go_member("crowd"), bootstrap, topic, str(size), f"{seconds}s", *groups]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True, bufsize=1
        )
        self._paused = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def pause(self) -> None:
        """End the commits, and wait for their outcomes."""
        assert self._process.stdin is not None
        self._process.stdin.write("pause\n")
        eventually("the members with franz-go pause", lambda: (self._paused.is_set(), self._commits.count()), lambda now: now[0])

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for stream in (self._process.stdin, self._process.stdout, self._log):
            assert stream is not None
            stream.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            found = json.loads(line)
            if "paused" in found:
                self._paused.set()
                continue
            if found.get("error"):
                self._commits.refused[found["error"]] += 1
            self._commits.acknowledged += [
                Acknowledged(found["group"], partition, found["offset"], found["generation"], found["at"] / 1e6, found["member"])
                for partition in found["partitions"]
            ]


class LibrdkafkaMember:
    """A member with librdkafka, in a thread."""

    def __init__(
        self, commits: Commits, bootstrap: str, topic: str, group: str, name: str, seconds: float, assignor: str
    ) -> None:
        self._commits = commits
        self._group, self._name, self._seconds = group, name, seconds
        self._settings = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "client.id": name,
            "enable.auto.commit": False,
            "reconnect.backoff.max.ms": 1_000,
            "on_commit": self._committed,
            "partition.assignment.strategy": assignor,
            **QUIET,
        }
        self._topic = topic
        self._sent_at = 0.0
        self._is_paused, self._ends = False, threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def pause(self) -> None:
        self._is_paused = True
        eventually(f"{self._name} pauses", lambda: (self._sent_at, self._commits.count()), lambda now: now[0] == 0)

    def kill(self) -> None:
        self._ends.set()
        self._thread.join()

    def _run(self) -> None:
        consumer = Consumer(self._settings)
        consumer.subscribe([self._topic])
        due = time.monotonic()
        while not self._ends.is_set():
            consumer.poll(min(_POLL_SECONDS, self._seconds))
            now = time.monotonic()
            if self._sent_at and now - self._sent_at > _FORGOTTEN_SECONDS:
                self._commits.forgotten += 1
                self._sent_at = 0.0
            if now >= due and not self._is_paused and not self._sent_at:
                due = now + self._seconds
                self._commit(consumer)
        consumer.close()

    def _commit(self, consumer: Consumer) -> None:
        owned = consumer.assignment()
        if owned:
            offset = time.time_ns() // 1000
            self._sent_at = time.monotonic()
            consumer.commit(offsets=[TopicPartition(at.topic, at.partition, offset) for at in owned], asynchronous=True)

    def _committed(self, error: KafkaError | None, places: Sequence[TopicPartition]) -> None:
        self._sent_at = 0.0
        if error is not None:
            self._commits.refused[str(error.name())] += 1
            return
        at = time.time()
        self._commits.acknowledged += [
            Acknowledged(self._group, each.partition, each.offset, -1, at, self._name) for each in places if each.error is None
        ]


class JavaCommitter:
    """A member with Kafka's client for Java, in a thread that drives it."""

    def __init__(
        self, commits: Commits, java: JavaClients, bootstrap: str, topic: str, group: str, name: str, seconds: float
    ) -> None:
        self._commits, self._java = commits, java
        self._topic, self._group, self._name, self._seconds = topic, group, name, seconds
        self._consumer = java.consumer(bootstrap, group, topic, {"client.id": name})
        self._is_paused, self._ends = False, threading.Event()
        self._is_committing = False
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def pause(self) -> None:
        self._is_paused = True
        eventually(f"{self._name} pauses", lambda: (self._is_committing, self._commits.count()), lambda now: not now[0])

    def kill(self) -> None:
        self._ends.set()
        self._thread.join()
        assert self.failure is None, self.failure

    def _run(self) -> None:
        due = time.monotonic()
        try:
            while not self._ends.is_set():
                # a request that fails does not end the member
                with suppress(self._java.error):
                    self._consumer.poll(self._java.milliseconds(_POLL_MS))
                if time.monotonic() < due:
                    continue
                due = time.monotonic() + self._seconds
                self._is_committing = not self._is_paused
                if self._is_committing:
                    self._commit()
                    self._is_committing = False
        except BaseException as failure:
            self.failure = failure

    def _commit(self) -> None:
        places = [each.partition() for each in self._consumer.assignment()]
        if not places:
            return
        offset = time.time_ns() // 1000
        try:
            generation = self._consumer.groupMetadata().generationId()
            self._consumer.commitSync(self._java.offsets(self._topic, dict.fromkeys(places, offset)))
        except self._java.error as error:
            self._commits.refused[str(error.java_exception.getClass().getSimpleName())] += 1
            return
        at = time.time()
        self._commits.acknowledged += [Acknowledged(self._group, place, offset, generation, at, self._name) for place in places]


def wait_for_progress(commits: Commits, groups: Sequence[str]) -> None:
    """Wait until every group has an acknowledged commit."""
    eventually(
        "a commit of every group is acknowledged",
        lambda: sorted(set(groups) - commits.groups()),
        lambda missing: not missing,
        patience_seconds=PATIENCE_SECONDS,
    )
