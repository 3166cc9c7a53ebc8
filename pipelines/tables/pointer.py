"""The pointer to the present tables of a folder, `_tables.json`, which `grouplake rebuild` replaces once new tables are complete.

Without it the tables are in the folder itself. The tables of alerts always are: they have their own writer.
"""

import json
import re
import time

from pipelines.runtime.errors import TablesError
from pipelines.tables.folder_files import FolderFiles

POINTER = "_tables.json"

#: Names of folders that `grouplake rebuild` makes, with their number.
REBUILT = re.compile(r"_rebuilt-([0-9]{1,9})")

#: Seconds between two looks at the pointer of a folder in an object store, where each is a request.
_LOOK_SECONDS = 10.0


class Pointer:
    """Reads the pointer of the folder `root`; `present` is the folder that has the tables."""

    def __init__(self, root: str) -> None:
        self._files = FolderFiles(root)
        self._next_look = 0.0
        self.present = root
        self.look()

    def look(self) -> bool:
        """Read the pointer, unless that was just done. Returns whether it has changed.

        Raises:
            TablesError: it cannot be read, or is damaged.
        """
        if not self._files.is_local:
            if time.monotonic() < self._next_look:
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
    content = files.read(POINTER)
    if content is None:
        return None
    try:
        name = json.loads(content)["folder"]
    except (ValueError, TypeError, KeyError, RecursionError):
        name = None
    if not isinstance(name, str) or not REBUILT.fullmatch(name):
        raise TablesError(f"{files.root}/{POINTER} names no folder of rebuilt tables: restore this file, or remove it")
    return name


def write_pointer(files: FolderFiles, name: str) -> None:
    """Switch readers and writers to the folder of that name."""
    files.write(POINTER, json.dumps({"folder": name}).encode())
