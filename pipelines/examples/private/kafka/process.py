"""Java child processes: logged to a file, killed by process id, and never outliving this process."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from pipelines.runtime.cache.class_archive import ClassArchive
from pipelines.runtime.cache.java import java_executable

STOP_LIMIT_SECONDS = 20

_SMALL = ["-Xms64m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Djava.awt.headless=true"]


def java_command(jars: Path, main_class: str, arguments: Sequence[str], jvm_arguments: Sequence[str] = ()) -> list[str]:
    """A command line with all jars of a folder on the class path, a small heap, and options for a quick start.

    Its JVM maps the class archive of these jars, if there is one.
    """
    archived = class_archive(jars).use(records=False).options
    return [java_executable(), *_SMALL, *archived, *jvm_arguments, "-cp", f"{jars}/*", main_class, *arguments]


def class_archive(jars: Path) -> ClassArchive:
    """The class archive of every program in a folder of jars."""
    return ClassArchive.of(jars.name, sorted(jars.glob("*.jar")), " ".join(_SMALL))


# `read` returns when the other end of the pipe closes, at the latest when the parent process ends, even by SIGKILL.
_KEEPER_SCRIPT = """
read -r _
for mark in "$0"/*.pid; do kill -9 "$(basename "$mark" .pid)"; done
rm -rf "$0"
"""


class Keeper:
    """A shell process that kills the processes of a folder and removes the folder, even if this process is killed."""

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
        """Let the keeper remove the folder, after all its processes have ended, and wait for that."""
        self._process.communicate()


class JavaProcess:
    """One JVM, whose output is appended to `log`. It cannot be restarted."""

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
        """Exit code; None while the process runs."""
        return self._process.poll()

    def stop(self) -> None:
        """Send SIGTERM, at which a broker closes its logs cleanly, and SIGKILL after 20 s."""
        if self.exit_code is not None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._ended()

    def kill(self) -> None:
        """Send SIGKILL, as a simulated crash."""
        self._process.kill()
        self._ended()

    def _ended(self) -> None:
        self._process.wait()
        # the system can assign this process id to another process
        self._mark.unlink(missing_ok=True)
