"""Processes of `grouplake` that are started again when they end, as a service manager does, with their logs."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from patience import PATIENCE_SECONDS

_PROGRAM = str(Path(sys.executable).with_name("grouplake"))
_RESTART_SECONDS = 5.0


@dataclass(frozen=True)
class Line:
    """A line of a log, with the time at which it was read."""

    at: float
    text: str


class Service:
    """A command that runs until `stop`; after any other end it is started again.

    `lines` is its standard error, `exits` has the time and the exit code of every end.
    """

    def __init__(self, name: str, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        self.name = name
        self.lines: list[Line] = []
        self.exits: list[tuple[float, int]] = []
        self._command = [_PROGRAM, *command]
        self._environment = {**os.environ, **(environment or {})}
        self._stopping = threading.Event()
        self._process: subprocess.Popen[str] | None = None
        self._thread = threading.Thread(target=self._run, name=name)
        self._thread.start()

    @property
    def pid(self) -> int | None:
        """The present process; None between two."""
        process = self._process
        return None if process is None or process.poll() is not None else process.pid

    def texts(self, since: float = 0.0) -> list[str]:
        """The lines since a time."""
        return [line.text for line in list(self.lines) if line.at >= since]

    def stop(self) -> int:
        """End it with SIGTERM; return its exit code."""
        self._stopping.set()
        process = self._process
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()
        self._thread.join()
        return self.exits[-1][1]

    def kill(self) -> None:
        """Kill the process and all that it has started, for good."""
        self._stopping.set()
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            with subprocess.Popen(
                self._command, stderr=subprocess.PIPE, text=True, errors="replace", env=self._environment, start_new_session=True
            ) as process:
                self._process = process
                assert process.stderr is not None
                for text in process.stderr:
                    self.lines.append(Line(time.time(), text.rstrip("\n")))
            self.exits.append((time.time(), process.returncode))
            self._stopping.wait(_RESTART_SECONDS)
