"""Version and git revision, as `grouplake --version` prints them and tables name them.

The build takes the version from the tags of git (pyproject.toml), and writes the revision into wheels and source archives
(hatch_build.py). An editable install keeps the version of its installation; the revision is that of the checkout now.
"""

import os
import subprocess
from functools import cache
from pathlib import Path

#: In this folder; only wheels and source archives have it.
REVISION_FILE = "revision.txt"
_GIT_LIMIT_SECONDS = 10


def version_text() -> str:
    """`grouplake 0.1.0 (git 1a2b3c4)`; without the parenthesis if the revision is unknown."""
    folder = Path(__file__).parent
    written = folder / REVISION_FILE
    revision = written.read_text(encoding="utf-8").strip() if written.is_file() else _checkout_revision()
    version = f"grouplake {_public(_installed_version())}"
    return f"{version} (git {revision})" if revision else version


@cache
def build_version() -> str:
    """The version that names one build: `0.1.0` of a release, `0.2.dev5+g1a2b3c4` five commits after it.

    The number is that of the last tag raised by one, with the commits since then. It is read once, which takes milliseconds.
    """
    version = _installed_version()
    revision = None if (Path(__file__).parent / REVISION_FILE).is_file() else _checkout_revision()
    return version if revision is None else f"{_public(version)}+g{revision.replace('-', '.')}"


def _installed_version() -> str:
    # most commands name no version, and this import takes longer than the parser of all commands
    from importlib import metadata

    return metadata.version("grouplake")


def _public(version: str) -> str:
    """A version without the revision that a build between releases adds."""
    return version.partition("+")[0]


@cache
def _checkout_revision() -> str | None:
    return git_revision(Path(__file__).parents[2])


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
