"""Spark's checkpoint of the stream: beside the tables in a local folder, on the driver's disk for tables in an object store.

The checkpoint only repeats the log position of the last batch, so a stream can start without one. On the driver's disk it costs
no requests, and the JVM needs neither the libraries nor the credentials of the store (docs/adr/0037).

Where no lock excludes other jobs, each claim has a checkpoint of its own. It is useless once another writer has claimed the
tables: its job cannot finish a batch, and a new job has its own claim and its own checkpoint (docs/adr/0009).
"""

import re
import shutil
import tempfile
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path

from pipelines.runtime.cache.folder import CHECKPOINTS, cache_root, entries, hold, remove
from pipelines.runtime.errors import TablesError
from pipelines.tables.location import local_folder
from pipelines.tables.object_stores import Objects
from pipelines.tables.store import TableStore

#: Folder of the checkpoint beside the tables.
FOLDER = "_checkpoint"
_OF_CLAIM = re.compile(r"generation-([0-9]{1,18})")


def checkpoint_location(store: TableStore, generation: int | None) -> str:
    """Checkpoint folder, as a URI, for the stream of the claim `generation`; None for a job that has the lock."""
    if local_folder(store.root) is not None:
        return store.uri(FOLDER if generation is None else f"{FOLDER}/generation-{generation}")
    name = f"{sha256(store.root.encode()).hexdigest()[:16]}-generation-{generation}"
    folder = cache_root() / CHECKPOINTS / name
    # no checkpoint of an earlier folder of tables with the same name
    if hold(folder) is None or folder.exists():
        folder = Path(tempfile.mkdtemp(prefix="grouplake-checkpoint-"))
    return folder.absolute().as_uri()


def remove_stale_checkpoints(store: TableStore, generation: int, progress: Callable[[str], None]) -> None:
    """Remove the checkpoints of claims before `generation`, the newest one, and those of ended jobs on this disk.

    An error is reported and ignored: the next run removes the rest.
    """
    for entry in entries(CHECKPOINTS):
        remove(entry.path)
    try:
        folder = local_folder(store.path(FOLDER))
        if folder is None:
            objects = Objects(store.root)
            keys = objects.keys(FOLDER)
            objects.delete([key for key in keys if _is_stale(Path(key).relative_to(FOLDER).parts[:-1], generation)])
        elif folder.is_dir():
            for path in folder.iterdir():
                if _is_stale([path.name], generation) and path.is_dir():
                    shutil.rmtree(path)
    except (OSError, TablesError) as error:
        progress(f"cannot remove checkpoints of earlier runs under {store.path(FOLDER)}: {error}")


def _is_stale(folders: Iterable[str], generation: int) -> bool:
    named = _OF_CLAIM.fullmatch(next(iter(folders), ""))
    return named is not None and int(named[1]) < generation
