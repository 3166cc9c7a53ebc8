"""The lock of a folder, while children of a writer that was killed still hold it."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from eventually import equal_to, eventually

from coordinator_core.segment_log.errors import LogInUse
from coordinator_core.segment_log.lock import FolderLock, is_inherited

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the two kinds of locks exclude each other")

_WRITER = """
import subprocess, sys
from pathlib import Path
from coordinator_core.segment_log.lock import FolderLock
lock = FolderLock(Path(sys.argv[1]))
child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=sys.stdin, pass_fds=[lock.descriptor])
print("ready", flush=True)
child.wait()
"""


def test_children_of_a_killed_writer_hold_the_lock_until_they_end(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _WRITER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        assert not is_inherited(tmp_path)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        assert is_inherited(tmp_path)
        with pytest.raises(LogInUse):
            FolderLock(tmp_path)
        # the child reads its end
        writer.stdin.close()
        eventually("the lock is free", lambda: _is_free(tmp_path), equal_to(True))


def _is_free(folder: Path) -> bool:
    try:
        FolderLock(folder).release()
    except LogInUse:
        return False
    return True
