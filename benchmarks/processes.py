"""CPU time and memory of other processes, from /proc."""

import os
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_SAMPLE_SECONDS = 0.02


def cpu_seconds(pid: int, *, waited_for: bool = False) -> float:
    """User and system time of a process so far, over all its threads; optionally with that of children it has waited for."""
    # after the program name, which can contain any character
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11 : 15 if waited_for else 13])) / _TICKS


def resident_mib(pid: int) -> float:
    """Resident memory of a process in MiB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def family_cpu_seconds(root: int) -> float:
    """CPU time so far of a process and its running descendants. Of ended ones the time counts if their parent waited for them."""
    return sum(family_cpu(root).values())


def family_cpu(root: int) -> dict[int, float]:
    """Process id → CPU time so far, of a process and its running descendants, as in `family_cpu_seconds`."""
    found: dict[int, float] = {}
    for pid in _family(root):
        with suppress(OSError):
            found[pid] = cpu_seconds(pid, waited_for=True)
    return found


@dataclass
class Peak:
    """Peak memory of a process in MiB, and its command."""

    pid: int
    parent: int
    command: str
    mib: float


class MemorySampler:
    """Samples the peak memory (the kernel's high-water mark) of a process and its descendants until it is closed."""

    def __init__(self, root: int) -> None:
        self._root = root
        self.peaks: dict[int, Peak] = {}
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self) -> "MemorySampler":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _follow(self) -> None:
        while not self._done.wait(_SAMPLE_SECONDS):
            for pid in _family(self._root):
                self._note(pid)

    def _note(self, pid: int) -> None:
        try:
            status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
            command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (OSError, ValueError):
            return
        if "VmHWM" in status and command.strip():
            self.peaks[pid] = Peak(pid, int(status["PPid"]), command, int(status["VmHWM"].split()[0]) / 1024)


def _family(root: int) -> set[int]:
    """The process and its running descendants."""
    parents, family = _parents(), {root}
    # process ids begin again at a low number, so a child may have a lower one than its parent
    while children := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= children
    return family


def _parents() -> dict[int, int]:
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                found[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    return found
