"""A coordinator in a process that is killed repeatedly, a crowd of members, offset clients, and tables that follow the log.

After every start that completes, acknowledged commits are compared. While the crowd pauses, all answers of the coordinator are
compared with the contents of the tables.
"""

import asyncio
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from broker_queries import BrokerAnswers, BrokerQueries, NotLoaded
from comparison import differences
from eventually import NotReached, at_least, eventually_async, eventually_awaited
from followers import Follower, reached
from generations import GENERATIONS
from offset_clients import OffsetClient
from patience import LIMIT_SECONDS
from table_answers import answers

from coordinator_core.client import Crowd, CrowdSettings
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.log.compression import Compression
from coordinator_core.member import GroupMember, MemberState
from coordinator_core.segment_log.append_batch import AppendBatch, batch_bytes
from coordinator_core.sources.segments import SegmentSource
from pipelines.examples.private.kafka.ports import PortReservation
from pipelines.examples.private.private_coordinator import PrivateCoordinator, PrivateCoordinatorError
from pipelines.query.check import check
from pipelines.query.engine import Snapshot

TOPIC, TOPIC_PARTITIONS = "orders", 30
LOG_PARTITIONS = 4
_GENERATION = GENERATIONS["4.3.0"]
_BUSY_SECONDS = 10
#: Shares of runs that find a torn tail, and that are killed before or soon after they listen.
_TORN, _CUT_SHORT = 0.3, 0.15
_QUIET = {"Stable", "Empty"}


@dataclass(frozen=True)
class Load:
    """Sizes and rates of the load. Times in ms; `segment_bytes` is small so that segments roll and are cleaned all the time."""

    crowd: CrowdSettings
    offset_clients: int = 5
    client_pause_ms: int = 20
    segment_bytes: int = 60_000
    cleaner_interval_ms: int = 250
    seed: int = 1


@dataclass
class Report:
    """Counts of a soak test."""

    kills: int = 0
    killed_while_starting: int = 0
    ended_while_loading: int = 0
    torn_tails: int = 0
    comparisons: int = 0
    groups_compared: int = 0
    checks_of_acknowledged: int = 0
    checks_of_tables: int = 0
    runs: Counter[str] = field(default_factory=Counter)


