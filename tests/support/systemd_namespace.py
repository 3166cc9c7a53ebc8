"""A real systemd, as process 1 of namespaces of its own, that runs the units of `deploy/systemd`."""

import os
import shutil
import site
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from eventually import eventually
from patience import LIMIT_SECONDS, PATIENCE_SECONDS

from pipelines.runtime.cache.folder import cache_root

ROOT = Path(__file__).parents[2]
_BOOT = Path(__file__).with_name("systemd_boot.sh")
_SYSTEMD = Path("/usr/lib/systemd/systemd")
_TOOLS = ("unshare", "nsenter", "pivot_root", "systemctl", "systemd-sysusers")

#: Targets that units refer to. Those of the machine start services that change it.
_TARGETS = ("basic", "multi-user", "network-online", "shutdown", "sysinit", "time-set", "time-sync", "timers")

#: Output of units goes to a file: no journal runs.
_OUTPUT = "[Service]\nStandardOutput=append:/run/output/%N\nStandardError=inherit\n"


class SystemdNamespace:
    """Systemd with the given units, as `/run/units`, and files of `/etc`. Skips the test where namespaces are not available."""

    def __init__(self, folder: Path, units: dict[str, str], etc: dict[str, str]) -> None:
        if os.geteuid() != 0 or not _SYSTEMD.exists() or not all(shutil.which(tool) for tool in _TOOLS):
            pytest.skip("systemd in namespaces needs root, systemd and util-linux")
        stubs = {f"{name}.target": f"[Unit]\nDescription={name}\nDefaultDependencies=no\n" for name in _TARGETS}
        _write(folder / "units", {**stubs, "service.d/output.conf": _OUTPUT, **units})
        (folder / "etc").mkdir(exist_ok=True)
        _write(folder / "etc", etc)
        (folder / "root").mkdir()
        self._log = folder / "systemd.log"
        self._cgroup = _new_cgroup()
        arguments = [folder / "root", ROOT, site.getsitepackages()[0], sys.base_prefix, cache_root(), folder]
        enter = (
            f'echo 0 > {self._cgroup}/cgroup.procs && exec unshare --pid --fork --kill-child --mount --cgroup --ipc --uts "$@"'
        )
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                ["bash", "-c", enter, "bash", "bash", str(_BOOT), *map(str, arguments)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            self.until("systemd is up", lambda: self.run("systemctl", "is-active", "multi-user.target").stdout == "active\n")
            self.run("mkdir", "/run/output", check=True)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "SystemdNamespace":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Kill process 1 of the namespace, and with it everything in it."""
        self._process.kill()
        self._process.wait(PATIENCE_SECONDS)
        eventually("the cgroup is removed", lambda: _is_removed(self._cgroup))

    def run(self, *command: str, check: bool = False) -> subprocess.CompletedProcess[str]:
        """Run a command as root inside."""
        inside = self._process_1()
        if inside is None:
            return subprocess.CompletedProcess(command, 1, "", "not started")
        enter = ["nsenter", f"--target={inside}", "--mount", "--pid", "--cgroup", "--ipc", "--uts", "--wd=/"]
        clean = {"PATH": "/usr/bin:/usr/sbin", "LC_ALL": "C.UTF-8"}
        done = subprocess.run([*enter, *command], capture_output=True, text=True, timeout=LIMIT_SECONDS, env=clean, check=False)
        if check:
            assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done

    def path(self, inside: str) -> Path:
        """A path of the namespace, as this process reaches it."""
        return Path(f"/proc/{self._process_1()}/root{inside}")

    def property(self, unit: str, name: str) -> str:
        """A property of a unit, as `systemctl show` prints it."""
        return self.run("systemctl", "show", "--value", f"--property={name}", unit).stdout.strip()

    def output(self, unit: str) -> str:
        """What the processes of a unit have printed."""
        return self.run("cat", f"/run/output/{unit.rpartition('.')[0]}").stdout

    def until(self, what: str, is_reached: Callable[[], bool], patience_seconds: float = 400) -> None:
        """Wait for a condition. Raises AssertionError with the log of systemd if it is not met."""
        eventually(what, is_reached, unless=self._failure, patience_seconds=patience_seconds, pause_seconds=0.2)

    def _failure(self) -> str | None:
        return None if self._process.poll() is None else f"systemd ended: {self._log.read_text()[-3000:]}"

    def _process_1(self) -> int | None:
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        try:
            found = children.read_text().split()
            if not found or Path(f"/proc/{found[0]}/comm").read_text() != "systemd\n":
                return None
        except OSError:
            return None
        return int(found[0])


def _write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def _new_cgroup() -> Path:
    """A new group of the version 2 hierarchy. Skips the test without one that can be written."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    point = next((mount[1] for mount in mounts if mount[2] == "cgroup2"), None)
    if point is None:
        pytest.skip("no cgroup2 hierarchy is mounted")
    group = Path(point) / f"grouplake-{os.getpid()}-{time.monotonic_ns()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no cgroup can be created: {error}")
    return group


def _is_removed(group: Path) -> bool:
    """Remove a group with its children. False while processes that were killed are still leaving it."""
    children = [path for path in group.iterdir() if path.is_dir()]
    if not all([_is_removed(child) for child in children]):
        return False
    try:
        group.rmdir()
    except OSError:
        return False
    return True
