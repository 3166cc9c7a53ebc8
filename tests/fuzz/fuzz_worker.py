"""One process of a fuzz run: generates inputs by number, checks them, and reports its findings.

An input is named by (target, seed, number): numbers are drawn in chunks, each from a generator of its own, so that any of them
can be generated again.
"""

import json
import logging
import resource
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

import answer_targets
import log_targets
import record_targets
import topic_targets
import wire_targets
from fuzz_target import Target

TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        *record_targets.TARGETS,
        *log_targets.TARGETS,
        *topic_targets.TARGETS,
        *answer_targets.TARGETS,
        *wire_targets.TARGETS,
    )
}

#: Memory that a process may use in addition to what it has once everything is loaded and compiled.
ROOM_BYTES = 1 << 30
#: A chunk takes milliseconds. Longer than this is a finding.
CHUNK_SECONDS = 60
#: Limit of findings reported for one stretch of work; the first ones suffice.
MOST_FINDINGS = 5


@dataclass(frozen=True)
class Finding:
    """An error and its input; `number` is the first of its chunk when only the whole chunk fails.

    `checked`: found with bounds checks compiled in.
    """

    target: str
    seed: int
    number: int
    error: str
    report: str
    given: str
    checked: bool = False


class Hang(Exception):
    """An input that takes too long."""


def inputs(target: Target, seed: int, chunk: int) -> list[Any]:
    """All inputs of one chunk."""
    rng = Random(f"{target.name} {seed} {chunk}")
    return [target.make(rng) for _ in range(target.chunk)]


def check_chunk(target: Target, seed: int, chunk: int) -> Iterator[Finding]:
    """Check a chunk as a whole, and its inputs one by one if that fails."""
    given = inputs(target, seed, chunk)
    whole = _failure(target, given)
    if whole is None:
        return
    first = chunk * target.chunk
    alone = [(number, each, failure) for number, each in enumerate(given, first) if (failure := _failure(target, [each]))]
    for number, each, failure in alone or [(first, given, whole)]:
        yield Finding(target.name, seed, number, *failure, repr(each))


def _failure(target: Target, given: Sequence[Any]) -> tuple[str, str] | None:
    """Name of the error and its traceback."""
    try:
        target.check(given)
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} in {Path(where.filename).name}:{where.lineno}", traceback.format_exc()
    return None


def prepare(target: Target) -> None:
    """Generate the seeds and compile the compiled code, which needs much memory."""
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    for chunk in range(-8, 0):
        _failure(target, inputs(target, 0, chunk))


def limit_memory() -> None:
    """From now on, make allocations beyond `ROOM_BYTES` fail."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + ROOM_BYTES, resource.RLIM_INFINITY))


def quiet() -> None:
    """Disable logs and warnings, and turn chunks that take too long into a `Hang`."""

    def too_long(_number: int, _frame: object) -> None:
        raise Hang(f"more than {CHUNK_SECONDS} s")

    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, too_long)


def serve(position: Path) -> None:
    """Process lines of JSON from standard input: target, seed, first chunk, chunks. The file `position` has the current chunk."""
    quiet()
    prepared: set[str] = set()
    with position.open("r+b", buffering=0) as at:
        for line in sys.stdin:
            job = json.loads(line)
            target = TARGETS[job["target"]]
            if target.name not in prepared:
                prepare(target)
                prepared.add(target.name)
            limit_memory()
            found: list[Finding] = []
            for chunk in range(job["first"], job["first"] + job["chunks"]):
                at.seek(0)
                at.write(b"%20d" % chunk)
                signal.alarm(CHUNK_SECONDS)
                if len(found) < MOST_FINDINGS:
                    found += check_chunk(target, job["seed"], chunk)
            signal.alarm(0)
            print(json.dumps([asdict(each) for each in found[:MOST_FINDINGS]]), flush=True)


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
