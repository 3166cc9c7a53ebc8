"""`grouplake demo`: a coordinator, members that join and leave, the job on its log, and queries of the tables."""

import asyncio
from collections.abc import Coroutine
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from random import Random
from typing import Any

from coordinator_core.client import ClientError
from coordinator_core.service.net.addresses import ListenAddress
from coordinator_core.service.node.process import signalled
from pipelines.examples.demo.demo_job import TRIGGER, job_options, job_progress, new_folders
from pipelines.examples.demo.live_groups import LiveGroups
from pipelines.examples.demo.produced_topics import ProducedTopics
from pipelines.examples.demo.steps import TOPICS, DemoSteps
from pipelines.examples.demo.waiting import DemoError
from pipelines.job.coordinator_process import CoordinatorOptions, coordinator_options, run_coordinator
from pipelines.job.run_with_coordinator import job_beside
from pipelines.runtime.configuration import load_configuration
from pipelines.runtime.progress import Progress
from pipelines.runtime.timestamps import now_ms

#: With the page: time between two samples of the log ends.
_SAMPLE_SECONDS = 2
#: Short intervals, so that changes that take minutes or days with the defaults happen within seconds.
_SHORT_INTERVALS = {
    "group_min_session_timeout_ms": 1_000,
    "group_initial_rebalance_delay_ms": 500,
    "offsets_retention_check_interval_ms": 500,
    "admin_listen": "",
    "topics": TOPICS,
}


class Demo:
    """The folders of a demo: tables, log of the coordinator, log files. All are kept."""

    def __init__(self, tables: str | None, progress: Progress) -> None:
        """Tables are in `tables`, or else in a new temporary folder. Raises UsageError if it has tables already."""
        self._progress = progress
        self.folder, self.tables = new_folders(tables)
        self.log = self.folder / "log"

    def run(self, page: AbstractContextManager[object], *, is_endless: bool) -> None:
        """Run the steps within `page`; an endless demo then lets members come and go until a signal."""
        self._progress(f"starting coordinator and job; tables: {self.tables}, logs: {self.folder}/*.log")
        with (
            (self.folder / "coordinator.log").open("w") as events,
            (self.folder / "job.log").open("w", buffering=1) as job_log,
            page,
        ):

            async def until(address: ListenAddress, _admin: ListenAddress | None) -> str:
                self._progress(f"coordinator listening on {address}")
                ready = asyncio.Event()
                work = self._steps(address, ready) if not is_endless else _until_signal(self._live(address, ready))
                seconds = _SAMPLE_SECONDS if is_endless else 0
                options = job_options(f"segments:{self.log}", self.tables, trigger=TRIGGER, lag_interval_seconds=seconds)
                return await job_beside(work, options, job_progress(job_log, self._progress), now_ms, ready.set)

            run_coordinator(_coordinator_options(self.log), until, events)
        print(f"\nThe tables are in {self.tables}, their log is in {self.log}:")
        print(f'  grouplake sql --tables {self.tables} "SELECT * FROM group_history"')
        print(f"  grouplake show --source segments:{self.log}")

    async def _steps(self, address: ListenAddress, ready: asyncio.Event, topics: ProducedTopics | None = None) -> str:
        """Run the steps once the job is ready: downloads and compilation must not delay heartbeats past a session timeout."""
        await ready.wait()
        ends = {} if topics is None else {"ends": topics.end}
        try:
            await DemoSteps(address, str(self.log), self.tables, str(self.folder), **ends).run()
        except ClientError as error:
            raise DemoError(str(error)) from error
        return "the demo is complete"

    async def _live(self, address: ListenAddress, ready: asyncio.Event) -> str:
        """Run the steps on topics with records, then members that come and go."""
        topics = ProducedTopics(self.log, TOPICS)
        producing = asyncio.create_task(topics.produce(now_ms))
        try:
            ended = await self._steps(address, ready, topics)
            self._progress("members come and go now; Ctrl-C ends the demo")
            await LiveGroups(address, topics.end, Random(1)).run()
            return ended
        finally:
            producing.cancel()
            with suppress(asyncio.CancelledError):
                await producing


async def _until_signal(work: Coroutine[Any, Any, str]) -> str:
    signal_name = signalled()
    working = asyncio.create_task(work)
    try:
        await asyncio.wait((working, signal_name), return_when=asyncio.FIRST_COMPLETED)
        return await working if working.done() else await signal_name
    finally:
        working.cancel()
        with suppress(asyncio.CancelledError):
            await working


def _coordinator_options(log: Path) -> CoordinatorOptions:
    return coordinator_options("127.0.0.1:0", str(log), {**load_configuration(None).coordinator, **_SHORT_INTERVALS})
