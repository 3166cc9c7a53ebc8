"""The parts of a command."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass

from pipelines.cli.extras import Extra


@dataclass(frozen=True)
class Command:
    """A command of `grouplake`. Its function imports what it needs when it runs, so that no command loads Spark in vain.

    - `summary`: the line about it in `grouplake --help`. `examples`: the end of its own help.
    - `run`: takes the parsed arguments and returns the exit code.
    - `extra`: the packages without which it cannot run, beside those of every installation.
    - `writes`: names of the arguments whose folders it writes, for the message about a full disk.
    - `compiles`: whether it may run functions that Numba compiles.
    """

    name: str
    summary: str
    examples: str
    add_arguments: Callable[[ArgumentParser], None]
    run: Callable[[Namespace], int]
    compiles: bool = True
    extra: Extra | None = None
    writes: tuple[str, ...] = ()
