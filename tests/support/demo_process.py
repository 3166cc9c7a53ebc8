"""`grouplake demo` as a process."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from eventually import eventually
from patience import LIMIT_SECONDS

_COMMAND = [sys.executable, "-c", "import sys; from pipelines.cli import main; sys.exit(main())", "demo"]


class Demo:
    """A running demo with these arguments, as the leader of a session, and the lines that it has printed on standard error."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            [*_COMMAND, *arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": str(folder)},
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)

    def wait_until_printed(self, pattern: str) -> str:
        """The last group of the pattern, or all of it, once it is printed."""

        def found() -> str | None:
            match = re.search(pattern, "".join(self.lines))
            return match and match[match.re.groups]

        return eventually(f"the demo prints {pattern!r}", found, bool, unless=self._ended, patience_seconds=LIMIT_SECONDS) or ""

    def _ended(self) -> str | None:
        code = self.process.poll()
        return None if code is None else f"exit code {code}: {''.join(self.lines)}"

    def wait(self) -> int:
        """Its exit code."""
        return self.process.wait(LIMIT_SECONDS)

    def close(self) -> None:
        """Kill the process if it still runs."""
        self.process.kill()
        self.process.wait()
        self._reader.join()
        assert self.process.stderr is not None
        self.process.stderr.close()


@contextmanager
def running_demo(folder: Path, *arguments: str) -> Iterator[Demo]:
    """A demo with these arguments, whose files are below `folder`."""
    running = Demo(folder, *arguments)
    try:
        yield running
    finally:
        running.close()


def demo_with_dashboard(folder: Path) -> AbstractContextManager[Demo]:
    """A demo with its page on a free port, whose files are below `folder`."""
    return running_demo(folder, "--dashboard", "127.0.0.1:0")
