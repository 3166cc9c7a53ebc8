"""Spark's checkpoint of the stream, beside the tables: `_checkpoint`, or one per claim where no lock excludes other jobs.

The checkpoint of a claim is useless once another writer has claimed the tables: its job cannot finish a batch, and a new job has
its own claim and its own checkpoint (docs/adr/0009).
"""

import re
from collections.abc import Callable
from typing import Any

from pipelines.tables.store import TableStore, first_line

_FOLDER = "_checkpoint"
_OF_CLAIM = re.compile(r"generation-([0-9]{1,18})")


def checkpoint_location(store: TableStore, generation: int | None) -> str:
    """Checkpoint folder for the stream of the claim `generation`; None for a job that has the lock."""
    return store.path(_FOLDER if generation is None else f"{_FOLDER}/generation-{generation}")


def remove_stale_checkpoints(spark: Any, store: TableStore, generation: int, progress: Callable[[str], None]) -> None:
    """Remove the checkpoints of claims before `generation`, the newest one.

    Uses the Hadoop file system with which Spark writes them: it supports the same stores, with their credentials and their folder
    markers in buckets. An error is reported and ignored: the next run removes the rest.
    """
    folder = spark._jvm.org.apache.hadoop.fs.Path(store.path(_FOLDER))
    try:
        files = folder.getFileSystem(spark._jsc.hadoopConfiguration())
        for found in files.listStatus(folder) if files.exists(folder) else ():
            named = _OF_CLAIM.fullmatch(found.getPath().getName())
            if named and int(named[1]) < generation and found.isDirectory():
                files.delete(found.getPath(), True)
    except Exception as error:  # errors of the JVM are errors of py4j or of PySpark in Python
        progress(f"cannot remove checkpoints of earlier runs under {store.path(_FOLDER)}: {_reason(error)}")


def _reason(error: Exception) -> str:
    thrown = getattr(error, "java_exception", None)
    return first_line(error) if thrown is None else str(thrown.toString())
