"""A node of those that share a log, with the product's classes from requests of clients to the clients of the brokers.

Its event loop runs when a test lets it, by a clock of the test; its loads, appends and releases are stepped calls.
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Any, TypeVar, TypeVarTuple, Unpack
from uuid import UUID

from modelled_clients import ModelledProducer, ModelledReader, Network
from running_service import START_MS, Heard
from stepped_calls import SteppedCall, SteppedLock

from coordinator_core.group_coordinator.config import CoordinatorConfig
from coordinator_core.group_coordinator.shard import GroupCoordinatorShard
from coordinator_core.protocol.api import Response
from coordinator_core.protocol.groups import Node
from coordinator_core.segment_log.errors import PartitionFailed
from coordinator_core.service.groups.group_service import GroupCoordinatorService
from coordinator_core.service.node.cluster_membership import ClusterMembership
from coordinator_core.service.runtime.background import BackgroundTasks
from coordinator_core.service.settings import Fsync, ServiceSettings
from coordinator_core.topic_log.owned_partition import OwnedPartition

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
TOPIC = "grouplake_offsets"
CONFIG = CoordinatorConfig(offsets_topic_num_partitions=1, group_initial_rebalance_delay_ms=0)
#: Turns of an event loop after which it has nothing to do until time passes.
_TURNS = 12


class SteppedLoop(asyncio.SelectorEventLoop):
    """An event loop whose time is `seconds`, and whose executors are stepped calls."""

    def __init__(self, seconds: Callable[[], float]) -> None:
        super().__init__()
        self.calls: list[tuple[SteppedCall, asyncio.Future[Any]]] = []
        self._seconds = seconds

    def time(self) -> float:
        return self._seconds()

    def run_in_executor(
        self,
        executor: Executor | None,  # noqa: ARG002 - of `AbstractEventLoop`
        func: Callable[[Unpack[Ts]], T],
        *args: *Ts,
    ) -> "asyncio.Future[T]":
        future: asyncio.Future[T] = self.create_future()
        self.calls.append((SteppedCall(partial(func, *args)), future))
        return future

    def turn(self) -> None:
        """Take the results of calls that have ended, and run what is due."""
        for call, future in self.calls:
            if call.is_over and not future.done():
                future.set_exception(call.error) if call.error is not None else future.set_result(call.result)
        self.calls = [each for each in self.calls if not each[0].is_over]
        for _ in range(_TURNS):
            self.call_soon(self.stop)
            self.run_forever()


class SteppedLog:
    """The topic with its one partition, as `TopicLog` has it."""

    load_threads = 4
    append_threads = 32
    partitions = 1
    numbers: Sequence[int] = (0,)
    owned_at_start: Sequence[int] = ()
    topic_id = UUID(int=1)

    def __init__(self, network: Network, batch_records: int, append_seconds: float) -> None:
        self.at = OwnedPartition(
            TOPIC,
            0,
            lambda _: ModelledProducer(network, batch_records),
            lambda isolation_level: ModelledReader(network, isolation_level),
            append_seconds,
        )
        vars(self.at)["_lock"] = SteppedLock()

    def partition(self, number: int) -> OwnedPartition:  # noqa: ARG002 - of `CoordinatorLog`
        return self.at

    def flush(self, partitions: Sequence[int]) -> Sequence[PartitionFailed | None]:
        return [None] * len(partitions)

    def clean(self, now_ms: int) -> None:
        """Do nothing."""


class NoGroup:
    """In place of the group of the nodes: the test calls its events."""

    def start(self) -> None:
        """Do nothing."""

    def stop(self) -> None:
        """Do nothing."""


class Reply:
    """Receives the response to a request."""

    def __init__(self, received: Callable[[Response], None]) -> None:
        self._received = received

    def answer(self, response: Response) -> None:
        self._received(response)


class SteppedNode:
    """A node from the start of its process to `crash`."""

    def __init__(
        self,
        own: Node,
        network: Network,
        seconds: Callable[[], float],
        batch_records: int = 100,
        append_seconds: float = 3600.0,
    ) -> None:
        self.own = own
        self.is_frozen = False
        self._has_crashed = False
        self.heard = Heard()
        self.log = SteppedLog(network, batch_records, append_seconds)
        self.loop = SteppedLoop(seconds)
        self._now_ms = lambda: START_MS + int(seconds() * 1000)
        self._ids = 0
        self.service, self.membership = self.loop.run_until_complete(self._started())

    async def _started(self) -> tuple[GroupCoordinatorService, ClusterMembership]:
        settings = ServiceSettings(fsync=Fsync.NEVER, log_cleaner_interval_ms=0)
        background = BackgroundTasks(self.heard)
        service = GroupCoordinatorService(CONFIG, settings, self.log, self._now_ms, self._new_id, self.heard, background)
        # a topic is never flushed
        service._loops._flusher.close()
        service.start()
        release = lambda number: self.log.partition(number).release()  # noqa: E731
        return service, ClusterMembership(self.own, service, self.heard, lambda _: NoGroup(), release)

    def _new_id(self, prefix: str) -> str:
        self._ids += 1
        return f"{prefix}-{self.own.node_id}-{self._ids}"

    @property
    def shard(self) -> GroupCoordinatorShard:
        return self.service.shards[0]

    @property
    def status(self) -> str:
        return self.service.loops[0].status

    @property
    def producer(self) -> ModelledProducer | None:
        """The producer of the partition, if this node takes itself for its owner."""
        found = self.log.at._producer
        assert found is None or isinstance(found, ModelledProducer)
        return found

    @property
    def waiting(self) -> list[SteppedCall]:
        """Calls that can take a step."""
        calls = [call for call, _ in self.loop.calls if not call.is_over]
        return [each for each in calls if not (isinstance(each.waits_for, SteppedLock) and each.waits_for.is_held)]

    @property
    def is_busy(self) -> bool:
        """Whether a call is under way, or has ended without the event loop's knowledge."""
        return bool(self.loop.calls)

    def send(self, request: Any, received: Callable[[Response], None]) -> None:
        """Let a request of a client arrive."""

        def unless_crashed(response: Response) -> None:
            if not self._has_crashed:
                received(response)

        self.loop.call_soon(self.service.submit, request, Reply(unless_crashed))

    def crash(self) -> None:
        """End the process where it stands."""
        for call, _ in self.loop.calls:
            call.kill()
        self.loop.calls.clear()
        self._has_crashed = True
        while tasks := asyncio.all_tasks(self.loop):
            for task in tasks:
                task.cancel()
            self.loop.turn()
        self.loop.close()
