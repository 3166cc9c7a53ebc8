"""Java processes that belong to this one: logged into a file, ended by their own process ids, gone when this process is gone."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from pipelines.cache.jars import java_executable

STOP_LIMIT_SECONDS = 20

_SMALL = ["-Xms64m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Djava.awt.headless=true"]


def java_command(jars: Path, main_class: str, arguments: Sequence[str], jvm_arguments: Sequence[str] = ()) -> list[str]:
    """A command line with every jar of a folder on the class path and a small heap, quick to start."""
    return [java_executable(), *_SMALL, *jvm_arguments, "-cp", f"{jars}/*", main_class, *arguments]


# Reads until the other end of its input closes: at the latest with the process that holds it, however that ends.
_KEEPER_SCRIPT = """
read -r _
for mark in "$0"/*.pid; do kill -9 "$(basename "$mark" .pid)"; done
rm -rf "$0"
"""


class Keeper:
    """Sees to it that the processes of a folder end, and the folder goes, when this process is killed before it could do so."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process = subprocess.Popen(
            ["sh", "-c", _KEEPER_SCRIPT, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def release(self) -> None:
        """Everything has ended in good order: let the keeper remove the folder, and wait for that."""
        self._process.communicate()


class JavaProcess:
    """One JVM; output goes to the end of `log`. Not restartable: make another."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )
        self._mark = log.parent / f"{self._process.pid}.pid"
        self._mark.touch()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._process.poll()

    def stop(self) -> None:
        """Ask it to end (SIGTERM: a broker closes its logs cleanly), and after 20 s insist."""
        if self.exit_code is not None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._ended()

    def kill(self) -> None:
        """End it at once, as a crash would (SIGKILL)."""
        self._process.kill()
        self._ended()

    def _ended(self) -> None:
        self._process.wait()
        # Its number may soon be somebody else's.
        self._mark.unlink(missing_ok=True)
