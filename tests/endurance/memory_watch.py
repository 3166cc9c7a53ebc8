"""Memory of running services over time, by program."""

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from processes import family

#: Memory that only the end of a process gives back. Pages of files are none: the kernel drops them when it needs them.
_KINDS = ("Pss_Anon:", "Pss_Shmem:")
_KIBIBYTES_IN_MEBIBYTE = 1024
#: Program → MiB.
Memory = dict[str, float]


@dataclass(frozen=True, slots=True)
class Look:
    """The memory of a service at a time, in seconds since 1970."""

    at: float
    memory: Memory


class MemoryWatch:
    """Memory of services in MiB, a look every `every` seconds; of a process with the processes that it started.

    A page that several processes share counts once among them (`Pss` in `smaps_rollup`).
    """

    def __init__(self, pids: Mapping[str, Callable[[], int | None]], every: float) -> None:
        self._pids = pids
        #: Service → process id → looks.
        self.looks: dict[str, dict[int, list[Look]]] = {name: {} for name in pids}
        self._every = every
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="memory")

    def __enter__(self) -> "MemoryWatch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def growth(self, idle: Collection[tuple[float, float]]) -> dict[str, tuple[float, float]]:
        """Medians of the second and of the last quarter of the longest life of each service, in MiB.

        Looks within the times `idle` do not count: Python workers of Spark that have nothing to do end.
        """
        found = {}
        for name in self.looks:
            busy = [look for look in self._life(name) if not any(start <= look.at < end for start, end in idle)]
            quarters = _medians(busy, 4)
            found[name] = _total(quarters[1]), _total(quarters[3])
        return found

    def courses(self, parts: int) -> dict[str, dict[str, list[float]]]:
        """Service → program → its medians in that many parts of the longest life, in MiB."""
        found = {}
        for name in self.looks:
            medians = _medians(self._life(name), parts)
            found[name] = {program: [each.get(program, 0.0) for each in medians] for program in sorted(set().union(*medians))}
        return found

    def _life(self, name: str) -> list[Look]:
        return max(self.looks[name].values(), key=len)

    def _run(self) -> None:
        while not self._stopping.wait(self._every):
            for name, pid_of in self._pids.items():
                pid = pid_of()
                if pid is not None:
                    self.looks[name].setdefault(pid, []).append(Look(time.time(), _memory(pid)))


def _medians(looks: list[Look], parts: int) -> list[Memory]:
    bounds = [len(looks) * part // parts for part in range(parts + 1)]
    return [_median([look.memory for look in looks[begin:end]]) for begin, end in pairwise(bounds)]


def _total(memory: Memory) -> float:
    return sum(memory.values())


def _median(memories: list[Memory]) -> Memory:
    """The memory with the median total."""
    return sorted(memories, key=_total)[len(memories) // 2]


def _memory(pid: int) -> Memory:
    """The memory of a process and its descendants."""
    found: Memory = defaultdict(float)
    for each in family(pid):
        folder = Path(f"/proc/{each}")
        try:
            program = (folder / "comm").read_text().strip()
            lines = (folder / "smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        kibibytes = sum(int(line.split()[1]) for line in lines if line.startswith(_KINDS))
        found[program] += kibibytes / _KIBIBYTES_IN_MEBIBYTE
    return found
