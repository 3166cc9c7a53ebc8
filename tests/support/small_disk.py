"""A file system of a few MiB that a test can fill, on Linux as root: the tests that need one are skipped elsewhere."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

_BLOCK = 4_096
_PIECE = 1_048_576


class SmallDisk:
    """A mounted tmpfs. `fill` leaves a given number of bytes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._filler = folder / "filler"

    def fill(self, spare: int = 0) -> None:
        """Fill the disk up to `spare` bytes, rounded down to blocks."""
        self._filler.unlink(missing_ok=True)
        with self._filler.open("wb", buffering=0) as file:
            while size := self._available(spare):
                # another process may write meanwhile; what is written stays, while a failed allocation would be given back
                with suppress(OSError):
                    file.write(bytes(min(size, _PIECE)))

    def _available(self, spare: int) -> int:
        found = os.statvfs(self.folder)
        return max(0, found.f_bavail * found.f_frsize - spare // _BLOCK * _BLOCK)

    def free(self) -> None:
        """Give the space back."""
        self._filler.unlink(missing_ok=True)


@contextmanager
def small_disk(folder: Path, mebibytes: int = 4) -> Iterator[SmallDisk]:
    """Mount a disk of this size at a new folder."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m", "tmpfs", str(folder)]
    try:
        done = subprocess.run(mount, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("no `mount`")
    if done.returncode:
        pytest.skip(f"a disk cannot be mounted: {done.stderr.strip()}")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
