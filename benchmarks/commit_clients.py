"""Clients (librdkafka) that each commit as soon as the previous commit is acknowledged; one connection per client."""

import threading
import time
from contextlib import ExitStack, closing
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaException, TopicPartition

_COORDINATOR_LIMIT_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Commits:
    """Number of acknowledged commits, and their seconds."""

    count: int
    seconds: float

    @property
    def per_second(self) -> float:
        """Commits per second, over all connections."""
        return self.count / self.seconds


def commit_for(bootstrap: str, topic: str, connections: int, seconds: float) -> Commits:
    """Let clients, each in its own group, commit one offset after the other, without pipelining.

    Raises RuntimeError if a client fails.
    """
    with ExitStack() as opened:
        clients = [opened.enter_context(closing(_client(bootstrap, number))) for number in range(connections)]
        offsets = [0] * connections
        failures: list[str] = []
        begin = threading.Barrier(connections + 1)
        end = threading.Event()

        def commit(number: int) -> None:
            client = clients[number]
            try:
                _first_commit(client, topic)
                begin.wait()
                while not end.is_set():
                    client.commit(offsets=[TopicPartition(topic, 0, offsets[number] + 1)], asynchronous=False)
                    offsets[number] += 1
            except (KafkaException, threading.BrokenBarrierError) as error:
                failures.append(f"client {number}: {error}")
                begin.abort()

        threads = [threading.Thread(target=commit, args=(number,)) for number in range(connections)]
        for thread in threads:
            thread.start()
        try:
            begin.wait()
            started = time.monotonic()
            end.wait(seconds)
        except threading.BrokenBarrierError:
            started = time.monotonic()
        finally:
            end.set()
            for thread in threads:
                thread.join()
        if failures:
            raise RuntimeError("; ".join(failures))
        took = time.monotonic() - started
        _expect_committed(clients[0], topic, offsets[0])
        return Commits(sum(offsets), took)


def _client(bootstrap: str, number: int) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"bench-commit-{number}",
            "enable.auto.commit": False,
            "socket.nagle.disable": True,
            "log_level": 0,
        }
    )


def _first_commit(client: Consumer, topic: str) -> None:
    """Commit once before the measurement, which excludes the search for the coordinator."""
    deadline = time.monotonic() + _COORDINATOR_LIMIT_SECONDS
    while True:
        try:
            client.commit(offsets=[TopicPartition(topic, 0, 0)], asynchronous=False)
            return
        except KafkaException:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def _expect_committed(client: Consumer, topic: str, offset: int) -> None:
    [found] = client.committed([TopicPartition(topic, 0)], timeout=30)
    if found.offset != offset:
        raise RuntimeError(f"offset {found.offset} is committed, but the last acknowledged one is {offset}")
