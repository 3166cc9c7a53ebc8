"""One writer at a time in a local folder: an advisory lock, held by the process and gone with it (docs/adr/0009).

It tells a second job at once, before anything is written. What it cannot reach, hosts that share a bucket or a file system
without locks, the claim in the log of `batches` does (`pipelines.tables.writer`).
"""

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from pipelines.errors import AnotherWriter
from pipelines.tables.place import local_folder

FILE = "_writer.lock"

#: More than any content that this module writes.
_LONGEST = 4_096


@contextmanager
def writer_lock(root: str, command: str) -> Iterator[bool]:
    """Holds the lock of the tables under `root`; makes the folder when it is not there.

    Yields whether there is a lock: object stores and some network file systems have none, and a folder that cannot be written
    does not need any.

    Raises:
        AnotherWriter: another process holds it; the message says which.
    """
    folder = local_folder(root)
    lock = None if folder is None else _open(folder / FILE)
    if lock is None:
        yield False
        return
    is_locked = False
    try:
        is_locked = _acquire(lock, root)
        if is_locked:
            since = datetime.now(UTC).isoformat(timespec="seconds")
            os.truncate(lock, 0)
            os.pwrite(lock, f"{command}\npid {os.getpid()} on {socket.gethostname()} since {since}\n".encode(), 0)
        yield is_locked
    finally:
        if is_locked:
            os.truncate(lock, 0)
        os.close(lock)


def _open(path: Path) -> int | None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # not inheritable: neither the JVM nor Python workers may go on holding the lock of a driver that died
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError:
        return None


def _acquire(lock: int, root: str) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        command, _, holder = os.pread(lock, _LONGEST, 0).decode(errors="replace").strip().partition("\n")
        told = f"`{command}` ({holder})" if holder else "another process"
        raise AnotherWriter(f"the tables under {root} are being written by {told}: one writer at a time") from error
    except OSError:
        return False
    return True
