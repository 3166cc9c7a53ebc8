"""Whether the job of a folder runs, as far as its lock shows it to a reader."""

import fcntl
import re
import socket
from pathlib import Path

from pipelines.tables.data_age import JobState
from pipelines.tables.location import local_folder
from pipelines.tables.writer_lock import FILE

_PROCESS = re.compile(r"pid [0-9]{1,9} on (\S+) since ")

#: Command of the lock file while the job has it; other commands keep the job out.
JOB = "grouplake run"


def job_state(root: str) -> JobState:
    """The state of the job that writes the tables under `root`.

    HIDDEN in object stores, on file systems without locks, and after a killed job of another host, whose successor may hold a
    lock that does not reach this one.
    """
    folder = local_folder(root)
    if folder is None:
        return JobState.HIDDEN
    path = Path(folder) / FILE
    try:
        text = path.read_text(encoding="utf-8", errors="replace").strip()
        is_locked = _is_locked(path)
    except OSError:
        return JobState.HIDDEN
    if is_locked:
        return JobState.RUNNING if text.partition("\n")[0] == JOB else JobState.STOPPED
    found = _PROCESS.search(text)
    return JobState.HIDDEN if found and found[1] != socket.gethostname() else JobState.STOPPED


def _is_locked(path: Path) -> bool:
    """Whether a process has the lock. A free one is taken, shared, for a moment. Raises OSError without locks."""
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