class SoakTest:
    """A soak test on one event loop. `begin` starts everything, `end` stops it."""

    def __init__(self, directory: Path, load: Load, follower: Follower) -> None:
        self.report = Report()
        self.directory = directory
        self.follower = follower
        self._load = load
        self._draw = random.Random(load.seed)
        # the same port in every run: clients reconnect to the address that they know
        self._reserved = PortReservation()
        self._port = self._reserved.port
        self._coordinator = self._next_run()
        address = "127.0.0.1", self._port
        self.crowd = Crowd([address], load.crowd)
        self.offset_clients = [
            OffsetClient(address, f"offsets-{number}", TOPIC, load.seed + number, load.client_pause_ms / 1000)
            for number in range(load.offset_clients)
        ]
        self._script: asyncio.Task[None] | None = None
        self._client_tasks: list[asyncio.Task[None]] = []
        self._generations: dict[str, int] = {}

    async def begin(self) -> None:
        """Start coordinator, tables, crowd and offset clients."""
        await asyncio.to_thread(self._coordinator.start)
        self.follower.start()
        self._script = asyncio.create_task(self.crowd.run())
        self._client_tasks = [asyncio.create_task(client.run()) for client in self.offset_clients]

    async def end(self) -> None:
        """Stop everything."""
        tasks = [*self._client_tasks, *([self._script] if self._script else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.crowd.close()
        await asyncio.to_thread(self.follower.stop)
        await asyncio.to_thread(self._coordinator.kill)
        self._reserved.release()

    @property
    def is_over(self) -> bool:
        """Whether the script of the crowd has ended."""
        assert self._script is not None
        return self._script.done()

    # ---- kills

    async def kill(self) -> None:
        """Kill -9 and start the next run, which may be killed before it listens, or find a batch that was cut short."""
        self._see_generations()
        await asyncio.to_thread(self._coordinator.kill)
        self.report.kills += 1
        if self._draw.random() < _TORN:
            self._tear()
        self._coordinator = self._next_run()
        if self._draw.random() < _CUT_SHORT:
            await self._kill_while_it_starts(self._draw.uniform(0.2, 2.0))
        await asyncio.to_thread(self._coordinator.start)

    async def _kill_while_it_starts(self, seconds: float) -> None:
        starting = asyncio.create_task(asyncio.to_thread(self._coordinator.start))
        await asyncio.sleep(seconds)
        self.report.kills += 1
        self.report.killed_while_starting += not starting.done()
        # on a stalled machine the process may not exist yet
        with suppress(PrivateCoordinatorError):
            os.kill(self._coordinator.pid, signal.SIGKILL)
        await asyncio.gather(starting, return_exceptions=True)
        self._coordinator.kill()

    async def run_while_loading(self, seconds: float) -> None:
        """Let a run live for a while, whether it has finished loading or not."""
        self.report.ended_while_loading += 1
        await asyncio.sleep(seconds)

    async def run_loaded(self, seconds: float, *, until_busy: bool) -> None:
        """Wait until a run has loaded, check what was acknowledged before, and let it live for a while.

        `until_busy` waits for the commit of a member before that time begins, so that slow machines have runs with traffic too.
        """
        acknowledged, commits = dict(self.crowd.acknowledged), self.crowd.counts["commit NONE"]
        await asyncio.to_thread(self._coordinator.wait_until_loaded)
        await self._check_acknowledged(acknowledged)
        if until_busy:
            more = at_least(commits + 1)
            with suppress(NotReached):
                await eventually_async(
                    "a commit",
                    lambda: self.crowd.counts["commit NONE"],
                    more,
                    patience_seconds=_BUSY_SECONDS,  # runs out: a crowd may have ended
                )
        await asyncio.sleep(seconds)

    def _next_run(self) -> PrivateCoordinator:
        load = self._load
        fsync = self._draw.choice(("always", "interval", "never"))
        self.report.runs[fsync] += 1
        return PrivateCoordinator(
            self.directory,
            topics={TOPIC: TOPIC_PARTITIONS},
            listen=f"127.0.0.1:{self._port}",
            fsync=fsync,
            fsync_interval_ms=100,
            group_min_session_timeout_ms=500,
            group_initial_rebalance_delay_ms=50,
            offsets_topic_num_partitions=LOG_PARTITIONS,
            offsets_topic_segment_bytes=load.segment_bytes,
            log_cleaner_interval_ms=load.cleaner_interval_ms,
            log_min_cleanable_ratio=0.1,
            log_delete_retention_ms=60_000,
        )

    def _tear(self) -> None:
        """Append the beginning of a next batch, as if the kill had interrupted a write."""
        number = self._draw.randrange(LOG_PARTITIONS)
        end = SegmentSource(self.directory).end_offsets()[number]
        (*_, last) = sorted(self.directory.glob(f"*-{number}/*.log"))
        records = [(b"\x00\x01torn", self._draw.randbytes(self._draw.randrange(1, 9_000)))]
        whole = batch_bytes(AppendBatch(records), end, 1_000, int(time.time() * 1000), Compression.NONE)
        with last.open("ab") as file:
            file.write(whole[: self._draw.randrange(1, len(whole))])
        self.report.torn_tails += 1

    # ---- what was acknowledged

    async def _check_acknowledged(self, acknowledged: Mapping[tuple[str, TopicPartition], int]) -> None:
        groups = sorted({group for group, _ in self.crowd.acknowledged})
        found = await asyncio.to_thread(self._fetched_offsets, groups)
        missing = (-1, -1, "")
        wrong = [
            f"{group} {at}: {offset} was acknowledged, {found[group].get(at, missing)[0]} is there"
            for (group, at), offset in acknowledged.items()
            if found[group].get(at, missing)[0] < offset
        ]
        sent: dict[tuple[str, tuple[str, int]], int] = {partition: offset for partition, offset in self.crowd.sent.items()}
        wrong += [
            f"{group} {at}: {offset} is there, {sent.get((group, at), 0)} was the largest that was sent"
            for group, offsets in found.items()
            for at, (offset, _, _) in offsets.items()
            if offset > sent.get((group, at), 0)
        ]
        assert wrong == []
        self.report.checks_of_acknowledged += 1

    def _fetched_offsets(self, groups: Sequence[str]) -> Mapping[str, Mapping[tuple[str, int], tuple[int, int, str]]]:
        with BrokerQueries(self._coordinator.bootstrap, _GENERATION) as queries:
            return queries.offsets(groups)

    def expect_no_findings(self) -> None:
        """Assert that neither offset clients nor members that gave up have findings."""
        assert [finding for client in self.offset_clients for finding in client.findings] == []
        assert self.crowd.failures == []

    # ---- tables

    async def check_tables(self) -> None:
        """Check the rules of the tables while everything runs."""
        self.follower.expect_alive()
        if reached(self.follower):
            assert await asyncio.to_thread(check, str(self.follower.tables)) == []
            self.report.checks_of_tables += 1

    async def compare(self) -> None:
        """Pause all clients until the tables have reached the end of the log, and compare tables and coordinator."""
        async with asyncio.timeout(LIMIT_SECONDS):
            await self.crowd.pause()
            for client in self.offset_clients:
                client.going.clear()
            await asyncio.gather(*(client.idle.wait() for client in self.offset_clients))
            await eventually_awaited("nothing moves", self._compared, patience_seconds=LIMIT_SECONDS, pause_seconds=0.1)
        for client in self.offset_clients:
            client.going.set()
        self.crowd.resume()

    async def _compared(self) -> bool:
        """Compare once; False if the log or a group changed meanwhile."""
        assert await self.crowd.settle(int(LIMIT_SECONDS * 1000)), self.crowd.counts
        ends = self._ends()
        theirs = await asyncio.to_thread(self._answers)
        if theirs is None:
            return False

        def followed() -> tuple[Mapping[int, int], Mapping[int, int]]:
            self.follower.expect_alive()
            return reached(self.follower), self._ends()

        _, now = await eventually_async(
            "the tables have the log, or it grows",
            followed,
            lambda found: ends == found[0] or ends != found[1],
            patience_seconds=LIMIT_SECONDS,
            pause_seconds=0.1,
        )
        if now != ends:
            return False
        have = await asyncio.to_thread(answers, self.follower.tables)
        states = self._states()
        if self._ends() != ends or states is None:
            return False
        groups = sorted(theirs.listed.keys() | have.groups.keys() | have.offsets.keys())
        assert differences(_GENERATION, groups, theirs, have) == []
        for group, (generation, leader) in states.items():
            row = have.groups[group]
            assert (row["generation"], row["leader"]) == (generation, leader), group
            assert generation >= self._generations.get(group, 0), f"the generation of {group} fell"
        self._see_generations()
        assert await asyncio.to_thread(check, str(self.follower.tables)) == []
        self.report.comparisons += 1
        self.report.groups_compared += len(groups)
        return True

    def _ends(self) -> dict[int, int]:
        return SegmentSource(self.directory).end_offsets()

    def _answers(self) -> BrokerAnswers | None:
        """All answers of the coordinator; None while a group rebalances."""
        with BrokerQueries(self._coordinator.bootstrap, _GENERATION) as queries:
            try:
                groups = sorted(queries.listed())
                theirs = BrokerAnswers.collect(queries, groups, [(TOPIC, 0)])
            except NotLoaded:
                return None
        return theirs if {group.state for group in theirs.listed.values()} <= _QUIET else None

    def _states(self) -> dict[str, tuple[int, str]] | None:
        """Generation and leader of each group, as its members know them; None while they do not agree."""
        found: dict[str, set[int]] = {}
        leaders: dict[str, list[str]] = {}
        for group, member in self._members():
            found.setdefault(group, set()).add(member.generation)
            leaders.setdefault(group, []).extend([member.member_id] if member.is_leader else [])
            if member.state is not MemberState.STABLE:
                return None
        if any(len(each) != 1 for each in (*found.values(), *leaders.values())):
            return None
        return {group: (min(found[group]), leaders[group][0]) for group in found}

    def _see_generations(self) -> None:
        """Note the greatest generation in which a member of each group had its partitions."""
        for group, member in self._members():
            if member.state is MemberState.STABLE:
                self._generations[group] = max(member.generation, self._generations.get(group, 0))

    def _members(self) -> Iterator[tuple[str, GroupMember]]:
        for number, runner in self.crowd.runners.items():
            yield self._load.crowd.group_of(number), runner.member

    def expect_generations_to_grow(self) -> None:
        """Assert that generations never fall in the history of the crowd's groups, which are never deleted."""
        query = "SELECT group_id, generation FROM group_history WHERE generation IS NOT NULL ORDER BY group_id, log_offset"
        rows = [(row["group_id"], row["generation"]) for row in Snapshot.open(str(self.follower.tables)).query(query).to_pylist()]
        assert [pair for pair in pairwise(rows) if pair[0][0] == pair[1][0] and pair[0][1] > pair[1][1]] == []

    def summary(self) -> str:
        """Counts for the log of a test."""
        counts, report = self.crowd.counts, self.report
        events = Counter(line["event"] for line in self._coordinator.log_lines())
        offset_clients = sum((client.counts for client in self.offset_clients), Counter[str]())
        return (
            f"{self._load.crowd.members} members in {self._load.crowd.groups} groups: {counts['join']} joins, "
            f"{counts['leave']} leaves, {counts['crash']} crashes; {events['group rebalances']} rebalances; "
            f"{events['tail cut off']} torn tails cut off; commits of {counts['commit NONE']:,} partitions acknowledged; "
            f"crowd: {dict(counts)}, offset clients: {dict(offset_clients)}; {report}"
        )
