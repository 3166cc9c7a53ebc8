"""The pointer to the present tables of a folder, `_tables.json`, which `grouplake rebuild` replaces once new tables are complete.

Without it the tables are in the folder itself. The tables of alerts always are: they have their own writer.
"""

import json
import re
import time
from typing import Any

from pipelines.runtime.errors import TablesError
from pipelines.tables.folder_files import FolderFiles

POINTER = "_tables.json"

#: Names of folders that `grouplake rebuild` makes, with their number.
REBUILT = re.compile(r"_rebuilt-([0-9]{1,9})")

#: Seconds between two looks at the pointer of a folder in an object store, where each is a request.
_LOOK_SECONDS = 10.0

_BLOCKED = "blocked"


class Pointer:
    """Reads the pointer of the folder `root`; `present` is the folder that has the tables."""

    def __init__(self, root: str) -> None:
        self._files = FolderFiles(root)
        self._next_look = 0.0
        self.present = root
        self.look()

    def look(self, *, now: bool = False) -> bool:
        """Read the pointer, unless that was just done. Returns whether it has changed. `now` reads it in any case.

        Raises:
            TablesError: it cannot be read, or is damaged.
        """
        if not self._files.is_local:
            if not now and time.monotonic() < self._next_look:
                return False
            self._next_look = time.monotonic() + _LOOK_SECONDS
        name = pointed_folder(self._files)
        before, self.present = self.present, self._files.root if name is None else f"{self._files.root}/{name}"
        return before != self.present


def pointed_folder(files: FolderFiles) -> str | None:
    """Name of the folder that the pointer names, None without a pointer.

    Raises:
        TablesError: the pointer cannot be read, or is damaged.
    """
    content = _content(files)
    return None if content is None else str(content["folder"])


def are_old_tables_blocked(files: FolderFiles) -> bool:
    """Whether the writer of the pointer has blocked the tables of other folders: see `replaced_tables`.

    Versions of Grouplake that did not block them wrote pointers without a statement about it. Raises as `pointed_folder` does.
    """
    content = _content(files)
    return content is not None and content.get("old_tables") == _BLOCKED


def write_pointer(files: FolderFiles, name: str, *, are_old_blocked: bool = False) -> None:
    """Switch readers and writers to the folder of that name."""
    files.write(POINTER, json.dumps({"folder": name, **({"old_tables": _BLOCKED} if are_old_blocked else {})}).encode())


def remove_pointer(files: FolderFiles) -> None:
    """Switch readers and writers to the folder that has the pointer."""
    files.remove(POINTER)


def _content(files: FolderFiles) -> dict[str, Any] | None:
    content = files.read(POINTER)
    if content is None:
        return None
    try:
        found = json.loads(content)
        name = found["folder"]
    except (ValueError, TypeError, KeyError, RecursionError):
        found = name = None
    if not isinstance(found, dict) or not isinstance(name, str) or not REBUILT.fullmatch(name):
        raise TablesError(
            f'{files.root}/{POINTER} names no folder of rebuilt tables: restore this file, {{"folder": "_rebuilt-N"}} with the '
            "highest complete N"
        )
    return found
