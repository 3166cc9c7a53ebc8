"""Network loop of a group member: `GroupMember` has the logic, the runner sends, receives and waits."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from typing import cast

from coordinator_core.client.connection import BrokerConnection, Responses
from coordinator_core.client.errors import ClientError, Disconnected, NoCommonVersion
from coordinator_core.client.group_client import ClusterClient, Connections
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.member import Effects, Event, GroupMember, MemberState
from coordinator_core.protocol.api import Request, Response
from coordinator_core.protocol.apis import api_of
from coordinator_core.protocol.groups import FindCoordinatorRequest
from coordinator_core.protocol.membership import (
    JoinGroupRequest,
)
from coordinator_core.protocol.offsets import (
    OffsetCommitResponse,
    OffsetFetchResponse,
    OffsetToCommit,
)
from coordinator_core.wire import Unwritable

#: Added to the rebalance timeout, within which the coordinator responds (`JOIN_GROUP_TIMEOUT_LAPSE`). Milliseconds.
_JOIN_LAPSE_MS = 5_000

Answer = asyncio.Future[Response]


class MemberRunner:
    """Keeps a member in its group from `start` to `leave` or `stop`.

    `on_event` is called before the requests of the same effects are sent, so its commits of revoked partitions are still valid.
    `events` yields the same events. `connections` are to the coordinator; members that share them wait for each other, since
    brokers answer the requests of a connection in order, and a JoinGroup waits for the group.
    """

    def __init__(
        self,
        member: GroupMember,
        cluster: ClusterClient,
        connections: Connections,
        on_event: Callable[[Event], None] | None = None,
    ) -> None:
        self.member = member
        self._cluster = cluster
        self._connections = connections
        self._on_event = on_event
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._outbox: list[tuple[Request, Answer | None]] = []
        self._inbox: list[Callable[[], Effects]] = []
        self._wakeup = asyncio.Event()
        self._link: BrokerConnection | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Starts the loop; the member begins to join."""
        self._task = self._loop.create_task(self._run())

    async def events(self) -> AsyncIterator[Event]:
        """Yields the member's events until it has left or failed."""
        while (event := await self._events.get()) is not None:
            yield event

    async def commit(self, offsets: Mapping[TopicPartition, OffsetToCommit]) -> OffsetCommitResponse:
        """Commits with the current member id and generation. Raises ClientError."""
        return cast(OffsetCommitResponse, await self.send(self.member.commit(offsets)))

    async def fetch(self, partitions: tuple[TopicPartition, ...] | None) -> OffsetFetchResponse:
        """Fetches committed offsets, of all partitions for None. Raises ClientError."""
        return cast(OffsetFetchResponse, await self.send(self.member.fetch(partitions)))

    def send(self, request: Request) -> Answer:
        """Adds a commit or a fetch to the end of the send queue; the future has its response, or a ClientError."""
        return self._enqueue(request)

    async def leave(self) -> None:
        """Leaves the group once the send queue is empty, and waits until the requests are answered or have failed."""
        effects = self.member.leave()
        self._emit(effects)
        answers = [self._enqueue(request) for request in effects.requests]
        await asyncio.gather(*answers, return_exceptions=True)
        await self.stop()

    async def stop(self) -> None:
        """Stops without LeaveGroup; the coordinator removes the member when its session times out."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._drop(Disconnected("the member has stopped"))
        self._events.put_nowait(None)

    async def wait(self) -> None:
        """Waits until the member is out of the group for good. Raises NoCommonVersion."""
        if self._task is not None:
            await self._task

    def _enqueue(self, request: Request) -> Answer:
        answer: Answer = self._loop.create_future()
        # marks the exception as retrieved, for callers that do not wait for the response
        answer.add_done_callback(lambda each: each.cancelled() or each.exception())
        if self.member.coordinator is None or self._task is None or self._task.done():
            answer.set_exception(Disconnected("the member has no coordinator at the moment"))
        else:
            self._outbox.append((request, answer))
            self._wakeup.set()
        return answer

    def _now_ms(self) -> int:
        return int(self._loop.time() * 1000)

    async def _run(self) -> None:
        while True:
            self._wakeup.clear()
            inbox, self._inbox = self._inbox, []
            for take in inbox:
                self._do(take())
            due = self.member.next_wake()
            if due is not None and due <= self._now_ms():
                self._do(self.member.wake(self._now_ms()))
            await self._send_outbox()
            if self.member.state is MemberState.FAILED:
                self._events.put_nowait(None)
                return
            if not self._inbox and not self._outbox:
                await self._sleep()

    async def _sleep(self) -> None:
        due = self.member.next_wake()
        if due is None:
            await self._wakeup.wait()
            return
        timer = self._loop.call_later(max(0.0, due / 1000 - self._loop.time()), self._wakeup.set)
        try:
            await self._wakeup.wait()
        finally:
            timer.cancel()

    def _do(self, effects: Effects) -> None:
        self._emit(effects)
        self._outbox += [(request, None) for request in effects.requests]

    def _emit(self, effects: Effects) -> None:
        for event in effects.events:
            self._events.put_nowait(event)
            if self._on_event is not None:
                self._on_event(event)

    async def _send_outbox(self) -> None:
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
        self._wakeup.set()

    async def _coordinator(self) -> BrokerConnection:
        node = self.member.coordinator
        if node is None:
            raise Disconnected("the member has no coordinator at the moment")
        link = await self._connections.to(node.host, node.port)
        self._link = link
        return link

    def _post(self, link: BrokerConnection, request: Request, answer: Answer | None) -> None:
        settings = self.member.settings
        timeout_ms = None
        if isinstance(request, JoinGroupRequest):
            timeout_ms = max(self._connections.settings.request_timeout_ms, settings.rebalance_timeout_ms + _JOIN_LAPSE_MS)
        sent = link.send(api_of(request), (request,), timeout_ms)
        sent.add_done_callback(partial(self._answered, link, request, answer))

    def _answered(
        self, link: BrokerConnection, request: Request, answer: Answer | None, sent: "asyncio.Future[Responses]"
    ) -> None:
        failure = sent.exception()
        if failure is not None:
            _fail(answer, failure)
            self._lose(link, failure)
        else:
            response = sent.result()[0]
            if answer is not None and not answer.done():
                answer.set_result(response)
            # the caller gets every response, but a member that has dropped the connection expects no responses from it
            if link is self._link:
                self._inbox.append(lambda: self.member.receive(request, response, self._now_ms()))
        self._wakeup.set()

    def _lose(self, link: BrokerConnection | None, failure: BaseException) -> None:
        """Reports a broken connection to the member, once for all requests in flight, and drops the send queue."""
        if link is self._link:
            self._link = None
            self._drop(failure)
            self._inbox.append(lambda: self.member.disconnected(self._now_ms()))
            self._wakeup.set()

    def _drop(self, failure: BaseException) -> None:
        outbox, self._outbox = self._outbox, []
        for _, answer in outbox:
            _fail(answer, failure)


def _fail(answer: Answer | None, failure: BaseException) -> None:
    if answer is not None and not answer.done():
        answer.set_exception(failure)
