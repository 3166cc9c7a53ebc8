"""/health of a node: its partitions, the appends that its log refuses, and its background tasks."""

from collections import Counter
from collections.abc import Mapping
from typing import Protocol

from coordinator_core.service.node.admin_server import AdminAnswer, json_answer


class ObservedNode(Protocol):
    """The state that /health depends on; see `NodeState`."""

    def partitions(self) -> Mapping[str, Mapping[str, int]]:
        """Return the number of partitions by topic and status."""

    def failures(self) -> Mapping[str, str]:
        """Return the reasons of failed partitions by TOPIC-NUMBER."""

    def failing_tasks(self) -> Mapping[str, str | None]:
        """Return the background tasks, with the error of the last run of each."""

    @property
    def shares_log(self) -> bool:
        """Whether partitions that are not loaded here have another owner."""

    @property
    def refused_appends(self) -> Mapping[str, str]:
        """Return the reasons of partitions whose log refuses appends, by TOPIC-NUMBER."""


class Health:
    """The health of a node, which is `stopping` from the first signal on."""

    def __init__(self, node: ObservedNode) -> None:
        self._node = node
        self.stopping = False

    async def answer(self) -> AdminAnswer:
        """Return the answer to /health."""
        return json_answer(self.report())

    def report(self) -> dict[str, object]:
        """Return the status, ok if every partition is active, takes appends, and no background task fails, and its reasons.

        Of a log that nodes share, the partitions of this node count.
        """
        partitions: Counter[str] = Counter()
        for by_status in self._node.partitions().values():
            partitions.update(by_status)
        failing = {task: error for task, error in self._node.failing_tasks().items() if error is not None}
        refused = dict(self._node.refused_appends)
        if self.stopping:
            status = "stopping"
        elif partitions.get("failed"):
            status = "failed"
        elif not set(partitions) <= ({"active", "unloaded"} if self._node.shares_log else {"active"}):
            status = "loading"
        else:
            status = "degraded" if failing or refused else "ok"
        found: dict[str, object] = {"status": status, "partitions": partitions}
        failures = self._node.failures()
        if failures:
            found["failed_partitions"] = dict(failures)
        if failing:
            found["failing_tasks"] = failing
        if refused:
            found["refused_appends"] = refused
        return found
