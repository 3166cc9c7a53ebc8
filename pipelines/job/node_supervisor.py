"""`grouplake coordinator --nodes N`: several nodes on one machine, each a process with a fixed share of the log."""

import asyncio
import json
import os
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TextIO

from coordinator_core.log.errors import LogError
from coordinator_core.protocol.groups import Node
from coordinator_core.protocol.internal_topics import OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from coordinator_core.segment_log.errors import LogInUse
from coordinator_core.segment_log.lock import FolderLock, is_inherited
from coordinator_core.segment_log.segment_log import create_partitions
from coordinator_core.segment_log.topics_file import TOPICS_FILE, read_topics
from coordinator_core.service.net.addresses import ListenAddress, parse_listen_address
from coordinator_core.service.net.listener import BACKLOG
from coordinator_core.service.node.admin_server import AdminAnswer, AdminServer, json_answer, text_answer
from coordinator_core.service.node.event_log import EventLog
from coordinator_core.service.node.merged_reports import merged_health, merged_metrics
from coordinator_core.service.node.process import Addresses, CannotListen, raise_file_limit, signalled, started
from pipelines.job.coordinator_process import CoordinatorError, coordinator_options, print_ready_line
from pipelines.job.node_process import NodeTask
from pipelines.job.supervised_node import SpareProcess, SupervisedNode
from pipelines.runtime.errors import UsageError
from pipelines.runtime.service_manager import notify_stopping

_HIGHEST_PORT = 65_535
_ANY_PORT = ListenAddress("127.0.0.1", 0)
#: Beyond the time for requests in progress, before a node that does not stop is killed.
_STOP_SECONDS = 10.0
#: The longest wait for the nodes of a supervisor that was killed; one that is still loading its code ends afterwards.
_LAST_NODES_SECONDS, _POLL_SECONDS = 60.0, 0.05
_ONE_NODE = "which needs --nodes 1"


def run_nodes(listen: str, directory: str, section: Mapping[str, Any], nodes: int, stream: TextIO | None = None) -> None:
    """Serve until SIGTERM or SIGINT, and log to `stream` (None: standard error). The nodes listen at `listen` and the next ports.

    `section` is `[coordinator]`. Raises UsageError for an invalid value, CoordinatorError if the log or an address is not
    available, or if the folder has topics with data or transactions.
    """
    options = coordinator_options(listen, directory, section)
    with_data = [name for name, topic in options.settings.declared_topics.items() if topic.has_data]
    if with_data:
        raise UsageError(f"coordinator.topics.{with_data[0]} has data, {_ONE_NODE}")
    ports = _ports(parse_listen_address(listen), nodes)
    event_log = EventLog(stream or sys.stderr, options.log_level)
    raise_file_limit()
    folder = Path(directory)
    with ExitStack() as held:
        try:
            lock = _locked(folder, options.config.offsets_topic_num_partitions)
        except LogError as error:
            raise CoordinatorError(str(error)) from error
        except OSError as error:
            raise CoordinatorError(f"segments:{directory}: {error}") from error
        held.callback(lock.release)
        listeners = [held.enter_context(_bound(at)) for at in ports]
        admins = [held.enter_context(_bound(_ANY_PORT)) for _ in ports]
        known = _nodes(options.settings.node_id, options.addresses, listeners)
        files = [each.fileno() for each in (*listeners, *admins)]
        spare = SpareProcess([*files, lock.descriptor])
        supervised = []
        for position, (listener, admin) in enumerate(zip(listeners, admins, strict=True)):
            own = listener.fileno(), admin.fileno()
            task = NodeTask(position, known, directory, section, *own, [each for each in files if each not in own])
            supervised.append(SupervisedNode(task, ListenAddress(*admin.getsockname()[:2]), spare, event_log))
        supervisor = NodeSupervisor(supervised, spare, listeners, event_log, options.settings.drain_ms / 1000 + _STOP_SECONDS)
        try:
            asyncio.run(supervisor.serve(options.addresses))
        except CannotListen as error:
            raise CoordinatorError(str(error)) from error


