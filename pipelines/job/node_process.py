"""The process of one node of `grouplake coordinator --nodes N`, which `node_supervisor` starts.

Its task is the first line of standard input; a spare process waits for that line. It answers with one line of JSON on standard
output: LISTENING, or the reason why it cannot start. The line STOP ends it after the requests in progress. It ends at once when
standard input does, since its supervisor is gone then: the next one must not find two writers of one partition.
"""

import asyncio
import io
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from socket import socket
from typing import Any

import uvloop

from coordinator_core.protocol.groups import Node
from coordinator_core.reduction.group_warm_up import load_group_kernels
from coordinator_core.service.groups.group_service import GroupCoordinatorService
from coordinator_core.service.net.addresses import ListenAddress
from coordinator_core.service.node.event_log import EventLog
from coordinator_core.service.node.fixed_shares import FixedShares, share
from coordinator_core.service.node.process import Addresses, raise_file_limit, serve
from coordinator_core.service.runtime.observer import Observer
from pipelines.job.coordinator_process import coordinator_options, open_offsets_log
from pipelines.runtime.errors import GrouplakeError

MODULE = "pipelines.job.node_process"
LISTENING: Mapping[str, object] = {"listening": True}
STOP = b"stop\n"
#: Both are for the supervisor, which asks its nodes to stop; a terminal sends them to all processes.
_IGNORED_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True)
class NodeTask:
    """What a node is told: its position among `nodes`, the folder of the log, and the section `[coordinator]`.

    `listener` and `admin` are the descriptors of its sockets for clients and for /health and /metrics, `unused` those of other
    nodes, which it inherits as well.
    """

    position: int
    nodes: Sequence[Node]
    directory: str
    section: Mapping[str, Any]
    listener: int
    admin: int
    unused: Sequence[int]

    def line(self) -> bytes:
        """Return the task as a line of JSON."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def parse(cls, line: bytes) -> "NodeTask":
        """Parse the line."""
        fields = json.loads(line)
        return cls(**{**fields, "nodes": [Node(*each) for each in fields["nodes"]]})


def run_node(task: NodeTask, orders: io.RawIOBase) -> None:
    """Serve the node's share of the log until `orders` tell it to stop. Raises CoordinatorError before it listens."""
    own = task.nodes[task.position]
    listen = f"[{own.host}]:{own.port}" if ":" in own.host else f"{own.host}:{own.port}"
    options = coordinator_options(listen, task.directory, task.section)
    event_log = EventLog(sys.stderr, options.log_level, node=own.node_id)
    raise_file_limit()
    numbers = share(task.position, len(task.nodes), options.config.offsets_topic_num_partitions)
    log = open_offsets_log(options, event_log, is_locked=True, numbers=numbers)

    def membership(_groups: GroupCoordinatorService, own: Node, _observer: Observer) -> FixedShares:
        return FixedShares(own, task.nodes)

    async def until_told(_address: ListenAddress, _admin: ListenAddress | None) -> str:
        print(json.dumps(LISTENING), flush=True)
        return await _stop_order(orders)

    addresses = Addresses(socket(fileno=task.listener), ListenAddress(own.host, own.port), socket(fileno=task.admin))
    settings = replace(options.settings, node_id=own.node_id)
    try:
        serving = serve(log, None, options.config, settings, addresses, event_log, until_told, new_membership=membership)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serving)
    finally:
        log.close()


async def _stop_order(orders: io.RawIOBase) -> str:
    """Wait for STOP; from then on, too, the end of the orders ends the process."""
    loop = asyncio.get_running_loop()
    stop: asyncio.Future[str] = loop.create_future()

    def readable() -> None:
        if not orders.read(len(STOP)):
            os._exit(1)
        if not stop.done():
            stop.set_result("the supervisor stops")

    loop.add_reader(orders.fileno(), readable)
    return await stop


def main() -> int:
    """Run the node of the task on standard input; return the exit code."""
    for number in _IGNORED_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    # a spare process is ready for its task as far as it can be
    load_group_kernels()
    # unbuffered: what follows the task is for the event loop
    orders = open(0, "rb", buffering=0, closefd=False)  # noqa: SIM115 - open until the process ends
    line = orders.readline()
    if not line:
        return 0
    task = NodeTask.parse(line)
    for descriptor in task.unused:
        os.close(descriptor)
    try:
        run_node(task, orders)
    except GrouplakeError as error:
        print(json.dumps({"error": str(error)}), flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
