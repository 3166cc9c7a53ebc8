"""Queries as processes: start, limits, and the reason of their end in words."""

import asyncio
import json
import os
import signal
import sys
from dataclasses import dataclass
from typing import Any

from pipelines.dashboard.sql.settings import SqlSettings

_WORKER = (sys.executable, "-P", "-B", "-m", "pipelines.dashboard.sql.worker")
#: Queries that wait for a process; further ones are refused.
_WAITING = 8
#: Standard error of a process of which the reason of its end is read.
_ERROR_BYTES = 64 << 10
#: One arena of malloc instead of one per thread: the limit counts address space.
_ENVIRONMENT = {
    "MALLOC_ARENA_MAX": "2",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "RUST_BACKTRACE": "0",
    "OPENBLAS_NUM_THREADS": "1",
}


@dataclass(frozen=True)
class QueryError(Exception):
    """A query without a result: status code of HTTP and a message."""

    code: int
    message: str


class QueryProcesses:
    """Runs queries, a bounded number at a time."""

    def __init__(self, settings: SqlSettings) -> None:
        self._settings = settings
        self._slots = asyncio.Semaphore(settings.processes)
        self._pending = 0

    async def run(self, root: str, sql: str, as_of: str | None) -> dict[str, Any]:
        """The answer of the process: batch, columns, rows, note. Raises QueryError."""
        if self._pending >= self._settings.processes + _WAITING:
            raise QueryError(503, f"{self._pending} queries run or wait: try again (dashboard.sql_processes)")
        self._pending += 1
        try:
            async with self._slots:
                return await self._run(root, sql, as_of)
        finally:
            self._pending -= 1

    async def _run(self, root: str, sql: str, as_of: str | None) -> dict[str, Any]:
        settings = self._settings
        limits = {"seconds": settings.seconds, "memory_mb": settings.memory_mb, "rows": settings.rows}
        process = await asyncio.create_subprocess_exec(
            *_WORKER,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, **_ENVIRONMENT},
        )
        try:
            request = json.dumps({"root": root, "sql": sql, "as_of": as_of, **limits}).encode()
            async with asyncio.timeout(settings.seconds):
                output, errors = await process.communicate(request)
        except TimeoutError:
            raise QueryError(422, f"the query took more than {settings.seconds} s (dashboard.sql_seconds)") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return self._answer(process.returncode or 0, output, errors[-_ERROR_BYTES:])

    def _answer(self, code: int, output: bytes, errors: bytes) -> dict[str, Any]:
        if code == -signal.SIGXCPU:
            raise QueryError(422, f"the query took more than {self._settings.seconds} s of every core (dashboard.sql_seconds)")
        out_of_memory = f"the query needs more than {self._settings.memory_mb:,} MiB (dashboard.sql_memory_mb)"
        if code:
            # Rust ends the process when an allocation fails
            if b"memory allocation" in errors or code in (-signal.SIGABRT, -signal.SIGKILL, -signal.SIGSEGV):
                raise QueryError(422, out_of_memory)
            raise QueryError(500, f"the process of the query ended with code {code}")
        found: dict[str, Any] = json.loads(output)
        if found.get("is_out_of_memory"):
            raise QueryError(422, out_of_memory)
        if found.get("error"):
            raise QueryError(400, found["error"])
        return found
