"""The wheel, built from the source archive, and environments that have it with the versions of `requirements.lock`."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).with_name("uv")
LOCK = ROOT / "requirements.lock"


@dataclass(frozen=True)
class Distributions:
    """The results of `uv build`: the source archive, and the wheel that is built from it."""

    archive: Path
    wheel: Path


def checked(*command: str | Path, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    """Standard output of a command that must succeed."""
    ended = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=500, check=False)
    assert ended.returncode == 0, f"{command}\n{ended.stdout}\n{ended.stderr}"
    return ended.stdout


def built_distributions(folder: Path) -> Distributions:
    """Build both in `folder`."""
    checked(UV, "build", "--quiet", "--out-dir", folder, ROOT)
    (archive,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return Distributions(archive, wheel)


def install(wheel: Path, environment: Path) -> None:
    """Install the wheel in an environment that has been made."""
    command = (UV, "pip", "install", "--quiet", "--python", environment / "bin" / "python", "--constraint", LOCK, wheel)
    # `make setup` has filled uv's cache; with the registry in reach, uv would build PySpark again for half a minute
    if subprocess.run([*command, "--offline"], capture_output=True, check=False).returncode != 0:
        checked(*command)
