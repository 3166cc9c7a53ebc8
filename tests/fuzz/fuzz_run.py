"""`make fuzz`: millions of mutated inputs over every parser, on two processes; exit code 1 if there are findings.

    python tests/fuzz/fuzz_run.py [--inputs N] [--seconds S] [--seed N] [--target NAME]…
    python tests/fuzz/fuzz_run.py --again TARGET:SEED:NUMBER        one input once more, with the whole traceback

A tenth of the inputs of compiled code is run with bounds checks compiled in, where an index outside of an array is an IndexError.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import fuzz_worker
from fuzz_worker import TARGETS, Finding

ROOT = Path(__file__).resolve().parents[2]
PROCESSES = 2
#: One in this many inputs of compiled code is run with bounds checks.
CHECKED_SHARE = 10
#: Chunks that a process is given in one request: work for seconds, with any target.
STRETCH = 128
_TELL_EVERY_SECONDS = 15


@dataclass(frozen=True)
class Stretch:
    """Consecutive chunks of one target."""

    target: str
    first: int
    chunks: int

    @property
    def inputs(self) -> int:
        """The number of inputs."""
        return self.chunks * TARGETS[self.target].chunk


def plan(inputs: int, names: list[str]) -> tuple[list[Stretch], list[Stretch]]:
    """The stretches without and with bounds checks. Targets alternate, so that every prefix has its share of each."""
    shares = sum(TARGETS[name].share for name in names)
    plain: list[tuple[float, Stretch]] = []
    checked: list[tuple[float, Stretch]] = []
    for name in names:
        chunks = -(-inputs * TARGETS[name].share // (shares * TARGETS[name].chunk))
        with_checks = chunks // CHECKED_SHARE if TARGETS[name].compiled else 0
        for wanted, first, into in ((chunks - with_checks, 0, plain), (with_checks, chunks - with_checks, checked)):
            into += ((stretch.first / chunks, stretch) for stretch in _stretches(name, first, wanted))
    return _alternating(plain), _alternating(checked)


def _alternating(timed: list[tuple[float, Stretch]]) -> list[Stretch]:
    return [stretch for _, stretch in sorted(timed, key=lambda pair: pair[0])]


def _stretches(name: str, first: int, chunks: int) -> Iterator[Stretch]:
    for start in range(first, first + chunks, STRETCH):
        yield Stretch(name, start, min(STRETCH, first + chunks - start))


class Process:
    """One worker. The file `position` has the chunk it was working on when it died."""

    def __init__(self, folder: Path, number: int, checked: bool) -> None:
        self.checked = checked
        self._position = folder / f"position-{number}-{checked}"
        self._position.write_bytes(b" " * 20)
        environment = dict(os.environ, PYTHONPATH=str(ROOT))
        if checked:
            environment |= {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(folder / "checked")}
        command = [sys.executable, fuzz_worker.__file__, str(self._position)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)

    def work(self, stretch: Stretch, seed: int) -> tuple[list[Finding], bool]:
        """Findings, and whether the process is still running."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        job = {"target": stretch.target, "seed": seed, "first": stretch.first, "chunks": stretch.chunks}
        try:
            self._process.stdin.write(json.dumps(job) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if line:
            return [Finding(**each) for each in json.loads(line)], True
        code, chunk = self._process.wait(), self._position.read_bytes().strip()
        number = int(chunk or stretch.first) * TARGETS[stretch.target].chunk
        text = f"the process died with code {code}; the input is this one or one of its chunk"
        return [Finding(stretch.target, seed, number, f"death with code {code}", text, "")], False

    def end(self) -> None:
        """Close the process after its last stretch."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


@dataclass
class Run:
    """Work and findings of a run, shared by the threads that supervise one process each."""

    seed: int
    seconds: float
    plain: list[Stretch]
    checked: list[Stretch]
    started: float = field(default_factory=time.monotonic)
    done: Counter[str] = field(default_factory=Counter)
    done_checked: Counter[str] = field(default_factory=Counter)
    took: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    findings: list[Finding] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def look_after(self, folder: Path, number: int) -> None:
        """Supervise one process at a time until the work is done; the first one begins with the checked inputs."""
        process: Process | None = None
        while taken := self._next(prefer_checked=number == 0):
            stretch, checked = taken
            if process is None or process.checked != checked:
                if process is not None:
                    process.end()
                process = Process(folder, number, checked)
            began = time.monotonic()
            found, alive = process.work(stretch, self.seed)
            if not alive:
                process = None
            with self.lock:
                self.findings += [replace(finding, checked=checked) for finding in found]
                self.done[stretch.target] += stretch.inputs
                self.done_checked[stretch.target] += stretch.inputs * checked
                self.took[stretch.target] += time.monotonic() - began
        if process is not None:
            process.end()

    def _next(self, prefer_checked: bool) -> tuple[Stretch, bool] | None:
        with self.lock:
            if self.seconds and time.monotonic() - self.started > self.seconds:
                return None
            for checked in (prefer_checked, not prefer_checked):
                todo = self.checked if checked else self.plain
                if todo:
                    return todo.pop(0), checked
            return None

    def summary(self) -> Iterator[str]:
        """Counts by target."""
        for name, count in self.done.items():
            rate = count / max(self.took[name], 0.01)
            yield f"{name:18} {count:>12,} inputs, {self.done_checked[name]:>9,} with bounds checks, {rate:>8,.0f} a second"
        seconds = time.monotonic() - self.started
        yield f"{sum(self.done.values()):,} inputs in {seconds:.0f} s, {len(self.findings)} findings, seed {self.seed}"


def fuzz(inputs: int, seconds: float, seed: int, names: list[str]) -> Run:
    """Run until all inputs or all seconds are used up."""
    plain, checked = plan(inputs, names)
    run = Run(seed, seconds, plain, checked)
    with tempfile.TemporaryDirectory() as folder:
        threads = [threading.Thread(target=run.look_after, args=(Path(folder), number)) for number in range(PROCESSES)]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(_TELL_EVERY_SECONDS)  # runs out: progress is printed
                print(f"{sum(run.done.values()):,} inputs, {len(run.findings)} findings", file=sys.stderr, flush=True)
    return run


def report(findings: list[Finding], folder: Path) -> None:
    """Report each kind of finding once: a file with the input, and the command that reproduces it."""
    folder.mkdir(parents=True, exist_ok=True)
    kinds = {(finding.target, finding.error): finding for finding in reversed(findings)}
    for finding in kinds.values():
        path = folder / f"{finding.target}-{finding.seed}-{finding.number}.txt"
        path.write_text(f"{finding.report}\n{finding.given}\n")
        print(f"FINDING {finding.error}: {path}")
        checks = "NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(mktemp -d) " if finding.checked else ""
        print(f"  again: {checks}{sys.executable} {__file__} --again {finding.target}:{finding.seed}:{finding.number}")


def again(name: str) -> int:
    """Check one input, and raise its error."""
    target_name, seed, number = name.rsplit(":", 2)
    target = TARGETS[target_name]
    chunk, position = divmod(int(number), target.chunk)
    given = fuzz_worker.inputs(target, int(seed), chunk)[position]
    print(repr(given))
    target.check([given])
    print("nothing wrong with it")
    return 0


def main() -> int:
    """Arguments → exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=10_000_000)
    parser.add_argument("--seconds", type=float, default=0, help="end after so many, 0: when all inputs are done")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--target", action="append", choices=list(TARGETS))
    parser.add_argument("--findings", type=Path, default=ROOT / ".fuzz", help="folder for inputs that are findings")
    parser.add_argument("--again", metavar="TARGET:SEED:NUMBER")
    options = parser.parse_args()
    if options.again:
        return again(options.again)
    run = fuzz(options.inputs, options.seconds, options.seed, options.target or list(TARGETS))
    report(run.findings, options.findings) if run.findings else None
    print("\n".join(run.summary()))
    return 1 if run.findings else 0


if __name__ == "__main__":
    sys.exit(main())
