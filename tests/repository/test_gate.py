"""The gate's verdict on small projects of its own: planted defects, planted flakes, and the quarantine."""

import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tools.gate import MOST_RETRIED, NEVER_RETRIED, quarantine, run_tests

ROOT = Path(__file__).parents[2]
_CONFTEST = """
from pathlib import Path
from failure_report import FailureReport

def pytest_addoption(parser):
    parser.addoption("--failures", type=Path)

def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(FailureReport(config.getoption("--failures")))
"""
_DEFECT = "def test_defect(): assert 1 == 2, 'the sum is wrong'\n"
#: Fails in the first process that runs it.
_FLAKE = """
from pathlib import Path

def test_flake{number}():
    marker = Path(__file__).with_name("ran-{number}")
    first = not marker.exists()
    marker.touch()
    assert not first, "the broker was slow"
"""
#: As a call of a library in C that does not return: no signal ends it.
_HANG = """
import signal, time

def test_hang():
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    time.sleep(1_000_000)
"""
_SOUND = "def test_sound(): pass\n"
_WORKERS = ("-p", "xdist.plugin", "-n", "2")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    folder = tmp_path / "project"
    (folder / "tests" / "broker").mkdir(parents=True)
    (folder / "tests" / "unit").mkdir()
    (folder / "tests" / "conftest.py").write_text(_CONFTEST)
    (folder / "pytest.ini").write_text(f"[pytest]\ntestpaths = tests\npythonpath = {ROOT / 'tests' / 'support'}\n")
    (folder / "tests" / "broker" / "test_sound.py").write_text(_SOUND)
    return folder


def add(project: Path, name: str, text: str) -> None:
    (project / "tests" / name).write_text(text)


def test_a_run_without_failures_is_green(project: Path) -> None:
    verdict = run_tests(project, _WORKERS)
    assert verdict.green
    assert verdict.lines == ()


def test_a_defect_is_red_in_spite_of_the_retry(project: Path) -> None:
    add(project, "broker/test_defect.py", _DEFECT)
    verdict = run_tests(project, ())
    assert not verdict.green
    assert verdict.lines == ("FAILED tests/broker/test_defect.py::test_defect: AssertionError: the sum is wrong assert 1 == 2",)


def test_a_flake_is_green_and_named(project: Path) -> None:
    add(project, "broker/test_flake.py", _FLAKE.format(number=1))
    verdict = run_tests(project, _WORKERS)
    assert verdict.green
    (line,) = verdict.lines
    assert line.startswith("FLAKY tests/broker/test_flake.py::test_flake1: AssertionError: the broker was slow")


def test_more_flakes_than_the_limit_are_red(project: Path) -> None:
    add(project, "broker/test_flake.py", "\n".join(_FLAKE.format(number=each) for each in range(MOST_RETRIED + 1)))
    verdict = run_tests(project, ())
    assert not verdict.green
    assert verdict.lines[-1] == "11 tests failed; with more than 10, none is repeated"
    assert len([line for line in verdict.lines if line.startswith("FAILED ")]) == MOST_RETRIED + 1


def test_a_flake_of_a_deterministic_test_is_red(project: Path) -> None:
    add(project, "unit/test_flake.py", _FLAKE.format(number=1))
    verdict = run_tests(project, ())
    assert not verdict.green
    assert verdict.lines[-1] == "not repeated, because deterministic tests failed: tests/unit/test_flake.py::test_flake1"


def test_a_file_that_cannot_be_collected_is_red(project: Path) -> None:
    add(project, "broker/test_broken.py", "import no_such_module\n")
    assert not run_tests(project, _WORKERS).green
    assert not run_tests(project, ()).green


def test_a_test_that_hangs_outside_of_python_is_red_and_the_others_run(project: Path) -> None:
    add(project, "unit/test_hang.py", _HANG)
    verdict = run_tests(project, (*_WORKERS, "-o", "faulthandler_timeout=3", "-o", "faulthandler_exit_on_timeout=true"))
    assert not verdict.green
    (line, refusal) = verdict.lines
    assert line.startswith("FAILED tests/unit/test_hang.py::test_hang: worker ")
    assert "crashed while running 'tests/unit/test_hang.py::test_hang'" in line
    assert refusal.startswith("not repeated")


def test_a_run_without_tests_is_red(project: Path) -> None:
    verdict = run_tests(project, ("-k", "no_such_test"))
    assert not verdict.green
    assert verdict.lines == ("pytest ended with exit code 5",)


def test_a_quarantined_test_is_reported_and_does_not_decide(project: Path) -> None:
    test = "tests/broker/test_defect.py::test_defect"
    add(project, "broker/test_defect.py", _DEFECT)
    add(project, "quarantine.toml", f'[[test]]\nid = "{test}"\nsince = 2026-11-27\nreason = "x"\n')
    verdict = run_tests(project, ())
    assert verdict.green
    assert verdict.lines == (f"QUARANTINED {test}: AssertionError: the sum is wrong assert 1 == 2",)


def test_the_quarantine_is_small_and_young() -> None:
    listed = tomllib.loads((ROOT / "tests" / "quarantine.toml").read_text(encoding="utf-8")).get("test", [])
    assert len(listed) <= 10
    for each in listed:
        assert set(each) == {"id", "since", "reason"}
        file, _, name = each["id"].partition("::")
        assert f"def {name.partition('[')[0].rpartition('::')[2]}(" in (ROOT / file).read_text(encoding="utf-8"), each["id"]
        assert datetime.now(UTC).date() - each["since"] <= timedelta(days=14), f"{each['id']}: mend it, or remove it"
    assert set(quarantine(ROOT)) == {each["id"] for each in listed}


def test_paths_that_are_never_retried_exist() -> None:
    assert [path for path in NEVER_RETRIED if not (ROOT / path).exists()] == []
