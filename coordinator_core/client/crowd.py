"""Members of many groups in one process: they join, commit, leave and crash by a script, and every event is counted."""

import asyncio
from collections import Counter
from collections.abc import Coroutine, Mapping, Sequence

from coordinator_core.assignors import Cluster
from coordinator_core.client.crowd_script import Action, CrowdSettings, MemberStep, script
from coordinator_core.client.errors import ClientError
from coordinator_core.client.group_client import ClusterClient, Connections, Server
from coordinator_core.client.runner import MemberRunner
from coordinator_core.client.settings import ConnectionSettings
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.member import Event, GroupMember, MemberFailed, MemberSettings, MemberState
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.offsets import OffsetToCommit

GroupPartition = tuple[str, TopicPartition]
_POLL_SECONDS = 0.02


class Crowd:
    """A crowd of members. `counts` has the number of joins, leaves, crashes, member events by name, and commits by result.

    `acknowledged` has the largest offset of each group and partition whose commit succeeded, `sent` the largest that was sent.
    The offsets of a partition only grow, so the committed offset is never below `acknowledged` or above `sent`.
    """

    def __init__(self, servers: Sequence[Server], settings: CrowdSettings) -> None:
        self.settings = settings
        self.counts: Counter[str] = Counter()
        self.acknowledged: dict[GroupPartition, int] = {}
        self.failures: list[MemberFailed] = []
        self.runners: dict[int, MemberRunner] = {}
        self.sent: Counter[GroupPartition] = Counter()
        self._loop = asyncio.get_running_loop()
        self._network = ConnectionSettings(client_id=settings.prefix)
        self._cluster = ClusterClient(servers, self._network)
        self._connections: dict[int, Connections] = {}
        self._metadata = Cluster.of_counts({})
        self._tasks: set[asyncio.Task[None]] = set()
        self._running = asyncio.Event()
        self._running.set()

    async def run(self) -> None:
        """Runs the script, and waits for the responses. Raises ClientError if the topics' metadata cannot be fetched."""
        settings = self.settings
        if settings.partitions is None:
            self._metadata = await self._cluster.metadata(settings.topics)
        else:
            self._metadata = Cluster.of_counts(dict.fromkeys(settings.topics, settings.partitions))
        began = self._loop.time()
        for step in script(settings):
            await asyncio.sleep(max(0.0, began + step.at_ms / 1000 - self._loop.time()))
            paused = self._loop.time()
            await self._running.wait()
            began += self._loop.time() - paused
            self._do(step)
        await asyncio.gather(*self._tasks)

    async def commit(self) -> None:
        """Commits all partitions of every member, and waits for the responses."""
        for number in tuple(self.runners):
            self._commit(number)
        await asyncio.gather(*self._tasks)

    async def pause(self) -> None:
        """Pauses the script, and waits for the responses to its requests. Members remain in their groups."""
        self._running.clear()
        await asyncio.gather(*self._tasks)

    def resume(self) -> None:
        """Resumes the script; the time of the pause does not count."""
        self._running.set()

    async def settle(self, timeout_ms: int) -> bool:
        """Waits until every member is stable and every partition has one owner; returns False if that takes too long."""
        end = self._loop.time() + timeout_ms / 1000
        while self._loop.time() < end:
            if all(runner.member.state is MemberState.STABLE for runner in self.runners.values()) and self._all_owned():
                return True
            await asyncio.sleep(_POLL_SECONDS)
        return False

    def owners(self) -> Mapping[GroupPartition, Sequence[int]]:
        """Returns the members that own a partition, by their own state."""
        found: dict[GroupPartition, list[int]] = {}
        for number, runner in self.runners.items():
            for partition in runner.member.owned:
                found.setdefault((self.settings.group_of(number), partition), []).append(number)
        return found

    async def leave(self) -> None:
        """Makes all members leave."""
        await asyncio.gather(*(self._leave(member) for member in list(self.runners)), *self._tasks)

    async def close(self) -> None:
        """Stops all members without LeaveGroup, and closes the connections."""
        await asyncio.gather(*(runner.stop() for runner in self.runners.values()))
        self.runners.clear()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for connections in self._connections.values():
            connections.close()
        self._cluster.close()

    def _all_owned(self) -> bool:
        groups = {self.settings.group_of(number) for number in self.runners}
        count = sum(map(len, self._metadata.topics.values()))
        owners = self.owners()
        return len(owners) == count * len(groups) and all(len(each) == 1 for each in owners.values())

    def _do(self, step: MemberStep) -> None:
        self.counts[step.action.value] += 1
        match step.action:
            case Action.JOIN:
                self._join(step.member)
            case Action.COMMIT:
                self._commit(step.member)
            case Action.LEAVE:
                self._spawn(self._leave(step.member))
            case Action.CRASH:
                self._spawn(self._crash(step.member))

    def _join(self, number: int) -> None:
        settings = self.settings
        member = GroupMember(
            MemberSettings(
                settings.group_of(number),
                settings.assignors,
                settings.session_timeout_ms,
                settings.rebalance_timeout_ms,
                settings.heartbeat_interval_ms,
                client_id=f"{settings.prefix}-member-{number}",
            ),
            settings.topics,
            self._metadata,
        )
        connections = self._connections.setdefault(settings.connection_of(number), Connections(self._network))
        self.runners[number] = MemberRunner(member, self._cluster, connections, self._heard)
        self.runners[number].start()

    def _commit(self, number: int) -> None:
        runner = self.runners.get(number)
        if runner is None or not runner.member.owned:
            self.counts["commit without partitions"] += 1
            return
        group, offsets = self.settings.group_of(number), {}
        for partition in runner.member.owned:
            self.sent[group, partition] += 1
            offsets[partition] = OffsetToCommit(self.sent[group, partition])
        self._spawn(self._committed(runner, group, offsets))

    async def _committed(self, runner: MemberRunner, group: str, offsets: Mapping[TopicPartition, OffsetToCommit]) -> None:
        try:
            response = await runner.commit(offsets)
        except ClientError as error:
            self.counts[f"commit {type(error).__name__}"] += 1
            return
        for partition, code in response.errors.items():
            self.counts[f"commit {code.name}"] += 1
            if code is ErrorCode.NONE:
                key = group, partition
                self.acknowledged[key] = max(self.acknowledged.get(key, 0), offsets[partition].offset)

    async def _leave(self, number: int) -> None:
        runner = self.runners.pop(number, None)
        if runner is not None:
            await runner.leave()

    async def _crash(self, number: int) -> None:
        runner = self.runners.pop(number, None)
        if runner is None:
            return
        await runner.stop()
        if self.settings.connections is None:
            self._connections.pop(number).close()

    def _heard(self, event: Event) -> None:
        self.counts[type(event).__name__] += 1
        if isinstance(event, MemberFailed):
            self.failures.append(event)

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
