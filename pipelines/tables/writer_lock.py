"""Advisory lock for one writer at a time in a local folder, released when the process ends (docs/adr/0009).

It stops a second job before any write. The claim in the log of `batches` (`pipelines.tables.writer`) excludes the writers that a
lock does not: hosts that share a bucket, or a file system without locks. In an object store the claim relies on conditional
writes, so a store without them is refused here.
"""

import fcntl
import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from pipelines.runtime.errors import AnotherWriter
from pipelines.tables.conditional_writes import expect_conditional_writes
from pipelines.tables.location import local_folder

FILE = "_writer.lock"

#: Bytes to read: more than this module writes.
_LONGEST = 4_096

_PROCESS = re.compile(r"pid ([0-9]{1,9}) on (\S+) since ")


@contextmanager
def writer_lock(root: str, command: str, file: str = FILE, what: str = "tables") -> Iterator[bool]:
    """Hold the lock of the tables under `root`, or that of `what` in `file`; creates a missing folder.

    Yields False without a lock: object stores and some network file systems have none, and a folder that cannot be written does
    not need one.

    Raises:
        AnotherWriter: another process has the lock; the message names it.
        UsageError: an object store that is not writable or has no conditional writes.
    """
    expect_conditional_writes(root)
    folder = local_folder(root)
    lock = None if folder is None else _open(folder / file)
    if lock is None:
        yield False
        return
    is_locked = False
    try:
        is_locked = _acquire(lock, f"{what} under {root}")
        if is_locked:
            since = datetime.now(UTC).isoformat(timespec="seconds")
            os.truncate(lock, 0)
            os.pwrite(lock, f"{command}\npid {os.getpid()} on {socket.gethostname()} since {since}\n".encode(), 0)
        yield is_locked
    finally:
        if is_locked:
            os.truncate(lock, 0)
        os.close(lock)


def lock_holder(root: str) -> str | None:
    """Command and process in the lock file of a local folder, None without a living holder.

    Without taking the lock of a process of this host: even for a moment, a job that starts would be refused.
    """
    folder = local_folder(root)
    try:
        text = "" if folder is None else (folder / FILE).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
    if folder is None or not text:
        return None
    found = _PROCESS.search(text)
    if found and found[2] == socket.gethostname():
        return text if _is_alive(int(found[1])) else None
    return text if _is_locked(folder / FILE) else None


def _is_locked(path: Path) -> bool:
    """Whether another process has the lock. Shared, for a moment, and only where a killed process has left its text."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _open(path: Path) -> int | None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # not inheritable: the JVM and Python workers must not keep the lock of a driver that has ended
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError:
        return None


def _acquire(lock: int, what: str) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        command, _, holder = os.pread(lock, _LONGEST, 0).decode(errors="replace").strip().partition("\n")
        owner = f"`{command}` ({holder})" if holder else "another process"
        raise AnotherWriter(f"the {what} are being written by {owner}: one writer at a time") from error
    except OSError:
        return False
    return True
