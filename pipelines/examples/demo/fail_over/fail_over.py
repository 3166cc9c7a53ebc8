"""The processes of the demo of a fail-over: a broker, two nodes that share a topic on it as their log, and the job."""

import asyncio
from typing import TextIO

from pipelines.examples.demo.demo_job import TRIGGER, job_options, job_progress, new_folders
from pipelines.examples.demo.fail_over.steps import LOG_PARTITIONS, PARTITIONS, TOPIC, FailOverSteps
from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.examples.private.kafka.distribution import version_tuple
from pipelines.examples.private.private_nodes import PrivateNodes
from pipelines.job.run_with_coordinator import job_beside
from pipelines.runtime.errors import UsageError
from pipelines.runtime.progress import Progress
from pipelines.runtime.timestamps import now_ms
from pipelines.source.address import parse_address

#: Appends that a killed node has not committed are not part of its log.
_KAFKA = {"isolation_level": "read_committed"}
_LOG_TOPIC = "grouplake_offsets"
_NODES = 2
#: The first release whose transactions the nodes can use.
_OLDEST = "2.8.0"


class FailOverDemo:
    """One run of the demo. Its tables and the logs of its processes are kept."""

    def __init__(self, version: str, tables: str | None, progress: Progress) -> None:
        """Tables are in `tables`, or else in a new temporary folder.

        Raises UsageError if it has tables already, or for a version of Kafka that cannot hold the log of nodes.
        """
        if version_tuple(version) < version_tuple(_OLDEST):
            raise UsageError(
                f"--kafka {version}: must be {_OLDEST} or newer; --broker {version} shows the groups of the broker itself"
            )
        self._version = version
        self._progress = progress
        self._folder, self._tables = new_folders(tables)

    def run(self) -> None:
        """Start everything, run the steps, and end everything. Raises DemoError if a commit was lost."""
        self._progress(f"tables: {self._tables}, logs: {self._folder}/*.log")
        try:
            conclusion = self._run_processes()
        except KeyboardInterrupt:
            self._progress("interrupted: all processes of the demo have ended")
            raise
        print(f'\nThe tables are in {self._tables}:\n  grouplake sql --tables {self._tables} "SELECT * FROM offset_history"')
        print(f"\n{conclusion}")

    def _run_processes(self) -> str:
        with PrivateBroker(self._version, progress=self._progress) as broker:
            address = f"kafka://{broker.bootstrap}/{_LOG_TOPIC}"
            self._progress(f"starting {_NODES} nodes: grouplake coordinator --log {address}")
            nodes = PrivateNodes(self._folder, address, count=_NODES, partitions=LOG_PARTITIONS, topics={TOPIC: PARTITIONS})
            with nodes, (self._folder / "job.log").open("w", buffering=1) as job_log:
                return asyncio.run(self._run_beside_job(nodes, address, job_log))

    async def _run_beside_job(self, nodes: PrivateNodes, address: str, job_log: TextIO) -> str:
        ready = asyncio.Event()

        async def steps() -> str:
            # downloads, compilation and the start of Spark must not delay heartbeats
            await ready.wait()
            log = parse_address(address)
            return await FailOverSteps(nodes, log, _KAFKA, self._tables, str(self._folder), self._progress).run()

        self._progress(f"starting the job: grouplake run --source {address} --tables {self._tables}")
        options = job_options(address, self._tables, kafka=_KAFKA, trigger=TRIGGER)
        return await job_beside(steps(), options, job_progress(job_log, self._progress), now_ms, ready.set)
