"""Version and git revision, as `grouplake --version` prints them.

The build (setup.py) writes the revision into wheels and source archives; in a checkout, editable
installs included, git reports it.
"""

import os
import subprocess
from importlib import metadata
from pathlib import Path

#: In this folder; only wheels and source archives have it.
REVISION_FILE = "revision.txt"
_GIT_LIMIT_SECONDS = 10


def version_text() -> str:
    """`grouplake 0.1.0 (git 1a2b3c4)`; without the parenthesis if the revision is unknown."""
    folder = Path(__file__).parent
    written = folder / REVISION_FILE
    revision = written.read_text(encoding="utf-8").strip() if written.is_file() else git_revision(folder.parents[1])
    version = f"grouplake {metadata.version('grouplake')}"
    return f"{version} (git {revision})" if revision else version


def git_revision(checkout: Path) -> str | None:
    """The abbreviated commit of `checkout`, with `-dirty` if tracked files differ from it.

    None without git, or if the folder is not the top of a checkout: an environment may lie inside another project's checkout.
    """
    if not (checkout / ".git").exists():
        return None
    # git hooks set GIT_* variables that name their own repository
    variables = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "-C", str(checkout), "describe", "--always", "--dirty", "--exclude=*"]
    try:
        ended = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=_GIT_LIMIT_SECONDS,
            check=True,
            env={**variables, "GIT_OPTIONAL_LOCKS": "0"},
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return ended.stdout.strip()
