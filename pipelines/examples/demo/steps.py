"""The steps of the demo: groups rebalance, lose a member, drain and expire; SQL shows each step."""

import asyncio
import sys
from collections.abc import Callable, Sequence

from coordinator_core.assignors import CooperativeStickyAssignor, RangeAssignor
from coordinator_core.client import Crowd, CrowdSettings
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.service.net.addresses import ListenAddress
from pipelines.examples.demo.answers import print_answer, print_title
from pipelines.examples.demo.caught_up import OBSERVE_EVERY_SECONDS, caught_up
from pipelines.examples.demo.members import SESSION_TIMEOUT_MS, Members
from pipelines.examples.demo.waiting import DemoError, WaitProgress, wait_for
from pipelines.query.engine import Snapshot
from pipelines.source.address import SourceAddress

TOPICS = {"orders": 6, "payments": 4, "clicks": 2}
_RETENTION_MS = 5_000
_CROWD = CrowdSettings(
    groups=3,
    members=30,
    topics=("orders",),
    partitions=TOPICS["orders"],
    duration_ms=7_000,
    session_timeout_ms=SESSION_TIMEOUT_MS,
    heartbeat_interval_ms=SESSION_TIMEOUT_MS // 4,
)

_GROUPS = "SELECT group_id, state, generation, protocol, member_count FROM groups ORDER BY group_id"
_BILLING = (
    "SELECT client_id, count(*) AS partitions, string_agg(concat(topic, '-', partition), ' ' ORDER BY topic, partition) AS owned "
    "FROM assignments WHERE group_id = 'billing' GROUP BY client_id ORDER BY client_id"
)
_OFFSETS = (
    "SELECT group_id, count(*) AS partitions, sum(committed_offset) AS total FROM committed_offsets "
    "GROUP BY group_id ORDER BY group_id"
)
_CRASHED = (
    "SELECT generation, change, detail FROM group_history WHERE group_id = 'search-index' "
    "AND change IN ('rebalance', 'member_joined', 'member_left') ORDER BY log_offset DESC, change LIMIT 4"
)
_DRAINED = (
    "SELECT state, topic, partition, committed_offset, commit_timestamp, expires_at FROM expiring_offsets "
    "WHERE group_id = 'nightly-report' ORDER BY partition"
)
_EXPIRED = (
    "SELECT topic, partition, change, committed_offset, previous_offset, record_timestamp FROM offset_history "
    "WHERE group_id = 'nightly-report' ORDER BY log_offset"
)
_EVERYTHING = (
    "SELECT g.group_id, g.state, g.generation, count(*) FILTER (WHERE h.change = 'member_joined') AS joined, "
    "count(*) FILTER (WHERE h.change = 'member_left') AS departed FROM groups g JOIN group_history h ON h.group_id = g.group_id "
    "GROUP BY g.group_id, g.state, g.generation ORDER BY g.group_id"
)


