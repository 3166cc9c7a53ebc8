"""Environments with the wheel and chosen versions, and nothing of the environment of the tests."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from checked_commands import checked
from wheel_environments import UV


@dataclass(frozen=True)
class ReaderEnvironment:
    """An environment, and the variables of its processes."""

    bin: Path
    variables: dict[str, str]

    def output(self, *arguments: str, program: str = "grouplake", env: Mapping[str, str] | None = None) -> str:
        """Standard output of a program that must succeed."""
        return checked(self.bin / program, *arguments, env=env or self.variables)

    def python(self, program: str, *arguments: str, env: Mapping[str, str] | None = None) -> str:
        """Standard output of a Python program, given as text."""
        return self.output("-c", program, *arguments, program="python", env=env)


def environment(folder: Path, *requirements: str | Path) -> ReaderEnvironment:
    """A new environment with these requirements."""
    checked(UV, "venv", "--quiet", "--python", sys.executable, folder)
    checked(UV, "pip", "install", "--quiet", "--python", folder / "bin" / "python", *requirements)
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYSPARK", "SPARK"))}
    return ReaderEnvironment(folder / "bin", variables)


def this_environment() -> ReaderEnvironment:
    """The environment of the tests, which has everything."""
    return ReaderEnvironment(Path(sys.executable).parent, dict(os.environ))
