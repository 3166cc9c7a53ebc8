"""`grouplake` commands in processes and sessions of their own, so that a whole session can be killed, or only its driver."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from eventually import eventually
from processes import session_states

from pipelines.runtime import failpoints

LIMIT_SECONDS = 900

_COMMAND = """
import sys
from pipelines.cli import main
sys.exit(main())
"""

#: A file system without locks, for commands that must get past the lock of a local folder.
_UNLOCKED = (
    """
import errno, fcntl
def flock(*_):
    raise OSError(errno.ENOLCK, "no locks available")
fcntl.flock = flock
"""
    + _COMMAND
)


class RealRun:
    """A running command. Its progress is written to a file."""

    def __init__(self, arguments: Sequence[str], output: Path, *, fault: str | None = None, unlocked: bool = False) -> None:
        self._output = output
        environment = {**os.environ, **({failpoints.VARIABLE: fault} if fault else {})}
        python = [sys.executable, "-c", _UNLOCKED if unlocked else _COMMAND]
        with output.open("w") as progress:
            self.process = subprocess.Popen(
                [*python, *arguments], stderr=progress, stdout=progress, env=environment, start_new_session=True
            )

    @property
    def output(self) -> str:
        """The output of the command so far."""
        return self._output.read_text()

    def wait(self) -> int:
        """Wait for the end; return the exit code, negative for the signal that ended it."""
        return self.process.wait(LIMIT_SECONDS)

    def wait_until(self, condition: Callable[[], bool]) -> bool:
        """Wait for `condition`; return False if the command ended first."""

        def met_or_ended() -> str:
            return "met" if condition() else "ended" if self.process.poll() is not None else self.output

        wanted = ("met", "ended")
        found = eventually(
            "the command meets the condition, or ends",
            met_or_ended,
            lambda state: state in wanted,
            patience_seconds=LIMIT_SECONDS,
            pause_seconds=0.005,
        )
        return found == "met"

    def has_ended_after(self, seconds: float) -> bool:
        """Wait this long or until the command ends; return whether it has ended."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def is_halted(self) -> bool:
        """Whether a process of the session halts at a failpoint."""
        return any(state == "T" for state in session_states(self.process.pid).values())

    def kill_all(self) -> None:
        """Kill driver, JVM and Python workers together, as a power failure does."""
        for pid in (*session_states(self.process.pid), self.process.pid):
            _kill(pid)
        self.process.wait()

    def kill_driver(self) -> None:
        """Kill only the process that was started; JVM and workers detect it themselves."""
        _kill(self.process.pid)
        self.process.wait()

    def resume(self) -> None:
        """End the halt."""
        self.process.send_signal(signal.SIGCONT)


@contextmanager
def real_run(arguments: Sequence[str], output: Path, *, fault: str | None = None, unlocked: bool = False) -> Iterator[RealRun]:
    """A command that leaves no process running."""
    run = RealRun(arguments, output, fault=fault, unlocked=unlocked)
    try:
        yield run
    finally:
        run.kill_all()


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
