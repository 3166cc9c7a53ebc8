"""The steps of the demo of a fail-over: consumers commit, a node is killed, and SQL shows what the tables have."""

import asyncio
import time
from collections import Counter
from collections.abc import Mapping

from confluent_kafka.admin import AdminClient

from pipelines.examples.demo.answers import print_answer, print_title
from pipelines.examples.demo.caught_up import OBSERVE_EVERY_SECONDS, caught_up
from pipelines.examples.demo.fail_over.committing_consumers import AcknowledgedCommit, CommittingConsumers
from pipelines.examples.demo.fail_over.logged_commits import logged_commits
from pipelines.examples.demo.fail_over.lost_commits import STORED, compared, conclusion, stored_commits, table_of
from pipelines.examples.demo.waiting import WaitProgress, wait_for
from pipelines.examples.private.private_nodes import PrivateNodes
from pipelines.query.engine import Snapshot
from pipelines.runtime.progress import Progress
from pipelines.source.address import SourceAddress

LOG_PARTITIONS = 8
TOPIC, PARTITIONS = "orders", 2
#: Each is in a log partition of its own: of two nodes with half of the partitions, both have some of the groups.
GROUPS = ("billing", "fraud-check", "invoices", "ledger", "search-index", "shipping")
_CONSUMERS = 2
#: Acknowledged commits of each group before the kill, and again after it.
_COMMITS = 20


class FailOverSteps:
    """Runs consumers of `nodes`, whose `log` a job with the connection options `kafka` reads into `tables`.

    `logs` is the folder with the log files of the nodes and of the job; error messages name it.
    """

    def __init__(
        self, nodes: PrivateNodes, log: SourceAddress, kafka: Mapping[str, str], tables: str, logs: str, progress: Progress
    ) -> None:
        self._nodes = nodes
        self._log, self._kafka = log, kafka
        self._tables = tables
        self._logs = logs
        self._progress = progress
        self._consumers = CommittingConsumers(nodes.bootstrap, TOPIC, GROUPS, _CONSUMERS)

    async def run(self) -> str:
        """Run all steps, and return the conclusion. Raises DemoError if a commit was lost, or if a step makes no progress."""
        self._progress(f"{len(GROUPS)} groups of {_CONSUMERS} consumers join, and commit several times a second")
        committing = asyncio.create_task(asyncio.to_thread(self._consumers.run))
        try:
            await self._commits_since(0.0, _COMMITS)
            owners = await asyncio.to_thread(_coordinators, self._nodes.bootstrap)
            killed = await self._kill_a_node(owners)
        finally:
            self._consumers.stop()
            await committing
        self._progress("the consumers have stopped; waiting until the tables have everything that is in the log")
        await caught_up(self._tables, self._log, self._kafka, self._logs)
        return await asyncio.to_thread(self._compare, owners, killed)

    async def _kill_a_node(self, owners: Mapping[str, int]) -> int:
        """Kill the node with the most groups, and wait until all groups commit again. Return its id."""
        for number in sorted(set(owners.values())):
            self._progress(f"node {number} coordinates {', '.join(_groups_of(number, owners))}")
        (killed, _), *_ = Counter(owners.values()).most_common(1)
        self._progress(f"kill -9 of node {killed}, after {len(self._consumers.acknowledged):,} acknowledged commits")
        self._nodes.kill(killed)
        at = time.monotonic()
        await asyncio.to_thread(self._nodes.wait_until_all_active)
        seconds = time.monotonic() - at
        self._progress(f"the other node has loaded its partitions of the log after {seconds:.1f} s")
        await self._commits_since(at, 1)
        first = {commit.place.group: commit.answered_at - at for commit in reversed(self._sent_since(at))}
        slowest = max(first[group] for group in _groups_of(killed, owners))
        self._progress(f"all groups of node {killed} have committed at the other node after {slowest:.1f} s")
        await self._commits_since(at, _COMMITS)
        return killed

    async def _commits_since(self, at: float, count: int) -> None:
        """Wait until each group has this number of acknowledged commits that were sent after the time `at`."""

        async def observe() -> WaitProgress:
            commits = Counter(commit.place.group for commit in self._sent_since(at))
            done = [min(commits[group], count) for group in GROUPS]
            return WaitProgress(sum(done) == count * len(GROUPS), sum(done), ", ".join(map(_counted, GROUPS, done)))

        await wait_for(f"a group did not commit {count} times", observe, OBSERVE_EVERY_SECONDS, f"; see {self._logs}/node-*.log")

    def _sent_since(self, at: float) -> list[AcknowledgedCommit]:
        return [commit for commit in tuple(self._consumers.acknowledged) if commit.sent_at > at]

    def _compare(self, owners: Mapping[str, int], killed: int) -> str:
        snapshot = Snapshot.open(self._tables)
        stored = stored_commits(snapshot.query(STORED).to_pylist())
        # up to where the tables have read it: the same commits on both sides
        logged = logged_commits(self._log, self._kafka, TOPIC, snapshot.batch.next_offsets)
        partitions = compared(self._consumers.acknowledged, logged, stored, owners)
        print_title("Commits that were acknowledged to the consumers, beside those in the log and in the tables")
        print_answer(STORED, table_of(partitions))
        return conclusion(partitions, killed)


def _groups_of(node: int, owners: Mapping[str, int]) -> list[str]:
    return [group for group, owner in owners.items() if owner == node]


def _counted(group: str, commits: int) -> str:
    return f"{group} {commits}"


def _coordinators(bootstrap: str) -> dict[str, int]:
    """The node of each group."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    described = admin.describe_consumer_groups(list(GROUPS))
    return {group: described[group].result().coordinator.id for group in GROUPS}
