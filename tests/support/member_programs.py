"""Members written with clients of other languages (`tests/clients`), built once into the cache folder, each run as a process."""

import hashlib
import json
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

import pytest
from checked_commands import checked
from eventually import eventually
from patience import PATIENCE_SECONDS

from pipelines.runtime.cache.entry import make_once
from pipelines.runtime.cache.folder import cache_root
from pipelines.runtime.progress import Progress

_SOURCES = Path(__file__).parents[1] / "clients"
_GO_PROGRAMS = ("committed", "crowd", "franz", "sarama", "transactions", "worker")


def go_member(client: str, progress: Progress | None = None) -> list[str]:
    """The command of `tests/clients/go/CLIENT`. Skips the test if Go is not installed."""
    go = _toolchain("go", "Go 1.24 or newer")

    def build(sources: Path, target: Path) -> None:
        programs = [f"./{name}" for name in _GO_PROGRAMS]
        checked(go, "build", "-buildvcs=false", "-ldflags=-s -w", "-o", f"{target}/", *programs, cwd=sources)

    return [str(_built("go", build, progress) / client)]


def kafkajs_member(progress: Progress | None = None) -> list[str]:
    """The command of `tests/clients/kafkajs`. Skips the test if Node.js is not installed."""
    node, npm = (_toolchain(name, "Node.js 18 or newer, with npm") for name in ("node", "npm"))

    def build(sources: Path, target: Path) -> None:
        shutil.copytree(sources, target, dirs_exist_ok=True)
        checked(npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", cwd=target)

    return [node, str(_built("kafkajs", build, progress) / "member.js")]


def build_members(progress: Progress) -> None:
    """Build the members whose toolchains are installed."""
    if shutil.which("go"):
        go_member("franz", progress)
    if shutil.which("node") and shutil.which("npm"):
        kafkajs_member(progress)


class MemberProgram:
    """One member. Like `JavaMember`, except that it commits `offset + partition` for every partition that it owns."""

    def __init__(self, command: Sequence[str], bootstrap: str, group: str, topic: str, client_id: str, *more: str) -> None:
        self._client_id = client_id
        self._committed = 0
        self._errors: IO[str] = tempfile.TemporaryFile("w+")  # noqa: SIM115 - `__exit__` closes it
        self._process = subprocess.Popen(
            [*command, bootstrap, group, topic, client_id, *more],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            bufsize=1,
        )
        #: Partitions that it owned after the last rebalance.
        self.owned: frozenset[int] = frozenset()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def commit(self, offset: int) -> None:
        """Commit, and wait until the client confirms it."""
        assert self._process.stdin is not None
        before = self._committed
        self._process.stdin.write(f"commit {offset}\n")
        eventually(f"{self._client_id} has committed", lambda: self._committed, lambda count: count > before, unless=self.failure)

    def failure(self) -> str | None:
        """The reason why the process has ended before it was closed."""
        return None if self._process.poll() is None else f"{self._client_id} has ended: {self._output()}"

    def close(self) -> None:
        """Leave the group. AssertionError unless the process exits with code 0."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(PATIENCE_SECONDS)
        assert self._process.returncode == 0, self.failure()

    def __enter__(self) -> "MemberProgram":
        return self

    def __exit__(self, *_: object) -> None:
        """Kill the process if it still runs."""
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            assert stream is not None
            stream.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            event = json.loads(line)
            if "assigned" in event:
                self.owned = frozenset(event["assigned"])
            self._committed += "committed" in event

    def _output(self) -> str:
        self._errors.seek(0)
        return self._errors.read()[-2000:] or f"exit code {self._process.returncode}"


def _toolchain(name: str, wanted: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"no `{name}` in PATH: this client is tested where {wanted} is installed")
    return found


def _built(name: str, build: Callable[[Path, Path], None], progress: Progress | None) -> Path:
    """The folder with the result of `build` for `tests/clients/NAME`, in the cache under the digest of its sources."""
    sources = _SOURCES / name
    digest = hashlib.sha256()
    for path in sorted(each for each in sources.rglob("*") if each.is_file()):
        digest.update(str(path.relative_to(sources)).encode() + b"\0" + path.read_bytes() + b"\0")
    entry = cache_root() / "clients" / f"{name}-{digest.hexdigest()[:16]}"

    def make(folder: Path) -> None:
        if progress:
            progress(f"building tests/clients/{name} (once; kept in {entry})")
        build(sources, folder)

    return make_once(entry, make)
