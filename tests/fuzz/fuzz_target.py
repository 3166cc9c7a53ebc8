"""The interface of a fuzz target."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any


@dataclass(frozen=True)
class Target:
    """A part of the program that reads bytes from outside.

    `make` generates one input. `check` takes some of them and raises on anything but the typed outcomes. That is a finding, an
    AssertionError as well as an exception of the program. `share` is its part of all inputs of a run, `chunk` the
    inputs of one check. Targets with `compiled` code run a part of their inputs with bounds checks compiled in.
    """

    name: str
    make: Callable[[Random], Any]
    check: Callable[[Sequence[Any]], None]
    share: int
    chunk: int = 1
    compiled: bool = False
