"""Leaks that the garbage collector finds: those of libraries and of failed tests are reported at the end, others fail a test."""

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_CONFTEST = """
from pathlib import Path
from library_leaks import LibraryLeaks

def pytest_configure(config):
    config.pluginmanager.register(LibraryLeaks(Path(__file__).parents[1]))
"""
_SETTINGS = """
[pytest]
testpaths = tests
filterwarnings = error
pythonpath = {support} . site-packages
"""
#: A module with objects that are part of a cycle, so that only the garbage collector finds what they leave open.
_LEAKING = """
import asyncio, socket

class Cycle:
    def __init__(self, held):
        self.held, self.itself = held, self

class Finalized:
    def __del__(self):
        raise ValueError("no longer there")

class Forgetful:
    def __del__(self):
        import warnings
        warnings.warn("unclosed client", ResourceWarning, source=self)

def leak_socket():
    Cycle(socket.socket())

def leak_connection(port):
    Cycle(socket.create_connection(("127.0.0.1", port)))

def leak_exception():
    Cycle(Finalized())

def leak_warning():
    Cycle(Forgetful())

def leak_transport(port):
    async def connect():
        Cycle((await asyncio.get_running_loop().create_connection(asyncio.Protocol, "127.0.0.1", port))[0])
    asyncio.run(connect())
"""
#: The failed test keeps its process and file in a traceback until the next tests run.
_FAILING = """
import gc, subprocess

class Cycle:
    def __init__(self, held):
        self.held, self.itself = held, self

def test_fails():
    process = Cycle(subprocess.Popen(["sleep", "10"], stdout=subprocess.PIPE, text=True))
    assert process.held.poll() == 0

def test_passes():
    gc.collect()
"""
_TESTS = """
import gc, importlib, socket
import pytest

@pytest.mark.parametrize("call", {calls})
@pytest.mark.parametrize("module", ["library", "ours"])
def test(module, call):
    with socket.create_server(("127.0.0.1", 0)) as server:
        eval(call, {{"port": server.getsockname()[1]}}, vars(importlib.import_module(module)))
    gc.collect()
"""
_CALLS = ("leak_socket()", "leak_connection(port)", "leak_exception()", "leak_warning()", "leak_transport(port)")
_WARNING = "PytestUnraisableExceptionWarning"


def ran(folder: Path, calls: Sequence[str], *arguments: str) -> str:
    """The output of a run whose tests make these calls of a library and of a module of our own."""
    for name in ("tests", "site-packages"):
        (folder / name).mkdir(exist_ok=True)
    (folder / "tests" / "conftest.py").write_text(_CONFTEST)
    (folder / "tests" / "test_leak.py").write_text(_TESTS.format(calls=calls))
    (folder / "site-packages" / "library.py").write_text(_LEAKING)
    (folder / "ours.py").write_text(_LEAKING)
    (folder / "pytest.ini").write_text(_SETTINGS.format(support=ROOT / "tests" / "support"))
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", "--tb=line", *arguments]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "COLUMNS": "200"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False).stdout


@pytest.mark.parametrize("workers", [(), ("-p", "xdist.plugin", "-n", "1")], ids=["one process", "workers"])
def test_leaks_of_libraries_are_reported_and_those_of_our_code_fail_a_test(tmp_path: Path, workers: Sequence[str]) -> None:
    output = ran(tmp_path, _CALLS, *workers)
    passed = {call for call in _CALLS if f"PASSED tests/test_leak.py::test[library-{call}]" in output}
    failed = {call for call in _CALLS if f"FAILED tests/test_leak.py::test[ours-{call}]" in output}
    assert (passed, failed) == (set(_CALLS), set(_CALLS)), output
    assert output.count(f"pytest.{_WARNING}") >= len(_CALLS)
    reported = [line for line in output.partition("leaks of libraries")[2].splitlines() if line.startswith("library.py:")]
    assert {re.sub(r".*first in tests/test_leak.py::test\[library-(.*)] .*", r"\1", line) for line in reported} == set(_CALLS)


def test_a_run_without_leaks_prints_nothing(tmp_path: Path) -> None:
    output = ran(tmp_path, ["Cycle(port)"])
    assert "2 passed" in output
    assert "leaks of libraries" not in output


def test_what_a_failed_test_leaves_fails_no_other_test(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_failing.py").write_text(_FAILING)
    output = ran(tmp_path, ["Cycle(port)"])
    assert "FAILED tests/test_failing.py::test_fails" in output
    assert "1 failed, 3 passed" in output
    assert "left by tests/test_failing.py::test_fails, which failed, or by tests after it: ResourceWarning" in output
