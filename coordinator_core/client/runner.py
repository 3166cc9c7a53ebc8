"""A group member on the network: `GroupMember` decides, this sends, receives and waits."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from typing import cast

from coordinator_core.client.connection import BrokerConnection, Responses
from coordinator_core.client.errors import ClientError, Disconnected, NoCommonVersion
from coordinator_core.client.group_client import Cluster, Connections
from coordinator_core.coordinator.messages.groups import FindCoordinatorRequest
from coordinator_core.coordinator.messages.membership import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from coordinator_core.coordinator.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetToCommit,
)
from coordinator_core.coordinator.messages.versions import ApiKey
from coordinator_core.member import Effects, Event, GroupMember, MemberState, Request, Response
from coordinator_core.state.offsets import TopicPartition
from coordinator_core.wire import Unwritable

#: Above the rebalance timeout, within which the coordinator answers (`JOIN_GROUP_TIMEOUT_LAPSE`). Milliseconds.
_JOIN_LAPSE_MS = 5_000

_APIS: Mapping[type, ApiKey] = {
    JoinGroupRequest: ApiKey.JOIN_GROUP,
    SyncGroupRequest: ApiKey.SYNC_GROUP,
    HeartbeatRequest: ApiKey.HEARTBEAT,
    LeaveGroupRequest: ApiKey.LEAVE_GROUP,
    OffsetCommitRequest: ApiKey.OFFSET_COMMIT,
    OffsetFetchRequest: ApiKey.OFFSET_FETCH,
}
Answer = asyncio.Future[Response]


class MemberRunner:
    """Keeps a member in its group from `start` to `leave` or `stop`.

    `on_event` is called before the requests leave that come with the event: a commit that it makes of revoked partitions still
    counts. `events` has the same to iterate over. `connections` are to the coordinator; members that share them wait for each
    other, since brokers answer the requests of a connection in order, and a JoinGroup waits for the group.
    """

    def __init__(
        self, member: GroupMember, cluster: Cluster, connections: Connections, on_event: Callable[[Event], None] | None = None
    ) -> None:
        self.member = member
        self._cluster = cluster
        self._connections = connections
        self._on_event = on_event
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._outbox: list[tuple[Request, Answer | None]] = []
        self._inbox: list[Callable[[], Effects]] = []
        self._stirred = asyncio.Event()
        self._link: BrokerConnection | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to join."""
        self._task = self._loop.create_task(self._run())

    async def events(self) -> AsyncIterator[Event]:
        """What the member tells, until it is over."""
        while (event := await self._events.get()) is not None:
            yield event

    async def commit(self, offsets: Mapping[TopicPartition, OffsetToCommit]) -> OffsetCommitResponse:
        """Commits as the member that it is now. Raises ClientError."""
        return cast(OffsetCommitResponse, await self.send(self.member.commit(offsets)))

    async def fetch(self, partitions: tuple[TopicPartition, ...] | None) -> OffsetFetchResponse:
        """What is committed; None for all. Raises ClientError."""
        return cast(OffsetFetchResponse, await self.send(self.member.fetch(partitions)))

    def send(self, request: Request) -> Answer:
        """Puts a commit or a fetch behind what is to be sent already; the future has its response, or a ClientError."""
        return self._enqueue(request)

    async def leave(self) -> None:
        """Leaves the group, after whatever is to be sent already, and waits until the coordinator has heard of it, or cannot."""
        effects = self.member.leave()
        self._tell(effects)
        said = [self._enqueue(request) for request in effects.requests]
        await asyncio.gather(*said, return_exceptions=True)
        await self.stop()

    async def stop(self) -> None:
        """Says nothing more to anybody; the group misses the member when its session ends."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._drop(Disconnected("the member has stopped"))
        self._events.put_nowait(None)

    async def wait(self) -> None:
        """Until the member is out of the group for good. Raises NoCommonVersion."""
        if self._task is not None:
            await self._task

    def _enqueue(self, request: Request) -> Answer:
        answer: Answer = self._loop.create_future()
        # an answer that nobody waits for may fail unheard
        answer.add_done_callback(lambda each: each.cancelled() or each.exception())
        if self.member.coordinator is None or self._task is None or self._task.done():
            answer.set_exception(Disconnected("the member has no coordinator at the moment"))
        else:
            self._outbox.append((request, answer))
            self._stirred.set()
        return answer

    def _now_ms(self) -> int:
        return int(self._loop.time() * 1000)

    async def _run(self) -> None:
        while True:
            self._stirred.clear()
            inbox, self._inbox = self._inbox, []
            for take in inbox:
                self._do(take())
            due = self.member.next_wake()
            if due is not None and due <= self._now_ms():
                self._do(self.member.wake(self._now_ms()))
            await self._flush()
            if self.member.state is MemberState.FAILED:
                self._events.put_nowait(None)
                return
            if not self._inbox and not self._outbox:
                await self._rest()

    async def _rest(self) -> None:
        due = self.member.next_wake()
        if due is None:
            await self._stirred.wait()
            return
        timer = self._loop.call_later(max(0.0, due / 1000 - self._loop.time()), self._stirred.set)
        try:
            await self._stirred.wait()
        finally:
            timer.cancel()

    def _do(self, effects: Effects) -> None:
        self._tell(effects)
        self._outbox += [(request, None) for request in effects.requests]

    def _tell(self, effects: Effects) -> None:
        for event in effects.events:
            self._events.put_nowait(event)
            if self._on_event is not None:
                self._on_event(event)

    async def _flush(self) -> None:
        while self._outbox:
            request, answer = self._outbox.pop(0)
            try:
                if isinstance(request, FindCoordinatorRequest):
                    self._loop.create_task(self._find(request))
                else:
                    self._post(await self._coordinator(), request, answer)
            except asyncio.CancelledError:
                _fail(answer, Disconnected("the member has stopped"))
                raise
            except (ClientError, Unwritable) as error:
                failure = Disconnected(str(error))
                _fail(answer, failure)
                if isinstance(error, NoCommonVersion):
                    raise
                self._lose(self._link, failure)

    async def _find(self, request: FindCoordinatorRequest) -> None:
        try:
            response = await self._cluster.find(request)
        except ClientError:
            self._inbox.append(lambda: self.member.disconnected(self._now_ms()))
        else:
            self._inbox.append(lambda: self.member.receive(request, response, self._now_ms()))
        self._stirred.set()

    async def _coordinator(self) -> BrokerConnection:
        node = self.member.coordinator
        if node is None:
            raise Disconnected("the member has no coordinator at the moment")
        link = await self._connections.to(node.host, node.port)
        self._link = link
        return link

    def _post(self, link: BrokerConnection, request: Request, answer: Answer | None) -> None:
        settings = self.member.settings
        patience = None
        if isinstance(request, JoinGroupRequest):
            patience = max(self._connections.settings.request_timeout_ms, settings.rebalance_timeout_ms + _JOIN_LAPSE_MS)
        sent = link.send(_APIS[type(request)], (request,), patience)
        sent.add_done_callback(partial(self._answered, link, request, answer))

    def _answered(
        self, link: BrokerConnection, request: Request, answer: Answer | None, sent: "asyncio.Future[Responses]"
    ) -> None:
        failure = sent.exception()
        if failure is not None:
            _fail(answer, failure)
            self._lose(link, failure)
        else:
            response = cast(Response, sent.result()[0])
            if answer is not None and not answer.done():
                answer.set_result(response)
            # what the coordinator has done it has done, but a member that has given up the link expects no answers from it
            if link is self._link:
                self._inbox.append(lambda: self.member.receive(request, response, self._now_ms()))
        self._stirred.set()

    def _lose(self, link: BrokerConnection | None, failure: BaseException) -> None:
        """Once per connection, however many requests were on their way; what was to follow on it is not sent."""
        if link is self._link:
            self._link = None
            self._drop(failure)
            self._inbox.append(lambda: self.member.disconnected(self._now_ms()))
            self._stirred.set()

    def _drop(self, failure: BaseException) -> None:
        outbox, self._outbox = self._outbox, []
        for _, answer in outbox:
            _fail(answer, failure)


def _fail(answer: Answer | None, failure: BaseException) -> None:
    if answer is not None and not answer.done():
        answer.set_exception(failure)