class DemoSteps:
    """Drives members of the coordinator at `server`, and prints queries of `tables`, which a job makes from the log at `log`.

    `logs` is the folder with the log files of coordinator and job; error messages name it. `ends` has the log ends of the topics.
    """

    def __init__(
        self,
        server: ListenAddress,
        log: str,
        tables: str,
        logs: str,
        ends: Callable[[TopicPartition], int] = lambda _: sys.maxsize,
    ) -> None:
        self._server = server
        self._logs = logs
        self._log = SourceAddress("segments", log)
        self._tables = tables
        self._ends = ends

    async def run(self) -> None:
        """Run all steps. Raises GrouplakeError if one does not have the expected result."""
        members = Members(self._server, TOPICS, self._ends)
        crowd = Crowd((self._server,), _CROWD)
        try:
            await self._joined(members)
            crowd_run = asyncio.create_task(crowd.run())
            await self._rebalance(members)
            await crowd_run
            await self._committed(crowd)
            await asyncio.gather(crowd.leave(), members.leave_all())
            await self._show("All members have left: groups without members keep their offsets", _EVERYTHING)
            await self._compare(members)
        finally:
            await asyncio.gather(members.leave_all(), crowd.close(), return_exceptions=True)

    async def _joined(self, members: Members) -> None:
        sticky = CooperativeStickyAssignor()
        for number in (1, 2):
            members.join(f"billing-{number}", "billing", ("orders", "payments"), RangeAssignor())
        for number in (1, 2, 3):
            members.join(f"search-{number}", "search-index", ("orders",), sticky)
        members.join("nightly", "nightly-report", ("clicks",), RangeAssignor(), commits=False)
        await members.settled("billing", "search-index", "nightly-report")
        await self._show("Three groups are stable: their members own all partitions and commit offsets", _GROUPS, _BILLING)

    async def _rebalance(self, members: Members) -> None:
        members.join("billing-3", "billing", ("orders", "payments"), RangeAssignor())
        await members.settled("billing")
        await self._show(
            f"billing-3 joins: its group rebalances. A crowd of {_CROWD.members} members starts to join and leave",
            _BILLING,
            _OFFSETS,
        )

        await members.crash("search-2")
        await members.settled("search-index")
        await self._show(
            f"search-2 crashes: its session times out after {SESSION_TIMEOUT_MS / 1000:g} s, and its group rebalances", _CRASHED
        )

        await members.commit_for("nightly", _RETENTION_MS)
        await members.leave("nightly")
        batch = await self._show(
            f"nightly-report commits with a retention of {_RETENTION_MS / 1000:g} s, then its only member leaves", _DRAINED
        )
        await self._until_removed(members, "nightly-report")
        await self._show("The retention has passed: the coordinator has removed the offsets and the group", _EXPIRED, _GROUPS)
        await self._show(f"As of batch {batch} the group still exists", _DRAINED, as_of=str(batch))

    async def _committed(self, crowd: Crowd) -> None:
        """Wait until every partition of every group of the crowd has an offset; on a slow machine some may lack one."""
        wanted = _CROWD.groups * TOPICS["orders"]

        async def observe() -> WaitProgress:
            count = len(crowd.acknowledged)
            if count < wanted:
                await crowd.commit()
            return WaitProgress(count == wanted, count, f"{count} of {wanted}")

        await wait_for("the crowd did not commit offsets of all partitions", observe, OBSERVE_EVERY_SECONDS)

    async def _show(self, title: str, *queries: str, as_of: str | None = None) -> int:
        """Print the answers to `queries` once the tables have caught up with the log. Returns the batch id that was queried."""
        await self._caught_up()
        snapshot = await asyncio.to_thread(Snapshot.open, self._tables, as_of)
        answers = [await asyncio.to_thread(snapshot.query, query) for query in queries]
        print_title(f"{title} (batch {snapshot.batch.batch_id})")
        for query, answer in zip(queries, answers, strict=True):
            print_answer(query, answer)
        return snapshot.batch.batch_id

    async def _caught_up(self) -> None:
        await caught_up(self._tables, self._log, {}, self._logs)

    async def _until_removed(self, members: Members, group: str) -> None:
        """Wait until the coordinator and then the tables have removed the group."""

        async def offsets() -> WaitProgress:
            count = len(await members.committed(group))
            return WaitProgress(count == 0, -count, f"{count} offsets left")

        async def rows() -> WaitProgress:
            await self._caught_up()
            found = await asyncio.to_thread(self._rows, f"SELECT state FROM groups WHERE group_id = '{group}'")
            return WaitProgress(not found, 0, f"{found}")

        hint = f"; see {self._logs}/coordinator.log"
        await wait_for(f"the coordinator did not remove the offsets of {group}", offsets, OBSERVE_EVERY_SECONDS, hint)
        await wait_for(f"the coordinator did not remove the group {group}", rows, OBSERVE_EVERY_SECONDS, hint)

    def _rows(self, query: str) -> Sequence[dict[str, object]]:
        rows: list[dict[str, object]] = Snapshot.open(self._tables).query(query).to_pylist()
        return rows

    async def _compare(self, members: Members) -> None:
        """Compare the committed offsets of the coordinator with those of the tables. Raises DemoError on a difference."""
        await self._caught_up()
        rows = await asyncio.to_thread(self._rows, "SELECT group_id, topic, partition, committed_offset FROM committed_offsets")
        stored = {(row["group_id"], row["topic"], row["partition"]): row["committed_offset"] for row in rows}
        fetched = {
            (group, *partition): offset
            for group in {str(row["group_id"]) for row in rows}
            for partition, offset in (await members.committed(group)).items()
        }
        if stored != fetched:
            groups = ", ".join(sorted({str(key[0]) for key, _ in stored.items() ^ fetched.items()}))
            raise DemoError(
                f"committed offsets differ for {groups}: the tables have {len(stored)} in all, OffsetFetch returns {len(fetched)}"
            )
        print(f"\nOffsetFetch returns the same {len(stored)} committed offsets as the tables.")
