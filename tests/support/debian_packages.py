"""Programs of Debian packages, unpacked into the cache folder: nothing is installed, and root is not needed."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from pipelines.cache.folder import cache_root
from pipelines.progress import Progress

_SECONDS = 300


def prometheus(progress: Progress | None = None) -> Path:
    """Debian's Prometheus server."""
    return debian_program("prometheus", "prometheus", progress)


def promtool(progress: Progress | None = None) -> Path:
    """The checks of metrics, rules and configuration that Prometheus comes with."""
    return debian_program("prometheus", "promtool", progress)


def debian_program(package: str, program: str, progress: Progress | None = None) -> Path:
    """Path of `/usr/bin/PROGRAM` of a package, downloaded once. Skips the test on a machine without apt.

    Only for programs that need no other package than libc, such as those written in Go.
    """
    return _unpacked(package, progress) / "usr" / "bin" / program


def _unpacked(package: str, progress: Progress | None) -> Path:
    """The folder with the files of a package. It appears complete or not at all."""
    folder = cache_root() / "debian" / package
    if not folder.exists():
        for tool in ("apt-get", "dpkg-deb"):
            if shutil.which(tool) is None:
                pytest.skip(f"no `{tool}` in PATH: {package} is tested on Debian and Ubuntu")
        folder.parent.mkdir(parents=True, exist_ok=True)
        if progress:
            progress(f"downloading {package} of Debian (once; kept in {folder})")
        partial = Path(tempfile.mkdtemp(prefix=f".{package}-", dir=folder.parent))
        try:
            _run(["dpkg-deb", "-x", str(_downloaded(package, partial)), "files"], partial)
            (partial / "files").rename(folder)
        except OSError:
            # another process was faster; its folder is equivalent
            if not folder.exists():
                raise
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    return folder


def _downloaded(package: str, folder: Path) -> Path:
    """The newest release of a package in the machine's package lists, or in lists of our own if those do not have it."""
    if not _download(package, folder, ()):
        lists = folder / "lists"
        (lists / "partial").mkdir(parents=True)
        own = ("-o", f"Dir::State::Lists={lists}", "-o", f"Dir::Cache={folder}", "-o", "APT::Sandbox::User=")
        _run(["apt-get", *own, "update"], folder)
        assert _download(package, folder, own), f"Debian's package lists have no {package}"
    (found,) = folder.glob(f"{package}_*.deb")
    return found


def _download(package: str, folder: Path, settings: Sequence[str]) -> bool:
    command = ["apt-get", *settings, "download", package]
    return subprocess.run(command, cwd=folder, capture_output=True, timeout=_SECONDS, check=False).returncode == 0


def _run(command: Sequence[str], folder: Path) -> None:
    environment = {**os.environ, "LC_ALL": "C"}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=False, env=environment)
    assert done.returncode == 0, f"{' '.join(command)} failed in {folder}: {done.stdout}{done.stderr}"
