"""Programs of Debian packages, unpacked into the cache folder: nothing is installed, and root is not needed."""

import os
import shutil
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest
from apt_downloads import download_missing, download_package, is_apt_here
from checked_commands import checked

from pipelines.runtime.cache.entry import make_once
from pipelines.runtime.cache.folder import cache_root
from pipelines.runtime.progress import Progress

_KIND = "debian"
#: Folder of the packages while they are unpacked.
_ARCHIVES = ".archives"

#: Downloads packages into a folder and returns their files.
_Download = Callable[[Path], list[Path]]


def prometheus(progress: Progress | None = None) -> Path:
    """Debian's Prometheus server."""
    return debian_program("prometheus", "prometheus", progress)


def promtool(progress: Progress | None = None) -> Path:
    """The checks of metrics, rules and configuration that Prometheus comes with."""
    return debian_program("prometheus", "promtool", progress)


def alertmanager_program(progress: Progress | None = None) -> Path:
    """Debian's Alertmanager."""
    return debian_program("prometheus-alertmanager", "prometheus-alertmanager", progress)


def tini(progress: Progress | None = None) -> Path:
    """The first process of the container."""
    return debian_program("tini", "tini", progress)


def faketime(progress: Progress | None = None) -> Path:
    """The library that gives a process another clock."""
    (library,) = debian_files("libfaketime", progress).rglob("libfaketimeMT.so.1")
    return library


def clock_from(at: datetime) -> dict[str, str]:
    """Environment of a process whose clock begins at a time, and can be set by `FAKETIME` in its own environment."""
    return {
        "TZ": "UTC",
        "LD_PRELOAD": str(faketime()),
        "FAKETIME": f"@{at:%Y-%m-%d %H:%M:%S}",
        "FAKETIME_NO_CACHE": "1",
        "NO_FAKE_STAT": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        # with its default, waits of threads take longer
        "FAKETIME_FORCE_MONOTONIC_FIX": "0",
    }


def debian_program(package: str, program: str, progress: Progress | None = None) -> Path:
    """Path of `/usr/bin/PROGRAM` of a package, downloaded once. Skips the test on a machine without apt.

    Only for programs that need no other package than libc, such as those written in Go.
    """
    return debian_files(package, progress) / "usr" / "bin" / program


def debian_files(package: str, progress: Progress | None = None) -> Path:
    """Folder with the files of one package, under the paths of a file system's root."""
    return _unpacked(package, lambda folder: download_package(package, folder, progress), progress)


def debian_files_with_dependencies(package: str, progress: Progress | None = None) -> Path:
    """The same with the files of every package that it depends on and the machine does not have.

    The libraries are in the folders of `library_path`.
    """
    name = f"{package}-with-dependencies"
    return _unpacked(name, lambda folder: download_missing([package], folder, progress), progress)


def library_path(files: Path) -> str:
    """`LD_LIBRARY_PATH` for programs under `files`: the folders of libraries, and those that packages have for themselves."""
    found = [
        file for root in ("lib", "usr/lib") for depth in ("", "*/") for file in files.glob(f"{root}/*-linux-*/{depth}lib*.so*")
    ]
    return os.pathsep.join(sorted({str(file.parent) for file in found}))


def _unpacked(name: str, download: _Download, progress: Progress | None) -> Path:
    def unpack(folder: Path) -> None:
        if not is_apt_here():
            pytest.skip(f"no `apt-get` and `dpkg-deb` in PATH: {name} is tested on Debian and Ubuntu")
        if progress:
            progress(f"downloading {name} of Debian (once; kept in {entry})")
        archives = folder / _ARCHIVES
        archives.mkdir()
        for package in download(archives):
            checked("dpkg-deb", "-x", package, folder)
        shutil.rmtree(archives)

    entry = cache_root() / _KIND / name
    return make_once(entry, unpack)
