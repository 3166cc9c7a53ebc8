"""The wheel, built from the source archive, and environments that have it with the versions of `requirements.lock`."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from checked_commands import checked
from deployment_tools import BUILD_REQUIREMENTS, ROOT, python_environment

UV = Path(sys.executable).with_name("uv")
LOCK = ROOT / "requirements.lock"


@dataclass(frozen=True)
class Distributions:
    """The results of `uv build`: the source archive, and the wheel that is built from it."""

    archive: Path
    wheel: Path


def built_distributions(folder: Path) -> Distributions:
    """Build both in `folder`."""
    build("--out-dir", folder, ROOT)
    (archive,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return Distributions(archive, wheel)


def build(*arguments: str | Path) -> None:
    """Run `uv build` in an environment that has what pyproject.toml requires for builds, and nothing else, without downloads."""
    python = python_environment(*BUILD_REQUIREMENTS) / "bin" / "python"
    checked(UV, "build", "--quiet", "--no-build-isolation", "--python", python, *arguments)


def install(wheel: Path, environment: Path, extras: str) -> None:
    """Install the wheel with these extras in an environment that has been made."""
    python = environment / "bin" / "python"
    command = (UV, "pip", "install", "--quiet", "--python", python, "--constraint", LOCK, f"{wheel}[{extras}]")
    # `make setup` has filled uv's cache; with the registry in reach, uv would build PySpark again for half a minute
    if subprocess.run([*command, "--offline"], capture_output=True, check=False).returncode != 0:
        checked(*command)
