"""What a fuzz target is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any


@dataclass(frozen=True)
class Target:
    """A part of the program that takes bytes from elsewhere.

    `make` makes one input. `check` takes some of them and raises where anything but the typed outcomes comes out; that is a
    finding, be it an AssertionError or what the program raised. `share` is its part of all inputs of a run, `chunk` the inputs
    of one check. Targets with `compiled` code run a part of their inputs with bounds checks compiled in.
    """

    name: str
    make: Callable[[Random], Any]
    check: Callable[[Sequence[Any]], None]
    share: int
    chunk: int = 1
    compiled: bool = False
