"""Spark's checkpoint of the stream, beside the tables: `_checkpoint`, or one for each claim where no lock holds off other jobs.

The checkpoint of a claim is of no use once another writer has claimed the tables: its job cannot finish a batch, and a new job
takes a claim, and so a checkpoint, of its own (docs/adr/0009).
"""

import re
from collections.abc import Callable
from typing import Any

from pipelines.tables.store import TableStore, first_line

_FOLDER = "_checkpoint"
_OF_CLAIM = re.compile(r"generation-([0-9]{1,18})")


def checkpoint_location(store: TableStore, generation: int | None) -> str:
    """Where Spark keeps its notes about the stream of the claim `generation`; None: of a job that holds the lock."""
    return store.path(_FOLDER if generation is None else f"{_FOLDER}/generation-{generation}")


def remove_stale_checkpoints(spark: Any, store: TableStore, generation: int, progress: Callable[[str], None]) -> None:
    """Removes the checkpoints of claims before `generation`, the newest one.

    Through the file system of Hadoop that Spark writes them with: that knows every store that can have any, its credentials, and
    the markers that it puts into buckets for folders. A store that refuses is reported, and stops nothing: what is left is
    removed by the next run.
    """
    folder = spark._jvm.org.apache.hadoop.fs.Path(store.path(_FOLDER))
    try:
        files = folder.getFileSystem(spark._jsc.hadoopConfiguration())
        for found in files.listStatus(folder) if files.exists(folder) else ():
            named = _OF_CLAIM.fullmatch(found.getPath().getName())
            if named and int(named[1]) < generation and found.isDirectory():
                files.delete(found.getPath(), True)
    except Exception as error:  # errors of the JVM reach Python as those of py4j or of PySpark
        progress(f"cannot remove checkpoints of earlier runs under {store.path(_FOLDER)}: {_reason(error)}")


def _reason(error: Exception) -> str:
    thrown = getattr(error, "java_exception", None)
    return first_line(error) if thrown is None else str(thrown.toString())
