"""Rarer garbage collection: nothing that is loaded and collected before the first test is garbage.

A worker has some hundred megabytes of modules and tests by then, which Python would look through again and again.
"""

import gc
from collections.abc import Generator

import pytest

#: Containers more than were freed, after which the youngest are looked at. Python's default is 700.
_THRESHOLD = 20_000


class FrozenHeap:
    """A plugin, from its creation on without garbage collection until all tests are collected."""

    def __init__(self) -> None:
        gc.disable()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection(self) -> Generator[None, object, object]:
        """Keep what exists then out of all later collections."""
        try:
            return (yield)
        finally:
            gc.freeze()
            gc.set_threshold(_THRESHOLD)
            gc.enable()
