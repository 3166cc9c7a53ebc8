"""What the check of a cluster's executors reports."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pipelines.job.spark import executor_probe
from pipelines.job.spark.executor_findings import DriverEnvironment, ExecutorReport, first_problem, parse_report
from pipelines.job.spark.executor_log import ExecutorLog
from pipelines.job.spark.executors import choose_python, expect_master, is_cluster
from pipelines.runtime.errors import UsageError

DRIVER = DriverEnvironment("3.11.7", "grouplake 0.1.0", "4.2.0")
GOOD = ExecutorReport("a", "3.11.2", "/env/bin/python", "grouplake 0.1.0", "4.2.0")


def probed(argument: dict[str, bool], *options: str) -> ExecutorReport:
    program = Path(executor_probe.__file__).read_text(encoding="utf-8")
    command = [sys.executable, *options, "-c", program, json.dumps(argument)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    report = parse_report(ended.stdout.splitlines())
    assert report is not None
    return report


def test_this_environment_has_no_problem(tmp_path: Path) -> None:
    assert first_problem([probed({str(tmp_path): True})], DriverEnvironment.current()) is None


def test_an_environment_without_our_package_is_reported_with_the_remedy() -> None:
    # -S: without site-packages, as a Python of the operating system
    problem = first_problem([probed({}, "-S", "-I")], DriverEnvironment.current())
    assert problem is not None
    assert "has no grouplake (ModuleNotFoundError: No module named 'pipelines'): bring this environment to every node" in problem


def test_missing_files_are_reported(tmp_path: Path) -> None:
    report = probed({str(tmp_path / "tables"): True, str(tmp_path): False})
    assert report.files == {str(tmp_path / "tables"): "missing"}
    problem = first_problem([report], DriverEnvironment.current())
    assert problem is not None
    assert f"{tmp_path}/tables is missing there: the executors need it at the same path" in problem


@pytest.mark.parametrize(
    ("report", "problem"),
    [
        (
            replace(GOOD, python="3.12.1"),
            "Python 3.12.1), but the driver has Python 3.11.7: use the same minor version",
        ),
        (replace(GOOD, grouplake="grouplake 0.2.0"), "has grouplake 0.2.0, the driver grouplake 0.1.0: use the same version"),
        (replace(GOOD, error="ImportError: libz.so.1"), "cannot read logs (ImportError: libz.so.1)"),
        (replace(GOOD, pyspark="4.1.0"), "PySpark 4.1.0, but the driver has 4.2.0: use the same version"),
        (
            replace(GOOD, python="", error="./env/bin/python does not exist"),
            "executor on a: ./env/bin/python does not exist: bring",
        ),
    ],
)
def test_differences_from_the_driver(report: ExecutorReport, problem: str) -> None:
    found = first_problem([GOOD, report], DRIVER)
    assert found is not None
    assert problem in found
    assert found.endswith("; 1 of 2 executors have problems")


def test_the_last_digit_of_python_may_differ() -> None:
    assert first_problem([GOOD], DRIVER) is None


def test_other_output_of_the_python_is_ignored() -> None:
    assert parse_report(["banner", 'grouplake-executor: {"host": "a"}', ""]) == ExecutorReport("a")
    assert parse_report(["banner"]) is None


@pytest.mark.parametrize(
    ("master", "expected"),
    [("local", False), ("local[*]", False), ("local-cluster[2,1,512]", True), ("spark://a:7077", True), ("yarn", True)],
)
def test_masters_with_executors(master: str, expected: bool) -> None:
    assert is_cluster(master) is expected


def test_a_master_that_does_not_answer_is_reported() -> None:
    with pytest.raises(UsageError, match=r"no Spark master answers at spark://127.0.0.1:1,b \(.*\): check \[spark\] master"):
        expect_master("spark://127.0.0.1:1,b")


def test_a_relative_python_must_exist_for_the_driver_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", "./environment/bin/python")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"PYSPARK_PYTHON=\./environment/bin/python does not exist .*ln -s \S+ environment$"):
        choose_python()


def test_executors_of_a_standalone_cluster_are_counted_from_the_log() -> None:
    log = ExecutorLog()
    client = "INFO StandaloneAppClient$ClientEndpoint: Executor"
    for line in (
        f"10:00:00 {client} added: app-1/0 on worker-1-127.0.0.1-4000 (127.0.0.1:4000) with 1 core(s)",
        f"10:00:00 {client} added: app-1/1 on worker-2-127.0.0.1-4001 (127.0.0.1:4001) with 1 core(s)",
        f"10:00:00 {client} updated: app-1/0 is now RUNNING",
    ):
        log.note(line)
    assert (log.expected, log.is_failing) == (2, False)
    log.note(f"10:00:01 {client} updated: app-1/0 is now EXITED (Command exited with code 1)")
    log.note(f"10:00:01 {client} updated: app-1/1 is now EXITED (Command exited with code 1)")
    assert (log.expected, log.is_failing, log.last_failure) == (0, True, "Command exited with code 1")
