"""Programs of Debian packages, unpacked into the cache folder: nothing is installed, and root is not needed."""

import fcntl
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from apt_downloads import download_missing, download_package, is_apt_here

from pipelines.runtime.cache.folder import cache_root, forget, hold, lock, unfinished
from pipelines.runtime.progress import Progress

_KIND = "debian"
_UNPACK_SECONDS = 300

#: Downloads packages into a folder and returns their files.
_Download = Callable[[Path], list[Path]]


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
    """The entry `name` of the cache. It appears complete or not at all, and one process downloads it."""
    folder = cache_root() / _KIND / name
    hold(folder)
    if not folder.exists():
        try:
            if not is_apt_here():
                pytest.skip(f"no `apt-get` and `dpkg-deb` in PATH: {name} is tested on Debian and Ubuntu")
            with _alone(folder):
                if not folder.exists():
                    if progress:
                        progress(f"downloading {name} of Debian (once; kept in {folder})")
                    _unpack(download, folder)
        except BaseException:
            forget(folder)
            raise
    return folder


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Wait until no other process downloads the entry."""
    descriptor = lock(folder.with_name(f"{folder.name}.download"), fcntl.LOCK_EX)
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _unpack(download: _Download, folder: Path) -> None:
    partial = unfinished(folder)
    # a killed process may have left it
    shutil.rmtree(partial, ignore_errors=True)
    files = partial / "files"
    files.mkdir(parents=True)
    try:
        for package in download(partial):
            subprocess.run(["dpkg-deb", "-x", str(package), str(files)], timeout=_UNPACK_SECONDS, check=True, capture_output=True)
        files.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
