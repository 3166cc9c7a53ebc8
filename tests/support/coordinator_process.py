"""`grouplake coordinator` as a process of its own: started, stopped, killed, and started again over the same log."""

import queue
import re
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

_READY = re.compile(r"listening on (\S+:\d+)")
_START_SECONDS = 60
_STOP_SECONDS = 30


class CoordinatorProcess:
    """Over the log in `directory`, on a free port of 127.0.0.1. `with` starts it and kills what is left of it.

    `settings` are keys of `[coordinator]`; `topics` those that clients are told of. Standard error goes to `directory` + ".log".
    """

    def __init__(self, directory: Path, *, topics: Mapping[str, int], **settings: int | str | float) -> None:
        self.directory = directory
        self.bootstrap = ""
        self.errors = directory.with_name(f"{directory.name}.log")
        self._configuration = directory.with_name(f"{directory.name}.toml")
        lines = [f"{key} = {value!r}".replace("'", '"') for key, value in {"admin_listen": "", **settings}.items()]
        lines += ["[coordinator.topics]", *(f'"{topic}" = {partitions}' for topic, partitions in topics.items())]
        self._configuration.write_text("\n".join(["[coordinator]", *lines, ""]))
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> "CoordinatorProcess":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        """Returns when it takes connections; `bootstrap` is its address."""
        command = [sys.executable, "-m", "pipelines.cli.main", "coordinator", "--listen", "127.0.0.1:0"]
        command += ["--log", f"segments:{self.directory}", "--conf", str(self._configuration)]
        with self.errors.open("ab") as errors:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        lines: queue.Queue[str] = queue.Queue()
        process = self._process
        assert process.stdout is not None
        threading.Thread(target=lambda: lines.put(process.stdout.readline()), daemon=True).start()  # type: ignore[union-attr]
        ready = _READY.match(lines.get(timeout=_START_SECONDS))
        assert ready, self.errors.read_text()
        self.bootstrap = ready[1]

    def stop(self) -> None:
        """SIGTERM; asserts that it ends with exit code 0."""
        assert self._process is not None
        self._process.terminate()
        assert self._process.wait(_STOP_SECONDS) == 0, self.errors.read_text()
        self._close()

    def kill(self) -> None:
        """SIGKILL, if it lives."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._close()

    def _close(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process = None
