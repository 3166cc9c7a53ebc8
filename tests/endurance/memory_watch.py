"""Memory of running services over time, by program."""

import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path

from processes import family

#: Memory that only the end of a process gives back. Pages of files are none: the kernel drops them when it needs them.
_KINDS = ("Pss_Anon:", "Pss_Shmem:")
_KIBIBYTES_IN_MEBIBYTE = 1024
#: Program → MiB.
Look = dict[str, float]


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

    def growth(self) -> dict[str, tuple[float, float]]:
        """Medians of the second and of the last quarter of the longest life of each service, in MiB."""
        medians = {name: self._medians(name, 4) for name in self.looks}
        return {name: (_total(quarters[1]), _total(quarters[3])) for name, quarters in medians.items()}

    def courses(self, parts: int) -> dict[str, dict[str, list[float]]]:
        """Service → program → its medians in that many parts of the longest life, in MiB."""
        found = {}
        for name in self.looks:
            medians = self._medians(name, parts)
            found[name] = {program: [each.get(program, 0.0) for each in medians] for program in sorted(set().union(*medians))}
        return found

    def _medians(self, name: str, parts: int) -> list[Look]:
        life = max(self.looks[name].values(), key=len)
        bounds = [len(life) * part // parts for part in range(parts + 1)]
        return [_median(life[begin:end]) for begin, end in pairwise(bounds)]

    def _run(self) -> None:
        while not self._stopping.wait(self._every):
            for name, pid_of in self._pids.items():
                pid = pid_of()
                if pid is not None:
                    self.looks[name].setdefault(pid, []).append(_memory(pid))


def _total(look: Look) -> float:
    return sum(look.values())


def _median(looks: list[Look]) -> Look:
    """The look with the median total."""
    return sorted(looks, key=_total)[len(looks) // 2]


def _memory(pid: int) -> Look:
    """The memory of a process and its descendants."""
    found: Look = defaultdict(float)
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
