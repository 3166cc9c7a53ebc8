"""Downloads by `apt-get` into a folder of our own: no root, no lock of the machine's package manager, nothing installed."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from pipelines.runtime.progress import Progress

#: A download that receives nothing for this time has failed; one that receives something may take as long as it needs.
PATIENCE_SECONDS = 90
#: Progress is reported at every multiple of this.
_REPORTED_BYTES = 20_000_000
_POLL_SECONDS = 0.2


class DownloadError(Exception):
    """A package that apt cannot find or download. The message has apt's last lines."""


def is_apt_here() -> bool:
    """True on Debian and its relatives."""
    return all(shutil.which(tool) for tool in ("apt-get", "dpkg-deb"))


def download_package(package: str, folder: Path, progress: Progress | None = None) -> list[Path]:
    """Download the file of one package."""
    return _downloaded(["download", package], folder, folder, progress)


def download_missing(packages: Sequence[str], folder: Path, progress: Progress | None = None) -> list[Path]:
    """Download packages and those of their dependencies that the machine does not have."""
    (folder / "archives" / "partial").mkdir(parents=True, exist_ok=True)
    command = ["--yes", "--no-install-recommends", "--download-only", "install", *packages]
    return _downloaded(command, folder, folder / "archives", progress)


def _downloaded(command: Sequence[str], folder: Path, archives: Path, progress: Progress | None) -> list[Path]:
    """Run `command` with the machine's package lists, and with lists of our own if those are missing or out of date."""
    settings = ["-o", f"Dir::Cache={folder}", "-o", "APT::Sandbox::User=", "-o", "Debug::NoLocking=1"]
    try:
        _run(["apt-get", *settings, *command], folder, progress)
    except DownloadError:
        lists = folder / "lists"
        (lists / "partial").mkdir(parents=True, exist_ok=True)
        settings += ["-o", f"Dir::State::Lists={lists}"]
        _run(["apt-get", *settings, "update"], folder, progress)
        _run(["apt-get", *settings, *command], folder, progress)
    return sorted(archives.glob("*.deb"))


def _run(command: Sequence[str], folder: Path, progress: Progress | None) -> None:
    """Run apt in `folder` until it ends. Raises DownloadError if it fails, or if the folder does not grow any more."""
    with (folder / "apt.log").open("w+") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, env={**os.environ, "LC_ALL": "C"})
        try:
            size, unchanged = 0, 0.0
            while process.poll() is None:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_POLL_SECONDS)
                    break
                found = _bytes(folder)
                unchanged = 0 if found != size else unchanged + _POLL_SECONDS
                if progress and found // _REPORTED_BYTES > size // _REPORTED_BYTES:
                    progress(f"  {found / 1e6:.0f} MB received")
                size = found
                if unchanged > PATIENCE_SECONDS:
                    raise DownloadError(
                        f"{' '.join(command)}: nothing received for {PATIENCE_SECONDS} s, {size / 1e6:.0f} MB until then"
                    )
        finally:
            process.kill()
            process.wait()
        if process.returncode:
            log.seek(0)
            raise DownloadError(f"{' '.join(command)} failed: {log.read()[-1000:]}")


def _bytes(folder: Path) -> int:
    total = 0
    for each in folder.rglob("*"):
        try:
            total += each.lstat().st_size
        except FileNotFoundError:
            # apt renames a file when it is complete
            continue
    return total
