"""Ivy as a subprocess: downloads a dependency with its own dependencies, and reports progress."""

import re
import selectors
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from pipelines.runtime.cache.folder import IVY, cache_root
from pipelines.runtime.errors import GrouplakeError
from pipelines.runtime.progress import Progress

#: Ivy prints a dot for every few kilobytes that arrive. Without output for this time it is killed.
SILENCE_LIMIT_SECONDS = 120

_REPORT_SECONDS = 5
_CHUNK_BYTES = 65_536
_FOUND = re.compile(r"^\tfound ")
_DOWNLOADING = re.compile(r"^downloading \S*/(\S+) \.\.\.")
_SIZE = re.compile(r"\((\d+)kB\)$")
_ARRIVED = "\t[SUCCESSFUL ]"


class JarsError(GrouplakeError):
    """A dependency does not resolve. The message contains the remedy."""


def ivy_cache() -> Path:
    """Ivy's cache of dependency metadata. Only the process that holds its lock may use it."""
    return cache_root() / IVY


def retrieve(java: str, ivy: Path, dependency: str, target: Path, *, transitive: bool, progress: Progress | None) -> None:
    """Download the jars of `dependency` (`organisation:module:revision`) to `target`, with its dependencies if `transitive`.

    The total time has no limit, only the time without progress.
    Raises JarsError if the dependency does not resolve, or if nothing arrives for SILENCE_LIMIT_SECONDS.
    """
    command = [java, "-jar", str(ivy), "-cache", str(ivy_cache()), "-dependency", *dependency.split(":")]
    command += ["-confs", "default", "runtime", "master", "compile", "-types", "jar", "bundle"]
    command += ["-retrieve", f"{target}/[artifact]-[revision].[ext]", *([] if transitive else ["-notransitive"])]
    before = set(target.iterdir())
    report = _Report(progress)
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as run:
        try:
            for text in _output(run):
                report.add(text)
        except TimeoutError:
            raise JarsError(
                f"resolving {dependency}: no answer for {SILENCE_LIMIT_SECONDS} s "
                f"({report.described()}): is a Maven repository reachable?"
            ) from None
        finally:
            run.kill()
    made = set(target.iterdir()) - before
    if run.returncode != 0 or not made:
        raise JarsError(f"{dependency} does not resolve: {_reason(report.text)}")
    # the folder of jars has copies; the metadata is small and saves requests
    for jar in ivy_cache().rglob("*.jar"):
        jar.unlink()
    if progress:
        what = next(iter(made)).name if len(made) == 1 else f"{len(made)} jars"
        progress(f"  {what}, {sum(jar.stat().st_size for jar in made) / 1e6:.1f} MB")


def _output(run: "subprocess.Popen[bytes]") -> Iterator[str]:
    """Output of the process as it arrives. Raises TimeoutError after SILENCE_LIMIT_SECONDS without output."""
    assert run.stdout is not None
    with selectors.DefaultSelector() as ready:
        ready.register(run.stdout, selectors.EVENT_READ)
        while True:
            if not ready.select(SILENCE_LIMIT_SECONDS):
                raise TimeoutError
            chunk = run.stdout.read1(_CHUNK_BYTES)  # type: ignore[attr-defined]  # IO[bytes] lacks it
            if not chunk:
                run.wait()
                return
            yield chunk.decode(errors="replace")


class _Report:
    """Parses Ivy's output and reports progress at most every _REPORT_SECONDS."""

    def __init__(self, progress: Progress | None) -> None:
        self.text = ""
        self._progress = progress
        self._line = ""
        self._found = 0
        self._arrived = 0
        self._kilobytes = 0
        self._jar = ""
        self._due = time.monotonic() + _REPORT_SECONDS

    def add(self, text: str) -> None:
        self.text += text
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            self._read(line.rstrip("\r"))
        if self._progress and time.monotonic() >= self._due:
            self._due = time.monotonic() + _REPORT_SECONDS
            self._progress(f"  {self.described()}")

    def described(self) -> str:
        """Progress so far, in words."""
        if not self._jar:
            return f"resolving dependencies: {self._found} found"
        # Ivy counts in units of 1,024 bytes
        return f"downloading {self._jar}: jar {self._arrived + 1} of {self._found}, {self._kilobytes * 1024 / 1e6:.1f} MB so far"

    def _read(self, line: str) -> None:
        if _FOUND.match(line):
            self._found += 1
        elif found := _DOWNLOADING.match(line):
            self._jar = found[1]
        elif found := _SIZE.search(line):
            self._kilobytes += int(found[1])
        elif line.startswith(_ARRIVED):
            self._arrived += 1


def _reason(output: str) -> str:
    """The lines of Ivy's output that name a cause, or its last line."""
    lines = [line.strip(": \t") for line in output.splitlines() if line.strip(": \t")]
    causes = [line for line in lines if "UNRESOLVED" in line or "not found" in line or "Exception" in line or "ERROR" in line]
    return "; ".join(dict.fromkeys(causes[:3])) or (lines[-1] if lines else "Ivy printed nothing")