class NodeSupervisor:
    """Runs the nodes, and answers /health and /metrics for all of them.

    `listeners` are their sockets, which are closed before the nodes stop; a node that needs longer than `stop_seconds` is killed.
    """

    def __init__(
        self,
        nodes: Sequence[SupervisedNode],
        spare: SpareProcess,
        listeners: Sequence[socket.socket],
        event_log: EventLog,
        stop_seconds: float,
    ) -> None:
        self._nodes = nodes
        self._spare = spare
        self._listeners = listeners
        self._event_log = event_log
        self._stop_seconds = stop_seconds
        self._stopping = False

    async def serve(self, addresses: Addresses) -> None:
        """Serve until a signal. Raises CoordinatorError if a node cannot start, CannotListen."""
        signal_name = signalled()
        admin = AdminServer(self._health, self._metrics, self._event_log)
        admin_at = None if addresses.admin is None else await started(admin.start(addresses.admin), addresses.admin)
        running = [asyncio.create_task(each.run(), name=f"node {each.node.node_id}") for each in self._nodes]
        running.append(asyncio.create_task(self._report_ready(admin_at), name="ready line"))
        reason = "an error"
        try:
            reason = await _first_of(signal_name, running)
        finally:
            self._event_log.info("stopping", reason=reason)
            notify_stopping()
            self._stopping = True
            await self._stop(running)
            admin.close()

    async def _report_ready(self, admin: ListenAddress | None) -> None:
        for each in self._nodes:
            await each.listening.wait()
        first = self._nodes[0].node
        print_ready_line(ListenAddress(first.host, first.port), admin)
        await self._spare.renew()

    async def _stop(self, running: Sequence["asyncio.Task[None]"]) -> None:
        for listener in self._listeners:
            # otherwise clients could still connect, and nobody would answer
            listener.close()
        await asyncio.gather(*(each.stop(self._stop_seconds) for each in self._nodes))
        for each in running:
            each.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await self._spare.end()

    async def _health(self) -> AdminAnswer:
        bodies = await self._reports("/health")
        report = merged_health({node: None if body is None else json.loads(body) for node, body in bodies.items()})
        return json_answer({**report, "status": "stopping"} if self._stopping else report)

    async def _metrics(self) -> AdminAnswer:
        texts = await self._reports("/metrics")
        return text_answer(merged_metrics(texts, {each.node.node_id: each.starts for each in self._nodes}))

    async def _reports(self, path: str) -> dict[int, str | None]:
        bodies = await asyncio.gather(*(each.report(path) for each in self._nodes))
        return {each.node.node_id: body for each, body in zip(self._nodes, bodies, strict=True)}


async def _first_of(signal_name: "asyncio.Future[str]", running: Sequence["asyncio.Task[None]"]) -> str:
    """Wait for the signal, and return its name. Raises the error of a task that fails before."""
    waiting: set[asyncio.Future[Any]] = {signal_name, *running}
    while not signal_name.done():
        ended, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for each in ended:
            each.result()
    return signal_name.result()


def _locked(folder: Path, partitions: int) -> FolderLock:
    """Lock the folder, and create the log in it. Raises LogError, OSError, CoordinatorError."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = _lock_after_last_nodes(folder)
    try:
        _expect_groups_only(folder)
        create_partitions(folder, OFFSETS_TOPIC, partitions)
    except BaseException:
        lock.release()
        raise
    return lock


def _lock_after_last_nodes(folder: Path) -> FolderLock:
    """Lock the folder once the nodes of a supervisor that was killed have ended. Raises LogInUse, OSError."""
    give_up = time.monotonic() + _LAST_NODES_SECONDS
    while True:
        try:
            return FolderLock(folder)
        except LogInUse:
            if not is_inherited(folder) or time.monotonic() > give_up:
                raise
        time.sleep(_POLL_SECONDS)


def _expect_groups_only(folder: Path) -> None:
    """Raise CoordinatorError if a coordinator of one node has left there what several ones do not serve."""
    topics = sorted(read_topics(folder / TOPICS_FILE))
    if topics:
        raise CoordinatorError(f"segments:{folder} has topic {topics[0]} with data, {_ONE_NODE}")
    if any(path.stat().st_size for path in folder.glob(f"{TRANSACTION_STATE_TOPIC}-*/*.log")):
        raise CoordinatorError(f"segments:{folder} has transactional ids, {_ONE_NODE}")


def _ports(first: ListenAddress, nodes: int) -> list[ListenAddress]:
    """Return the addresses of the nodes, one port after the other; any free ports for port 0."""
    if not first.port:
        return [first] * nodes
    last = first.port + nodes - 1
    if last > _HIGHEST_PORT:
        raise UsageError(f"--listen {first}: {nodes} nodes need the ports up to {last}; the highest one is {_HIGHEST_PORT}")
    return [first._replace(port=port) for port in range(first.port, last + 1)]


def _bound(address: ListenAddress) -> socket.socket:
    """Return a socket that queues connections from now on, also while its node is started again."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        return socket.create_server(address, family=family, backlog=BACKLOG)
    except OSError as error:
        # the message of the library repeats the address
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
        raise CoordinatorError(f"cannot listen on {address}: {reason}") from error


def _nodes(first_id: int, addresses: Addresses, listeners: Sequence[socket.socket]) -> list[Node]:
    """Return the nodes with their addresses for clients: the advertised port and those after it, or the bound ones."""
    found = []
    for position, listener in enumerate(listeners):
        host, port = listener.getsockname()[:2]
        if addresses.advertised is not None:
            host, port = addresses.advertised.host, addresses.advertised.port + position
        found.append(Node(first_id + position, host, port))
    return found
