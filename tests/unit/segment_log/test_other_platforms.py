"""Code paths of macOS, forced on the platform of the test: durable files, locks, the limit of open files.

`AS_ON_MACOS` runs before any import: the C library has no `__errno_location`, `fcntl` has F_FULLFSYNC, locks of the two
kinds exclude each other also within a process, and an unlimited number of files cannot be requested.
"""

import errno
import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from patience import PATIENCE_SECONDS

from coordinator_core.codec.arrays import Int32s
from coordinator_core.log import force
from coordinator_core.segment_log import file_sync, lock
from coordinator_core.segment_log.errors import LogInUse
from coordinator_core.segment_log.file_sync import sync_files, sync_in_python
from coordinator_core.segment_log.lock import FolderLock

F_FULLFSYNC = 51

AS_ON_MACOS = """
import asyncio, ctypes, errno, fcntl, os, resource, sys, urllib.request
import numba.core.types
import pyarrow.compute  # imports pydoc, which reads a file of the platform

found, control, flock, lockf = ctypes.CDLL.__getattr__, fcntl.fcntl, fcntl.flock, fcntl.lockf
external, limits = numba.core.types.ExternalFunction, [256, 2**63 - 1]
synced, locked = [], set()

def symbol(library, name):
    if name == "__errno_location":
        raise AttributeError(name)
    return found(library, name)

def linked(name, signature):
    if name == "__errno_location":
        sys.exit("LLVM ERROR: Symbol not found: __errno_location")
    return external(name, signature)

def controlled(descriptor, command, *argument):
    if command != 51:
        return control(descriptor, command, *argument)
    os.fsync(descriptor)
    synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))

def locking(descriptor, how):
    flock(descriptor, how)
    locked.add(descriptor)

def record_locking(descriptor, *how):
    if descriptor in locked:
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
    lockf(descriptor, *how)

def limit(which, wanted):
    if wanted[0] > 10_240:
        raise ValueError("current limit exceeds maximum limit")
    limits[:] = wanted

ctypes.CDLL.__getattr__ = symbol
numba.core.types.ExternalFunction = numba.types.ExternalFunction = linked
fcntl.F_FULLFSYNC, fcntl.fcntl, fcntl.flock, fcntl.lockf = 51, controlled, locking, record_locking
resource.RLIM_INFINITY, resource.getrlimit, resource.setrlimit = 2**63 - 1, lambda _: tuple(limits), limit
sys.platform = "darwin"
"""


def as_on_macos(script: str, *arguments: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", AS_ON_MACOS + script, *arguments]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def printed_by(process: "subprocess.Popen[str]") -> list[str]:
    printed, errors = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0, errors
    return printed.splitlines()


def test_a_log_is_appended_to_and_flushed_without_compiled_code(tmp_path: Path) -> None:
    process = as_on_macos(
        """
from appended_logs import NOW_MS, commit
from coordinator_core.segment_log.segment_log import SegmentLog
from coordinator_core.segment_log.settings import SegmentLogSettings

log = SegmentLog.open(sys.argv[1], "t", 3, SegmentLogSettings())
for number in (0, 2):
    log.partition(number).append([commit(b"a", b"1")], NOW_MS)
synced.clear()
print(log.flush(range(3)), [log.partition(number).flushed_offset for number in range(3)])
print([path.split("/")[-2] for path in synced])
log.close()
print("coordinator_core.segment_log.sync_kernels" in sys.modules)
""",
        str(tmp_path),
    )
    assert printed_by(process) == ["[None, None, None] [1, 0, 1]", "['t-0', 't-2']", "False"]


def test_the_coordinator_serves_and_ends(tmp_path: Path) -> None:
    configuration = tmp_path / "small.toml"
    configuration.write_text('[coordinator]\noffsets_topic_num_partitions = 2\nadmin_listen = ""\nlog_level = "warning"\n')
    process = as_on_macos(
        """
from pipelines.cli.main import main

code = main(["coordinator", "--listen", "127.0.0.1:0", "--log", f"segments:{sys.argv[1]}/log", "--conf", sys.argv[2]])
print(code, limits[0])
""",
        str(tmp_path),
        str(configuration),
    )
    assert process.stdout is not None
    listening = process.stdout.readline()
    process.terminate()
    ended = printed_by(process)
    assert (listening[:23], ended) == ("listening on 127.0.0.1:", ["0 10240"])


def test_the_compiled_way_is_taken_here() -> None:
    assert sync_files().__module__ == "coordinator_core.segment_log.sync_kernels"


@pytest.mark.parametrize("way", [sync_in_python, sync_files()])
def test_both_ways_report_the_error_of_each_file(tmp_path: Path, way: Callable[[Int32s, Int32s], None]) -> None:
    reader, writer = os.pipe()
    with (tmp_path / "file").open("w") as file:
        descriptors = np.array([file.fileno(), writer, 10_000, file.fileno()], np.int32)
        errors = np.full(4, -1, np.int32)
        way(descriptors, errors)
    os.close(reader)
    os.close(writer)
    assert errors.tolist() == [0, errno.EINVAL, errno.EBADF, 0]


@pytest.mark.parametrize(
    ("number", "synced"), [(errno.ENOTSUP, True), (errno.ENOTTY, True), (errno.EIO, False), (errno.ENOSPC, False)]
)
def test_only_a_file_system_without_full_sync_is_synced_otherwise(
    monkeypatch: pytest.MonkeyPatch, number: int, synced: bool
) -> None:
    calls: list[int] = []

    def refused(_: int, command: int) -> None:
        assert command == F_FULLFSYNC
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(force, "FULL_SYNC", F_FULLFSYNC)
    monkeypatch.setattr(fcntl, "fcntl", refused)
    monkeypatch.setattr(os, "fsync", calls.append)
    if synced:
        force.force(7)
    else:
        with pytest.raises(OSError, match=os.strerror(number)):
            force.force(7)
    assert calls == [7] * synced


def test_full_sync_is_python_s_even_where_the_compiled_code_could_be_linked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(force, "FULL_SYNC", F_FULLFSYNC)
    file_sync.sync_files.cache_clear()
    assert file_sync.sync_files() is sync_in_python
    file_sync.sync_files.cache_clear()


def test_one_lock_keeps_a_second_coordinator_out_where_it_has_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "_KINDS_ARE_APART", False)
    held = FolderLock(tmp_path)
    with pytest.raises(LogInUse):
        FolderLock(tmp_path)
    held.release()
    FolderLock(tmp_path).release()
