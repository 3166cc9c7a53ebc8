"""Reports of panics become notes of errors; what else is printed meanwhile is printed once the write has ended."""

import os
import subprocess
import sys
import threading

import pytest

from pipelines.tables import panic_reports
from pipelines.tables.panic_reports import noted_panics

#: As Rust prints them.
REPORT = """
thread 'tokio-rt-worker' (7017) panicked at object_store-0.13.2/src/buffered.rs:369:41:
Already shut down
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace
"""
WITH_BACKTRACE = """
thread 'main' panicked at src/main.rs:2:5:
explicit panic
stack backtrace:
   0: std::panicking::begin_panic
             at /rustc/library/std/src/panicking.rs:616:12
   1: core::ops::function::FnOnce::call_once
note: Some details are omitted, run with `RUST_BACKTRACE=full` for a verbose backtrace.
"""


@pytest.fixture(autouse=True)
def almost_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panic_reports, "_ALMOST_FULL_BYTES", 1 << 60)


def write(text: str) -> None:
    os.write(2, text.encode())


def test_a_report_becomes_a_note(capfd: pytest.CaptureFixture[str]) -> None:
    def panic() -> None:
        with noted_panics("/"):
            write(f"before\n{REPORT}between\n{WITH_BACKTRACE}after\n")
            assert capfd.readouterr().err == ""
            raise RuntimeError("no space left")

    with pytest.raises(RuntimeError) as failed:
        panic()
    assert failed.value.__notes__ == [REPORT.strip(), WITH_BACKTRACE.strip()]
    assert capfd.readouterr().err == "before\nbetween\nafter\n"
    write("later\n")
    assert capfd.readouterr().err == "later\n"


def test_a_report_without_an_error_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    with noted_panics("/"):
        write(REPORT)
    assert capfd.readouterr().err == REPORT


@pytest.mark.parametrize("uri", ["s3://bucket/tables", "/no/such/folder"])
def test_other_places_are_left_alone(uri: str, capfd: pytest.CaptureFixture[str]) -> None:
    with noted_panics(uri):
        write("at once\n")
        assert capfd.readouterr().err == "at once\n"


def test_enough_space(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panic_reports, "_ALMOST_FULL_BYTES", 0)
    with noted_panics("/"):
        write("at once\n")
        assert capfd.readouterr().err == "at once\n"


def test_the_last_of_two_threads_prints(capfd: pytest.CaptureFixture[str]) -> None:
    entered, leave = threading.Event(), threading.Event()

    def other() -> None:
        with noted_panics("/"):
            entered.set()
            leave.wait()
            write("of the other\n")

    thread = threading.Thread(target=other)
    with noted_panics("/"):
        thread.start()
        entered.wait()
        write("of the first\n")
    assert capfd.readouterr().err == ""
    leave.set()
    thread.join()
    assert capfd.readouterr().err == "of the first\nof the other\n"


def test_a_closed_standard_error() -> None:
    program = """if True:
        import os
        os.close(2)
        from pipelines.tables.panic_reports import noted_panics
        with noted_panics("/"):
            print("done")
    """
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "done\n")
