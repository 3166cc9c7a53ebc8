"""The gate: linters, types and contracts beside the preparation, the tests, and one retry of failed tests.

    python -m tools.gate [PYTEST ARGUMENTS]      by default -m "not slow and not network" -n 6 --dist loadfile

Tests that are slow or download something are those of `make test-slow`. All failures of a run are reported together.

A run with at most `MOST_RETRIED` failed tests runs each of them once more, in a process of its own, one after the other, with
`RETRY_PATIENCE` times the patience. A test that passes then is reported as FLAKY and does not decide; it is mended in the next
change, or listed in tests/quarantine.toml. Tests of `NEVER_RETRIED` are deterministic: a failure that does not recur is a defect
of them or of the product.

Exit code 0: green. 1: red. Kafka's own build has the same rule (maxTestRetries and maxTestRetryFailures).
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.type_cache import borrow, keep

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent

#: More failures than this have a common cause, which a retry would hide.
MOST_RETRIED = 10
RETRY_PATIENCE = 4

#: Paths of tests that depend on no clock, network or other process, or whose subject is the order of events.
NEVER_RETRIED = (
    "tests/unit/",
    "tests/property/",
    "tests/conformance/",
    "tests/repository/",
    "tests/crash/",
    "tests/pipeline/test_two_writers.py",
)

CHECKS = (
    ("ruff check", (str(BIN / "ruff"), "check", ".")),
    ("ruff format", (str(BIN / "ruff"), "format", "--check", ".")),
    ("mypy", (str(BIN / "mypy"),)),
    ("import contracts", (str(BIN / "lint-imports"),)),
)
#: For two cores: with six workers both are busy 98 % of the time, although tests wait for brokers, browsers and Spark.
WORKERS = 6
#: A test that hangs outside of Python does not end by the `timeout` of pyproject.toml. Its worker then ends by this one, which is
#: later, prints all stacks, and counts as a failure of the test.
HANG_SECONDS = 1_320
_HANGS = ("-o", f"faulthandler_timeout={HANG_SECONDS}", "-o", "faulthandler_exit_on_timeout=true")
EVERY_TEST = ("-m", "not slow and not network", "-n", str(WORKERS), "--dist", "loadfile", "--durations", "30", *_HANGS)

#: The first line has the ticks of all cores: user, nice, system, idle, iowait, irq, softirq, steal.
_CPU_TIMES = Path("/proc/stat")

_COLLECTION = "collect"
#: Pytest's exit code of a run whose tests were executed and some failed.
_TESTS_FAILED = 1


@dataclass(frozen=True)
class Failure:
    """A failed test, or a file that cannot be collected; `phase` and `reason` as in `tests/support/failure_report.py`."""

    test: str
    phase: str
    reason: str


@dataclass(frozen=True)
class Verdict:
    """The result of the tests, with the lines that explain it."""

    green: bool
    lines: tuple[str, ...]


def main(arguments: Sequence[str]) -> int:
    """Run everything, and print the verdict as the last lines."""
    begun, busy = time.monotonic(), _busy_seconds()
    preparation = subprocess.Popen(
        [sys.executable, str(ROOT / "tools" / "prepare.py")],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests" / "support")},
    )
    borrow(ROOT)
    failed = [name for name, command in CHECKS if not _passes(name, command)]
    keep(ROOT)
    if preparation.wait() != 0:
        failed.append("preparation")
    print(f"checks and preparation: {time.monotonic() - begun:.0f} s", flush=True)
    verdict = Verdict(False, ("tests: not run",)) if "preparation" in failed else run_tests(ROOT, arguments or EVERY_TEST)
    lines = [*verdict.lines, *(f"FAILED {name}: its output is above" for name in failed)]
    print("\n".join(lines))
    color = "green" if verdict.green and not failed else "red"
    print(f"gate: {color} after {time.monotonic() - begun:.0f} s, {_busy_seconds() - busy:.0f} s of CPU on this machine")
    return 0 if verdict.green and not failed else 1


def run_tests(root: Path, arguments: Sequence[str]) -> Verdict:
    """Run the tests of the project at `root` once, and repeat those that failed if the rule in the module docstring allows it."""
    code, failures = _pytest(root, arguments, {})
    if code not in (0, _TESTS_FAILED):
        return Verdict(False, (f"pytest ended with exit code {code}",))
    quarantined = quarantine(root)
    deciding = [failure for failure in failures if failure.test not in quarantined]
    lines = [f"QUARANTINED {each.test}: {each.reason}" for each in failures if each.test in quarantined]
    if code == _TESTS_FAILED and not failures:
        return Verdict(False, (*lines, "pytest failed without a failed test"))
    if refusal := _refusal(deciding):
        return Verdict(False, (*lines, *_red(deciding), refusal))
    repeated = {each: _pytest(root, (each.test,), {"GROUPLAKE_TEST_PATIENCE": str(RETRY_PATIENCE)})[0] for each in deciding}
    failed_again = [failure for failure, code in repeated.items() if code != 0]
    lines += [f"FLAKY {failure.test}: {failure.reason}" for failure in deciding if failure not in failed_again]
    return Verdict(not failed_again, (*lines, *_red(failed_again)))


def quarantine(root: Path) -> Mapping[str, Mapping[str, object]]:
    """The tests that run and report but do not decide, by id."""
    file = root / "tests" / "quarantine.toml"
    listed = tomllib.loads(file.read_text(encoding="utf-8")).get("test", []) if file.exists() else []
    return {each["id"]: each for each in listed}


def _refusal(failures: Sequence[Failure]) -> str | None:
    """The reason why these failures are not repeated."""
    if len(failures) > MOST_RETRIED:
        return f"{len(failures)} tests failed; with more than {MOST_RETRIED}, none is repeated"
    if any(failure.phase == _COLLECTION for failure in failures):
        return "files that cannot be collected are not repeated"
    deterministic = [failure.test for failure in failures if failure.test.startswith(NEVER_RETRIED)]
    return f"not repeated, because deterministic tests failed: {', '.join(deterministic)}" if deterministic else None


def _busy_seconds() -> float:
    """CPU seconds of this machine that were not idle; 0 without /proc.

    Those of child processes lack a third: nobody waits for a JVM or a browser that outlives its parent.
    """
    if not _CPU_TIMES.exists():
        return 0.0
    ticks = [int(field) for field in _CPU_TIMES.read_text(encoding="ascii").split("\n", 1)[0].split()[1:]]
    return (sum(ticks[:3]) + sum(ticks[5:7])) / os.sysconf("SC_CLK_TCK")


def _red(failures: Iterable[Failure]) -> list[str]:
    return [f"FAILED {failure.test}: {failure.reason}" for failure in failures]


def _passes(name: str, command: Sequence[str]) -> bool:
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    passed = done.returncode == 0
    # one write: the preparation prints at the same time
    print(f"== {name}: passed\n" if passed else f"== {name}: FAILED\n{done.stdout}", end="", flush=True)
    return passed


def _pytest(root: Path, arguments: Sequence[str], environment: Mapping[str, str]) -> tuple[int, list[Failure]]:
    """The exit code of a run, and its failures."""
    with tempfile.TemporaryDirectory(prefix="grouplake-gate-") as folder:
        report = Path(folder) / "failures.json"
        command = [sys.executable, "-m", "pytest", "--failures", str(report), *arguments]
        code = subprocess.run(command, cwd=root, env={**os.environ, **environment}, check=False).returncode
        failures = json.loads(report.read_text(encoding="utf-8")) if report.exists() else []
    return code, [Failure(**failure) for failure in failures]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
