"""A node as its supervisor sees it: a child process that is started again whenever it ends."""

import asyncio
import json
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from coordinator_core.service.net.addresses import ListenAddress
from coordinator_core.service.node.event_log import EventLog
from pipelines.job.coordinator_process import CoordinatorError
from pipelines.job.node_process import MODULE, STOP, NodeTask

#: Pauses before a new start, by the number of starts in a row that soon ended, in seconds.
_PAUSES = (0.0, 0.2, 1.0, 5.0)
_SOON_SECONDS = 10.0
#: Of a request for the health or the metrics of the node.
_REPORT_SECONDS = 2.0


class SpareProcess:
    """A process that has loaded its code, and waits for the task of a node that has ended: the longest part of a start.

    `descriptors` are the files that processes inherit.
    """

    def __init__(self, descriptors: Sequence[int]) -> None:
        self._descriptors = descriptors
        self._process: Process | None = None

    async def take(self) -> Process:
        """Return the process, or a new one while there is none."""
        spare, self._process = self._process, None
        return spare if spare is not None and spare.returncode is None else await self._started()

    async def renew(self) -> None:
        """Start a process unless there is one."""
        if self._process is None or self._process.returncode is not None:
            self._process = await self._started()

    async def end(self) -> None:
        """End the process."""
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            await self._process.wait()

    async def _started(self) -> Process:
        command = [sys.executable, "-P", "-m", MODULE]
        return await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, pass_fds=self._descriptors)


class SupervisedNode:
    """One node. `run` starts it, and starts it again until `stop`."""

    def __init__(self, task: NodeTask, admin: ListenAddress, spare: SpareProcess, event_log: EventLog) -> None:
        self.node = task.nodes[task.position]
        #: Number of starts that led to a node which accepted connections.
        self.starts = 0
        #: Set when the first process accepts connections.
        self.listening = asyncio.Event()
        self._task = task
        self._admin = admin
        self._spare = spare
        self._event_log = event_log
        self._process: Process | None = None
        self._stopping = False

    async def run(self) -> None:
        """Keep the node running; return after `stop`. Raises CoordinatorError if its first process accepts no connections."""
        soon = 0
        clock = asyncio.get_running_loop().time
        while not self._stopping:
            started = clock()
            error = await self._run_once()
            if self._stopping:
                return
            if not self.listening.is_set():
                raise CoordinatorError(error or f"node {self.node.node_id} ended before it accepted connections")
            code = None if self._process is None else self._process.returncode
            self._event_log.warning("node ended", node=self.node.node_id, exit_code=code, **({"error": error} if error else {}))
            soon = soon + 1 if clock() - started < _SOON_SECONDS else 0
            await asyncio.sleep(_PAUSES[min(soon, len(_PAUSES) - 1)])

    async def _run_once(self) -> str | None:
        """Run one process to its end; return the reason why it could not start, None for any other end."""
        process = self._process = await self._spare.take()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(self._task.line())
        answer = _parsed(await process.stdout.readline())
        if answer.get("listening"):
            self.starts += 1
            at = ListenAddress(self.node.host, self.node.port)
            self._event_log.info("node started", node=self.node.node_id, address=str(at), pid=process.pid)
            if self.listening.is_set():
                # only now: it would compete with this start
                await self._spare.renew()
            self.listening.set()
        await process.wait()
        process.stdin.close()
        return answer.get("error")

    async def stop(self, seconds: float) -> None:
        """Stop the node after its requests in progress; kill it after this time."""
        self._stopping = True
        process = self._process
        if process is None or process.returncode is not None:
            return
        assert process.stdin is not None
        process.stdin.write(STOP)
        try:
            async with asyncio.timeout(seconds):
                await process.wait()
        except TimeoutError:
            self._event_log.warning("node killed", node=self.node.node_id, reason=f"it has not stopped after {seconds:g} s")
            self.kill()
            await process.wait()

    def kill(self) -> None:
        """End the process at once."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()

    async def report(self, path: str) -> str | None:
        """Return the body of the node's /health or /metrics; None if it does not answer."""
        try:
            async with asyncio.timeout(_REPORT_SECONDS):
                reader, writer = await asyncio.open_connection(*self._admin)
                try:
                    writer.write(f"GET {path} HTTP/1.1\r\n\r\n".encode())
                    answer = await reader.read()
                finally:
                    writer.close()
        except (OSError, TimeoutError):
            return None
        head, _, body = answer.partition(b"\r\n\r\n")
        return body.decode() if head else None


def _parsed(line: bytes) -> dict[str, Any]:
    """Parse the answer of a node; nothing of a process that has ended without one."""
    try:
        return dict(json.loads(line))
    except ValueError:
        return {}
