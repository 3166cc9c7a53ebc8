"""A Java process that belongs to this one: started with its log in a file, ended by its own process id."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from pipelines.private_kafka.jars import java_executable

STOP_LIMIT_SECONDS = 20

_SMALL = ["-Xms64m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Djava.awt.headless=true"]


def java_command(jars: Path, main_class: str, arguments: Sequence[str], jvm_arguments: Sequence[str] = ()) -> list[str]:
    """A command line with every jar of a folder on the class path and a small heap, quick to start."""
    return [java_executable(), *_SMALL, *jvm_arguments, "-cp", f"{jars}/*", main_class, *arguments]


class JavaProcess:
    """One JVM; output goes to the end of `log`. Not restartable: make another."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )

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
            self.kill()

    def kill(self) -> None:
        """End it at once, as a crash would (SIGKILL)."""
        self._process.kill()
        self._process.wait()
