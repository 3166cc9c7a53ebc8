"""`grouplake coordinator` as a child process, for tests and benchmarks."""

import json
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipelines.runtime.cache.kernels import compile_kernels
from pipelines.runtime.errors import GrouplakeError

_READY = re.compile(r"listening on (\S+:\d+)(?:, (http://[^/]*)/)?")
#: Downloads and compilation happen before and do not count.
_START_SECONDS = 120
_STOP_SECONDS = 30
_POLL_SECONDS = 0.02


class PrivateCoordinatorError(GrouplakeError):
    """The process did not start, or ended with another exit code than 0. The message has its output."""


class PrivateCoordinator:
    """A coordinator process on `listen` (default: a free port of 127.0.0.1), with its log in `directory`, or in `log`.

    As a context manager it starts the process, waits until it has loaded its log, and kills it at the end. `settings` are keys of
    `[coordinator]`, `topics` is the section `[coordinator.topics]`. Its standard error is written to DIRECTORY.log, its
    configuration to DIRECTORY.toml.
    """

    def __init__(
        self,
        directory: Path,
        *,
        topics: Mapping[str, int | Mapping[str, int | str | bool]] | None = None,
        listen: str = "127.0.0.1:0",
        log: str | None = None,
        nodes: int = 1,
        **settings: int | str | float,
    ) -> None:
        self.directory = directory
        self._listen = listen
        self._address = log or f"segments:{directory}"
        self._nodes = nodes
        #: `127.0.0.1:PORT`; empty before the start.
        self.bootstrap = ""
        #: URL of /health and /metrics, or "".
        self.admin = ""
        self.log = directory.with_name(f"{directory.name}.log")
        self._configuration = directory.with_name(f"{directory.name}.toml")
        self._configuration.parent.mkdir(parents=True, exist_ok=True)
        given = {"admin_listen": "127.0.0.1:0", **settings}
        lines = ["[coordinator]", *(f"{key} = {json.dumps(value)}" for key, value in given.items())]
        lines += ["[coordinator.topics]", *(f'"{topic}" = {_toml(value)}' for topic, value in (topics or {}).items())]
        self._configuration.write_text("\n".join([*lines, ""]))
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> "PrivateCoordinator":
        self.start()
        try:
            self.wait_until_loaded()
        except PrivateCoordinatorError:
            self.kill()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        """Process id."""
        return self._running().pid

    @property
    def node_pids(self) -> list[int]:
        """Process ids of the nodes, by node id, if there are several."""
        newest = {line["node"]: line["pid"] for line in self.events("node started")}
        return [newest[node] for node in sorted(newest)]

    @property
    def exit_code(self) -> int | None:
        """Exit code of a process that has ended by itself; None while it runs."""
        return self._running().poll()

    @property
    def port(self) -> int:
        """The port in `bootstrap`."""
        return int(self.bootstrap.rpartition(":")[2])

    def start(self) -> None:
        """Start the process, and return when it accepts connections; it may still be loading its log.

        Raises PrivateCoordinatorError if the process ends instead, or prints no ready line within 120 s.
        """
        # otherwise the first load would compile them, and every answer would wait for that
        compile_kernels()
        command = [sys.executable, "-c", "import sys; from pipelines.cli.main import main; sys.exit(main())", "coordinator"]
        command += ["--listen", self._listen, "--log", self._address, "--conf", str(self._configuration)]
        command += ["--nodes", str(self._nodes)]
        with self.log.open("ab") as errors:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        # kills a process that prints no ready line, which ends the wait for that line
        watchdog = threading.Timer(_START_SECONDS, self._process.kill)
        watchdog.start()
        assert self._process.stdout is not None
        try:
            line = self._process.stdout.readline()
        finally:
            # also after Ctrl-C: the interpreter does not exit before the timer has ended
            watchdog.cancel()
        ready = _READY.match(line)
        if ready is None:
            self.kill()
            raise PrivateCoordinatorError(f"the coordinator did not start; the end of {self.log}: {self.log.read_text()[-2000:]}")
        self.bootstrap, self.admin = ready[1], ready[2] or ""

    def end(self, number: signal.Signals) -> int:
        """Send a signal, and return the exit code."""
        process = self._running()
        process.send_signal(number)
        code = process.wait(_STOP_SECONDS)
        self._forget()
        return code

    def stop(self) -> None:
        """Stop it with SIGTERM. Raises PrivateCoordinatorError unless the exit code is 0."""
        code = self.end(signal.SIGTERM)
        if code != 0:
            raise PrivateCoordinatorError(
                f"the coordinator ended with exit code {code}; the end of {self.log}: {self.log.read_text()[-2000:]}"
            )

    def kill(self) -> None:
        """Kill the process with SIGKILL, if it runs."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._forget()

    def get(self, path: str) -> tuple[int, str]:
        """Status and body of a GET request to `admin`."""
        try:
            with urllib.request.urlopen(f"{self.admin}{path}", timeout=10) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def wait_until_loaded(self, seconds: float = _START_SECONDS) -> None:
        """Wait until /health is 200. Raises PrivateCoordinatorError after `seconds`, or when the process has ended."""
        give_up = time.monotonic() + seconds
        while (found := self._health())[0] != 200:
            if time.monotonic() > give_up or self._running().poll() is not None:
                raise PrivateCoordinatorError(f"the coordinator has not loaded its log after {seconds:g} s: {found[1]}")
            time.sleep(_POLL_SECONDS)

    def wait_until_active(self, partitions: int, seconds: float = _START_SECONDS) -> None:
        """Wait until this number of log partitions is active: of a log topic, those that the node owns."""
        give_up = time.monotonic() + seconds
        while (found := self._active()) < partitions:
            if time.monotonic() > give_up or self._running().poll() is not None:
                raise PrivateCoordinatorError(f"{found} partitions are active after {seconds:g} s, not {partitions}")
            time.sleep(_POLL_SECONDS)

    def _active(self) -> int:
        health = self._health()[1]
        return int(json.loads(health)["partitions"].get("active", 0)) if health.startswith("{") else 0

    def _health(self) -> tuple[int, str]:
        try:
            return self.get("/health")
        except OSError as error:
            # the server closes a connection whose request took too long, as on an overloaded machine
            return 0, str(error)

    def log_lines(self) -> list[dict[str, Any]]:
        """All lines of its log file, those of earlier processes included."""
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{") and line.endswith("}")]

    def events(self, event: str) -> list[dict[str, Any]]:
        """Lines of the log file with this event."""
        return [line for line in self.log_lines() if line["event"] == event]

    def _running(self) -> "subprocess.Popen[str]":
        if self._process is None:
            raise PrivateCoordinatorError("the coordinator is not running: call start() first")
        return self._process

    def _forget(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process = None


def _toml(value: int | str | bool | Mapping[str, int | str | bool]) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(each)}" for key, each in value.items()) + " }"
    return json.dumps(value)
