"""A coordinator service of two partitions over a log in memory, with a clock that the test moves."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from eventually import equal_to, eventually_async
from memory_log import MemoryLog, MemoryPartition

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.group_coordinator.config import CoordinatorConfig
from coordinator_core.group_coordinator.group_events import GroupEvent
from coordinator_core.protocol.membership import JoinGroupRequest, Protocol
from coordinator_core.protocol.offsets import OffsetCommitRequest, OffsetFetchRequest, OffsetToCommit
from coordinator_core.service.groups.group_service import GroupCoordinatorService
from coordinator_core.service.runtime.background import BackgroundTasks
from coordinator_core.service.runtime.observer import Observer
from coordinator_core.service.runtime.reply_handles import FutureReply
from coordinator_core.service.settings import ServiceSettings

PLACE = TopicPartition("orders", 0)
START_MS = 1_700_000_000_000


class Heard(Observer):
    def __init__(self) -> None:
        self.emitted: list[GroupEvent] = []
        self.failures: list[str] = []
        self.refusals: list[str] = []
        self.bugs: list[str] = []

    def bug(self, where: str, error: BaseException) -> None:
        self.bugs.append(f"{where}: {error}")

    def group_events(self, _partition: int | str, group_events: Iterable[GroupEvent]) -> None:
        self.emitted += group_events

    def failed(self, _partition: int | str, reason: str) -> None:
        self.failures.append(reason)

    def append_refused(self, _partition: int | str, _batches: int, reason: str) -> None:
        self.refusals.append(reason)


class Running:
    """A service of two partitions; `at` is its log partition of group "g"."""

    def __init__(self, log: MemoryLog | None = None, **settings: Any) -> None:
        self.log = log or MemoryLog(2)
        self.now_ms = START_MS
        self.heard = Heard()
        config = CoordinatorConfig(offsets_topic_num_partitions=2, group_initial_rebalance_delay_ms=0)
        self.service = GroupCoordinatorService(
            config,
            ServiceSettings(**settings),
            self.log,
            lambda: self.now_ms,
            lambda name: f"{name}-id",
            self.heard,
            BackgroundTasks(self.heard),
        )
        self.number = self.service._coordinator.partition_for("g")
        self.at: MemoryPartition = self.log.partition(self.number)

    async def start(self) -> None:
        self.service.start()
        await eventually_async(
            "every partition is loaded, or failed",
            lambda: self.service.partitions_by_status,
            lambda statuses: statuses.keys().isdisjoint({"loading", "unloaded"}),
            pause_seconds=0.001,
        )

    async def active(self) -> None:
        statuses = equal_to({"active": 2})
        await eventually_async("both are active", lambda: self.service.partitions_by_status, statuses, pause_seconds=0.001)

    def send(self, request: Any) -> "asyncio.Future[Any]":
        reply_handle = FutureReply()
        self.service.submit(request, reply_handle)
        return reply_handle.future

    async def commit(self, offset: int) -> Any:
        return (await self.send(commit(offset))).errors[PLACE]

    async def committed(self) -> int:
        return int((await self.send(OffsetFetchRequest("g", (PLACE,)))).offsets[PLACE].offset)


def commit(offset: int) -> OffsetCommitRequest:
    return OffsetCommitRequest("g", {PLACE: OffsetToCommit(offset)})


def join(member_id: str = "") -> JoinGroupRequest:
    return JoinGroupRequest("g", member_id, "consumer", (Protocol("range", b""),), 10_000, 10_000, client_id="c")


def run(work: Callable[[Running], Awaitable[None]], log: MemoryLog | None = None, **settings: Any) -> None:
    async def life() -> None:
        running = Running(log, **settings)
        await running.start()
        try:
            await work(running)
        finally:
            await running.service.stop()

    asyncio.run(life())
