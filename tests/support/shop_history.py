"""The tables of `grouplake example --history` until a fixed time, built once per test run by one of its processes."""

import atexit
import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from eventually import eventually

from pipelines.examples.history.history import write_history
from pipelines.query.engine import Snapshot

UNTIL = datetime(2026, 3, 4, 14, tzinfo=UTC)

#: Longest time without a new batch before a process gives up waiting for the process that builds.
_PATIENCE_SECONDS = 300.0
_POLL_SECONDS = 0.2


@cache
def shop_tables() -> str:
    """The folder of the tables, which is removed when the last process of the run ends. Tests only read it."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", f"process-{os.getpid()}")
    shared = Path(tempfile.gettempdir(), f"shop-history-{os.getuid()}-{run}")
    users = _hold(shared.with_name(f"{shared.name}.users"))
    atexit.register(_release, users, shared)
    return built_once(shared, lambda folder: write_history(folder, UNTIL))


def built_once(shared: Path, write: Callable[[str], None], patience_seconds: float = _PATIENCE_SECONDS) -> str:
    """The folder that `write` fills, called by one of the processes that name `shared`; the others wait for it.

    The folder of a build that failed is written again by the next process.

    Raises:
        NotReached: another process builds, without progress.
    """
    shared.mkdir(mode=0o700, exist_ok=True)
    tables = shared / "tables"
    with _locked(shared / "lock", tables, patience_seconds):
        complete = shared / "complete"
        if not complete.exists():
            shutil.rmtree(tables, ignore_errors=True)
            write(str(tables))
            complete.touch()
    return str(tables)


@contextmanager
def _locked(file: Path, tables: Path, patience_seconds: float) -> Iterator[None]:
    """Hold the lock of the build; the kernel releases it when a process ends."""
    with file.open("w") as lock:
        eventually(
            f"the tables {tables} are built by another process",
            lambda: (_try_lock(lock.fileno()), _progress(tables)),
            lambda seen: seen[0],
            patience_seconds=patience_seconds,
            pause_seconds=_POLL_SECONDS,
        )
        yield


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _progress(tables: Path) -> int:
    """Number of commits of `batches`."""
    return sum(1 for _ in (tables / "batches" / "_delta_log").glob("*.json"))


def _hold(file: Path) -> int:
    """A shared lock on a file, which each process of the run holds until its end."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


def _release(descriptor: int, shared: Path) -> None:
    """Remove the folder if no other process of the run uses it."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    if _try_lock(descriptor):
        shutil.rmtree(shared, ignore_errors=True)
        shared.with_name(f"{shared.name}.users").unlink(missing_ok=True)
    os.close(descriptor)


def at(relative_ms: int) -> datetime:
    """A time relative to the end of the history."""
    return UNTIL + timedelta(milliseconds=relative_ms)


def rows(sql: str, as_of: datetime | None = None) -> list[dict[str, Any]]:
    """Rows of a query, by default on the newest batch."""
    snapshot = Snapshot.open(shop_tables())
    found: list[dict[str, Any]] = (snapshot if as_of is None else snapshot.as_of(as_of)).query(sql).to_pylist()
    return found


def status(group: str, as_of: datetime | None = None) -> Mapping[str, Any]:
    """The row of `group_status` of a group, with the rules of all findings."""
    (found,) = rows(f"SELECT * FROM group_status WHERE group_id = '{group}'", as_of)
    return {**found, "rules": {finding["rule"] for finding in found["findings"]}}
