"""Loads and plans without garbage collection."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Disable the garbage collector: loads and plans keep most of their objects, and create no cycles.

    It would take half of the time of a load, and a sixth of that of a plan.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
