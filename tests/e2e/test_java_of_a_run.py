"""A run with an unusable Java ends before Spark starts, with the words of `grouplake doctor`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.doctor import machine
from pipelines.doctor.finding import CheckResult

LOG = Path(__file__).parents[1] / "data" / "kafka-4.1.1.records.jsonl"
REMEDY = "install a Java runtime, version 17 or newer, or set JAVA_HOME to one"


def written_java(home: Path, script: str) -> Path:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return home


def run(tables: Path, java_home: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "import sys; from pipelines.cli import main; sys.exit(main())"]
    command += ["run", "--source", f"jsonl:{LOG}", "--tables", str(tables)]
    environment = {**os.environ, "JAVA_HOME": str(java_home)}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def examined(java_home: Path, monkeypatch: pytest.MonkeyPatch) -> CheckResult:
    """The finding of `grouplake doctor` about this Java."""
    monkeypatch.setenv("JAVA_HOME", str(java_home))
    (found,) = machine.java(None)  # type: ignore[arg-type]  # the check of Java does not look at its subject
    return found


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("echo 'openjdk version \"11.0.2\" 2019-01-15' >&2", "Java 11.0.2 ({program}) is too old for Spark"),
        ("exit 3", "Java cannot be started: Command '['{program}', '-version']' returned non-zero exit status 3."),
        (None, "JAVA_HOME is {home}, which has no bin/java"),
    ],
    ids=["Java 11", "broken Java", "wrong JAVA_HOME"],
)
def test_a_run_says_the_same_as_doctor(script: str | None, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "jdk"
    if script is not None:
        written_java(home, script)
    expected = problem.format(home=home, program=home / "bin" / "java")
    ended = run(tmp_path / "tables", home)
    assert (ended.returncode, ended.stderr.splitlines()) == (1, [f"grouplake: {expected}: {REMEDY}"])
    found = examined(home, monkeypatch)
    assert (found.mark, found.found, found.remedy) == ("problem", expected, REMEDY)
