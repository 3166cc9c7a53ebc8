"""Commands that must succeed: installations and builds. A failure has the end of what the command printed."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

_LIMIT_SECONDS = 900
_SHOWN = 2000


class CommandFailed(Exception):
    """A command that ended with another exit code than 0. The message has the command and the end of its output."""


def checked(*command: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> str:
    """Standard output of a command. `env` replaces the environment."""
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=_LIMIT_SECONDS, check=False)
    if done.returncode != 0:
        printed = f"{done.stdout[-_SHOWN:]}{done.stderr[-_SHOWN:]}"
        raise CommandFailed(f"`{' '.join(map(str, command))}` ended with exit code {done.returncode}:\n{printed}")
    return done.stdout


def with_variables(**variables: str) -> dict[str, str]:
    """The environment of this process with more variables."""
    return {**os.environ, **variables}
