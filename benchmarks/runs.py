"""`grouplake run` as a new process: its duration, progress lines and memory, and a check of its tables."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from benchmarks.logs import GeneratedLog
from benchmarks.processes import MemorySampler, Peak

_COMMAND = Path(sys.executable).parent / "grouplake"
_KEY = ["group_id", "topic", "partition"]
_LIMIT_SECONDS = 600


@dataclass
class Run:
    """A finished run: seconds from the start of the process to each progress line and to its end, batches, peak memory."""

    seconds: float
    lines: list[tuple[float, str]]
    batches: list[dict[str, Any]]
    peaks: Mapping[int, Peak] = field(default_factory=dict)
    pid: int = 0

    def seconds_to(self, start: str) -> float:
        """Seconds until the first line that begins with `start`."""
        return next(at for at, line in self.lines if line.startswith(start))

    def phase_seconds(self) -> dict[str, float]:
        """Seconds per phase of all batches, longest first."""
        sums: dict[str, float] = {}
        for batch in self.batches:
            for name, milliseconds in batch["phase_ms"]:
                sums[name] = sums.get(name, 0.0) + milliseconds / 1000
        return dict(sorted(sums.items(), key=lambda item: -item[1]))


def grouplake_run(source: str, tables: Path, arguments: Sequence[str] = (), *, sample_memory: bool = False) -> Run:
    """One `grouplake run --trigger available-now` into a new folder of tables."""
    # as in a user's shell, Python may write compiled modules
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [str(_COMMAND), "run", "--source", source, "--tables", str(tables), "--trigger", "available-now", *arguments]
    started = time.monotonic()
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        sampler = MemorySampler(process.pid)
        if sample_memory:
            with sampler:
                lines = _listen(process, started)
        else:
            lines = _listen(process, started)
    seconds = time.monotonic() - started
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with exit code {process.returncode}: {lines[-1][1] if lines else ''}")
    batches = DeltaTable(tables / "batches").to_pyarrow_table().sort_by("batch_id").to_pylist()
    return Run(seconds, lines, batches, sampler.peaks, process.pid)


def _listen(process: subprocess.Popen[str], started: float) -> list[tuple[float, str]]:
    assert process.stderr is not None
    lines = [(time.monotonic() - started, line.rstrip()) for line in process.stderr]
    process.wait(_LIMIT_SECONDS)
    return lines


def expect_tables(log: GeneratedLog, tables: Path, batches: Sequence[Mapping[str, Any]]) -> None:
    """Raise AssertionError unless the tables match the log."""
    read = sum(batch["records_read"] for batch in batches)
    assert read == log.shape.records, f"{read} records read, {log.shape.records} in the log"
    found = DeltaTable(tables / "offsets").to_pyarrow_table(columns=[*_KEY, "committed_offset"])
    assert found.num_rows == log.live_keys, f"{found.num_rows} offsets in the tables, {log.live_keys} in the log"
    expected = log.expected_offsets()
    kept = found.filter(_is_in(found, {group for group, _, _ in expected}))
    actual = {tuple(row[name] for name in _KEY): row["committed_offset"] for row in kept.to_pylist()}
    assert expected.items() <= actual.items()


def _is_in(table: pa.Table, groups: set[str]) -> pa.ChunkedArray:
    return pc.is_in(table["group_id"], pa.array(sorted(groups)))
