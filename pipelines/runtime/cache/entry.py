"""Entries of the cache folder that one process makes and all processes use."""

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pipelines.runtime.cache.folder import forget, hold, lock, unfinished


def make_once(entry: Path, make: Callable[[Path], None]) -> Path:
    """Return the folder `entry`, which is `ROOT/KIND/NAME` of the cache. If it is missing, `make` fills an empty folder.

    The entry appears complete or not at all. A second process waits and finds it, and none removes it until this process ends.
    """
    hold(entry)
    if not entry.exists():
        try:
            with _alone(entry):
                if not entry.exists():
                    _make(entry, make)
        except BaseException:
            forget(entry)
            raise
    return entry


def _make(entry: Path, make: Callable[[Path], None]) -> None:
    partial = unfinished(entry)
    # a killed process may have left it
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        make(partial)
        partial.rename(entry)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


@contextmanager
def _alone(entry: Path) -> Iterator[None]:
    """Wait until no other process makes the entry. Its own lock is held by every process that uses it, or waits for it."""
    descriptor = lock(entry.with_name(f"{entry.name}.making"), fcntl.LOCK_EX)
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)
