"""`grouplake dashboard` as a process."""

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx
from authorities import AUTHORITIES
from eventually import eventually
from patience import PATIENCE_SECONDS

_PROGRAM = Path(sys.executable).with_name("grouplake")
_NO_DEFAULTS: Mapping[str, Any] = MappingProxyType({})


class Dashboard:
    """A running server. `url` is its address, without a slash at the end. `defaults` are arguments of every `get`,
    `program` is the command of another environment."""

    def __init__(
        self,
        *tables: str,
        listen: str = "127.0.0.1:0",
        conf: str | None = None,
        defaults: Mapping[str, Any] = MappingProxyType({}),
        program: Path = _PROGRAM,
    ) -> None:
        self.defaults = defaults
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - `close` closes it
        command = [str(program), "dashboard", "--listen", listen, *(part for each in tables for part in ("--tables", each))]
        self.process = subprocess.Popen(
            [*command, *(["--conf", conf] if conf else [])], stdout=subprocess.PIPE, stderr=self._errors, text=True
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.fullmatch(r"listening on (https?://\S+)/ .*\n", line)
        assert found, f"{line!r} {self.errors()}"
        self.url = found[1]

    def get(self, path: str, **more: Any) -> httpx.Response:
        """The response to GET."""
        return httpx.get(f"{self.url}{path}", **{"timeout": 60, "verify": AUTHORITIES, **self.defaults, **more})

    def wait_until_ready(self) -> "Dashboard":
        """Wait until every cluster is loaded, and as new as its job lets expect."""
        return self._wait_for("/ready")

    def wait_until_loaded(self) -> "Dashboard":
        """Wait until every cluster is loaded, however old it is."""
        return self._wait_for("/ready/loaded")

    def _wait_for(self, path: str) -> "Dashboard":
        eventually("the tables are loaded", lambda: self.get(path).status_code, lambda code: code == 200, unless=self.failure)
        return self

    def failure(self) -> str | None:
        """The reason why the process has ended."""
        return None if self.process.poll() is None else f"exit code {self.process.returncode}: {self.errors()}"

    def errors(self) -> str:
        """Standard error until now."""
        self._errors.seek(0)
        return self._errors.read()

    def end(self) -> int:
        """Send SIGTERM and return the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_SECONDS)

    def close(self) -> None:
        """Kill the process if it still runs."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdout, self._errors):
            assert stream is not None
            stream.close()


@contextmanager
def dashboard(*tables: str, conf: str | None = None, **more: Any) -> Iterator[Dashboard]:
    """A server that has loaded its tables."""
    running = Dashboard(*tables, conf=conf, **more)
    try:
        yield running.wait_until_ready()
    finally:
        running.close()


def configuration_file(folder: Path, sections: Mapping[str, str]) -> str:
    """A configuration with these sections, as text."""
    path = folder / f"conf-{os.urandom(4).hex()}.toml"
    path.write_text("".join(f"[{name}]\n{text}\n" for name, text in sections.items()))
    return str(path)
