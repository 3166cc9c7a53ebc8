"""The job of a run, which is killed and started again: one that reads the log of groups, or one that polls."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from eventually import eventually
from following import Job
from live_kafka import QUIET
from patience import LIMIT_SECONDS, PATIENCE_SECONDS
from scenario import Scenario

from pipelines.tables.store import Batch, TableStore

_GROUPS_TOPIC = "__consumer_offsets"
_SPECS: Any = OffsetSpec


class Jobs(ABC):
    """The job, which is killed and started again; `address` is that of its source."""

    def __init__(self, address: str, tables: Path, conf: Path, scenario: Scenario, log: Path) -> None:
        self._source = address
        self._tables, self._conf, self._trigger, self._log = tables, conf, scenario.trigger, log
        self._job: Job | None = None
        self._process = ExitStack()

    def start(self) -> None:
        job = Job(self._source, self._tables, "--transactions", "--conf", str(self._conf), trigger=self._trigger)
        self._job = self._process.enter_context(job)

    def wait_for(self, what: str, more: int = 1) -> None:
        """Wait until more lines of the job have a text."""
        assert self._job is not None
        self._job.wait_for(what, more)

    @abstractmethod
    def wait_until_read(self) -> None:
        """Wait until the tables have all that the coordinators have now."""

    def _wait_for_batch(self, what: str, missing: Callable[[Batch], object]) -> None:
        """Wait until nothing is missing in the newest batch."""
        job = self._job
        assert job is not None

        def found() -> object:
            batch = TableStore(str(self._tables)).last_batch()
            assert batch is not None
            return missing(batch)

        eventually(what, found, lambda value: not value, unless=job.failure, pause_seconds=0.1)

    def wait_until_ready(self) -> None:
        """Wait longer than tests usually do: on a busy machine Spark's workers start in minutes."""
        job = self._job
        assert job is not None
        eventually(
            "the job has read everything",
            lambda: job.lines[-20:],
            lambda _: job.lines_with("ready: following"),
            unless=job.failure,
            patience_seconds=LIMIT_SECONDS,
            pause_seconds=0.2,
        )

    def kill(self) -> None:
        """Kill job and JVM together with SIGKILL, as a power failure does, and keep the job's log."""
        self._process.close()
        if self._job is not None:
            with self._log.open("a") as log:
                log.write(self._job.text + "\n")
        self._job = None


class LogJobs(Jobs):
    """A job that reads the log of groups."""

    def __init__(self, bootstrap: str, tables: Path, conf: Path, scenario: Scenario, log: Path) -> None:
        super().__init__(f"kafka://{bootstrap}/{_GROUPS_TOPIC}", tables, conf, scenario, log)
        self._bootstrap = bootstrap

    def wait_until_read(self) -> None:
        """Wait until the tables have all that is in the log now."""
        ends = self._ends()
        self._wait_for_batch(
            "the job has read the log",
            lambda batch: {number: end for number, end in ends.items() if batch.next_offsets.get(number, 0) < end},
        )

    def _ends(self) -> dict[int, int]:
        admin = AdminClient({"bootstrap.servers": self._bootstrap, **QUIET})
        topic = admin.list_topics(_GROUPS_TOPIC, timeout=PATIENCE_SECONDS).topics[_GROUPS_TOPIC]
        wanted = {TopicPartition(_GROUPS_TOPIC, partition): _SPECS.latest() for partition in topic.partitions}
        found = admin.list_offsets(wanted, request_timeout=PATIENCE_SECONDS)
        return {place.partition: each.result().offset for place, each in found.items()}


class PollJobs(Jobs):
    """A job that polls the coordinators."""

    def __init__(self, bootstrap: str, tables: Path, conf: Path, scenario: Scenario, log: Path) -> None:
        super().__init__(f"kafka-groups://{bootstrap}", tables, conf, scenario, log)

    def wait_until_read(self) -> None:
        """Wait until the tables have a complete poll that began after now."""
        now = datetime.now(UTC)
        self._wait_for_batch(
            "the job has polled",
            lambda batch: None if batch.records_behind == 0 and batch.complete_until >= now else batch.complete_until,
        )
