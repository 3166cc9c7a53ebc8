"""mypy's cache of the last gate on this machine, for a tree that has none: only what has changed since is checked again.

mypy compares contents, so the tree may be anywhere.
"""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipelines.runtime.cache.folder import cache_root, lock, unfinished

#: mypy's cache in a tree.
OF_TREE = ".mypy_cache"


def kept_cache() -> Path:
    """The cache that trees of this machine share."""
    return cache_root() / "types" / "mypy"


def borrow(tree: Path) -> None:
    """Copy the shared cache into a tree without one."""
    own = tree / OF_TREE
    with _locked(fcntl.LOCK_SH):
        if kept_cache().exists() and not own.exists():
            _copy(kept_cache(), own)


def keep(tree: Path) -> None:
    """Replace the shared cache by that of a tree."""
    own = tree / OF_TREE
    with _locked(fcntl.LOCK_EX):
        if own.exists():
            shutil.rmtree(kept_cache(), ignore_errors=True)
            _copy(own, kept_cache())


def _copy(source: Path, target: Path) -> None:
    """A process that is killed meanwhile leaves no part of the copy as the whole."""
    partial = unfinished(target)
    shutil.rmtree(partial, ignore_errors=True)
    shutil.copytree(source, partial)
    partial.rename(target)


@contextmanager
def _locked(mode: int) -> Iterator[None]:
    descriptor = lock(kept_cache(), mode)
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)
