"""`grouplake run` as a process that follows a cluster, and consumers that keep committing through any outage."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, TopicPartition
from eventually import at_least, eventually
from patience import LIMIT_SECONDS

from pipelines.examples.private.kafka.clients import Clients

#: Longer than a JVM needs to start, and a first batch to run, on a machine that is busy with other work.
_COMMIT_EVERY_SECONDS = 0.1


class Job:
    """A running `grouplake run`; `lines` has its progress so far."""

    def __init__(self, source: str, tables: Path, *more: str, trigger: str = "1s") -> None:
        command = ["run", "--source", source, "--tables", str(tables), "--trigger", trigger, *more]
        self._process = subprocess.Popen(
            [sys.executable, "-c", "import sys; from pipelines.cli import main; sys.exit(main())", *command],
            stderr=subprocess.PIPE,
            text=True,
            env=dict(os.environ),
            start_new_session=True,
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> "Job":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join()
        assert self._process.stderr is not None
        self._process.stderr.close()

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        return self._process.pid

    def lines_with(self, what: str) -> list[str]:
        """Lines that contain `what`."""
        return [line for line in self.lines if what in line]

    def wait_for(self, what: str, count: int = 1) -> None:
        """Wait until `count` more lines contain `what`."""
        self.wait_until_logged(what, len(self.lines_with(what)) + count)

    def wait_until_logged(self, what: str, wanted: int = 1) -> None:
        """Wait until `wanted` lines contain `what`, counted from the start."""
        eventually(
            f"{wanted} lines of the job have {what!r}",
            lambda: self.lines[-20:],
            lambda _: len(self.lines_with(what)) >= wanted,
            unless=self.failure,
            patience_seconds=LIMIT_SECONDS,
            pause_seconds=0.1,
        )

    def signal(self, number: int, *, whole_group: bool = False) -> None:
        """Send a signal to the whole process group or to the command alone."""
        (os.killpg if whole_group else os.kill)(self._process.pid, number)

    def ended(self, limit_seconds: float = LIMIT_SECONDS) -> int:
        """Wait until the process has ended; return its exit code."""
        code = self._process.wait(limit_seconds)
        self._reader.join()
        return code

    def failure(self) -> str | None:
        """The reason why no more lines can appear, once the process has ended."""
        return None if self.running else f"the job has ended:\n{self.text}"

    @property
    def tracebacks(self) -> list[str]:
        """Lines that show an exception of Python or Java; a job reports errors in its own words."""
        return [line for line in self.lines if "Exception" in line or "Traceback" in line]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def _read(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self.lines.append(line.rstrip())


class Committers:
    """Groups that commit in turn, with ascending offsets, until the context ends; `commits` counts acknowledged ones.

    The group `workers` has two members, which commit for the partitions that they own. At the end all members leave.
    """

    def __init__(self, bootstrap: str, groups: int, topic: str) -> None:
        self.groups = [*(f"committer-{number:02d}" for number in range(groups)), "workers"]
        self.commits = 0
        self._topic = topic
        self._bootstrap = bootstrap
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._commit)

    def __enter__(self) -> "Committers":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def wait_for_more(self, count: int) -> None:
        """Wait until `count` more commits were acknowledged."""
        eventually(
            f"{count} more commits are acknowledged",
            lambda: self.commits,
            at_least(self.commits + count),
            unless=lambda: None if self._thread.is_alive() else "the groups have stopped",
            patience_seconds=LIMIT_SECONDS,
        )

    def _commit(self) -> None:
        with Clients(self._bootstrap) as clients:
            alone = [clients.consumer(group, on_commit=self._acknowledge) for group in self.groups[:-1]]
            workers = [clients.consumer(self.groups[-1], (self._topic,), on_commit=self._acknowledge) for _ in range(2)]
            offset = 0
            while not self._stopped.wait(_COMMIT_EVERY_SECONDS):
                for number, member in enumerate(alone):
                    member.poll(0)
                    self._send(member, [TopicPartition(self._topic, number % 2, offset)])
                for member in workers:
                    member.poll(0)
                    self._send(member, [TopicPartition(each.topic, each.partition, offset) for each in member.assignment()])
                offset += 1

    def _send(self, member: Consumer, offsets: list[TopicPartition]) -> None:
        # a synchronous commit would block until a coordinator is available
        with contextlib.suppress(KafkaException):
            if offsets:
                member.commit(offsets=offsets, asynchronous=True)

    def _acknowledge(self, error: object, _offsets: list[TopicPartition]) -> None:
        self.commits += error is None
