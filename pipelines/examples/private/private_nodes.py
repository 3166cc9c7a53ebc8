"""Nodes that share a log topic, as child processes: each is a `grouplake coordinator --log kafka://…`."""

import tempfile
from pathlib import Path
from types import TracebackType

from pipelines.examples.private.kafka.process import Keeper
from pipelines.examples.private.private_coordinator import PrivateCoordinator


class PrivateNodes:
    """Nodes 1 to `count` on free ports of 127.0.0.1, whose log is the topic at `address`, created with `partitions` partitions.

    Their configuration and logs are in `folder`: node-1.toml, node-1.log and so on. They end with this process, even if it is
    killed. `with PrivateNodes(...) as nodes:` starts them one after another, and returns when all partitions have an owner.
    Raises PrivateCoordinatorError, with the end of its log, if a node cannot start.
    """

    def __init__(self, folder: Path, address: str, *, count: int, partitions: int, topics: dict[str, int]) -> None:
        self.partitions = partitions
        self._marks = Path(tempfile.mkdtemp(prefix="grouplake-nodes-"))
        self._keeper = Keeper(self._marks)
        self._nodes = {
            number: PrivateCoordinator(
                folder / f"node-{number}",
                topics=topics,
                log=address,
                node_id=number,
                offsets_topic_num_partitions=partitions,
                group_initial_rebalance_delay_ms=0,
            )
            for number in range(1, count + 1)
        }

    def __enter__(self) -> "PrivateNodes":
        try:
            for number, node in self._nodes.items():
                node.start()
                self._mark(number).touch()
            # each node owns the same number of partitions, so all are owned when each node has its share
            for node in self._nodes.values():
                node.wait_until_active(self.partitions // len(self._nodes))
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    @property
    def bootstrap(self) -> str:
        """Addresses of all nodes that were started and not killed."""
        return ",".join(node.bootstrap for node in self._nodes.values())

    def kill(self, number: int) -> None:
        """Kill a node with SIGKILL."""
        mark = self._mark(number)
        self._nodes.pop(number).kill()
        # the system can assign the process id to another process
        mark.unlink()

    def wait_until_all_active(self) -> None:
        """Wait until the only node that is left has loaded every partition of the log."""
        (last,) = self._nodes.values()
        last.wait_until_active(self.partitions)

    def close(self) -> None:
        """Kill all nodes."""
        for node in self._nodes.values():
            node.kill()
        self._nodes.clear()
        self._keeper.release()

    def _mark(self, number: int) -> Path:
        return self._marks / f"{self._nodes[number].pid}.pid"
