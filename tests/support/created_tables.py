"""New tables, copied from those that this process has created once: two dozen of them take CPU time."""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

from pipelines.tables import definitions
from pipelines.tables.store import TableStore


def created_tables(root: Path | str) -> TableStore:
    """The tables of a folder or an object store, after `TableStore.create`."""
    store = TableStore(str(root))
    if "://" in store.folder or store.exists():
        store.create()
    else:
        # with the time of the copy, by which files are removed
        shutil.copytree(_created(definitions.WRITE_ORDER), store.folder, copy_function=shutil.copyfile, dirs_exist_ok=True)
    return store


@cache
def _created(_names: tuple[str, ...]) -> Path:
    """A folder with tables of these names: a test may have changed the definitions."""
    folder = tempfile.mkdtemp(prefix="grouplake-created-tables-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    TableStore(folder).create()
    return Path(folder)
