"""Tables that several test files read and none writes: built once per test run, by one of its processes."""

import atexit
import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from eventually import eventually

#: Longest time without a new batch before a process gives up waiting for the process that builds.
_PATIENCE_SECONDS = 300.0
_POLL_SECONDS = 0.2


def tables_of_run(name: str, write: Callable[[str], object]) -> str:
    """The folder of the tables `name` of this run, which `write` fills. To be called once per process.

    It is removed when the last process of the run that has called this ends.
    """
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", f"process-{os.getpid()}")
    shared = Path(tempfile.gettempdir(), f"{name}-{os.getuid()}-{run}")
    users = _hold(shared.with_name(f"{shared.name}.users"))
    atexit.register(_release, users, shared)
    return built_once(shared, write)


def built_once(shared: Path, write: Callable[[str], object], patience_seconds: float = _PATIENCE_SECONDS) -> str:
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
