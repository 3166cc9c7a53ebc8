"""Output of a benchmark: machine, versions, and Markdown tables."""

import os
import platform
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path

_PACKAGES = ("pyspark", "delta-spark", "deltalake", "pyarrow", "numpy", "numba")


def print_machine(*packages: str) -> None:
    """Print the machine and versions, those of `packages` included."""
    names = (*_PACKAGES, *packages)
    print(f"Machine: {_processor()}, {os.cpu_count()} cores, {_memory_gib():.0f} GiB, Linux {platform.release().split('-')[0]}, ")
    print(f"Python {platform.python_version()}, {', '.join(f'{name} {version(name)}' for name in names)}\n")


def print_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a Markdown table."""
    print(f"| {' | '.join(head)} |")
    print("|---" * len(head) + "|")
    for row in rows:
        print(f"| {' | '.join(str(cell) for cell in row)} |")
    print(flush=True)


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _memory_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
