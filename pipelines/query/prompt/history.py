"""The file with the history of the prompt."""

import os
from collections.abc import Mapping
from pathlib import Path


def history_file(environment: Mapping[str, str]) -> Path | None:
    """Create the history file, if needed, in the user's state folder (XDG); None if it cannot be written.

    Statements name groups and clients, so only the user can read it.
    """
    state = environment.get("XDG_STATE_HOME", "")
    try:
        folder = (Path(state) if os.path.isabs(state) else Path.home() / ".local" / "state") / "grouplake"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = folder / "sql_history"
        os.close(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600))
    except (OSError, RuntimeError):
        # no home folder, or a read-only one
        return None
    return path
