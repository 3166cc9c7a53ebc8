"""Data files of a table: in a local folder, or in an object store."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote

import pyarrow as pa

from pipelines.runtime.timestamps import now_ms
from pipelines.tables.location import local_folder
from pipelines.tables.object_stores import Objects

#: Requests to an object store at the same time: each waits for the store rather than for a core.
_STORE_THREADS = 16


class TableFiles(Protocol):
    """Interface of the data files of one table. Paths are those of its log."""

    #: Location of the table.
    location: str
    #: Number of files to read or write at the same time.
    threads: int

    def open(self, path: str) -> pa.NativeFile:
        """Open a file for reading."""
        ...

    def write(self, path: str, write: Callable[[pa.NativeFile], None]) -> tuple[int, int]:
        """Write a file by calling `write` with its sink. Returns its size in bytes and its time in ms."""
        ...


class LocalFiles:
    """Files in a folder; Arrow reads and writes them without Python's global lock, so one thread per core is best."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.location = str(folder)
        self.threads = os.cpu_count() or 1

    def open(self, path: str) -> pa.NativeFile:
        """See `TableFiles`."""
        return pa.OSFile(str(self.folder / unquote(path)))

    def write(self, path: str, write: Callable[[pa.NativeFile], None]) -> tuple[int, int]:
        """See `TableFiles`."""
        file = self.folder / path
        if file.parent != self.folder:
            # change files are in a folder of their own; that of the table is not made again after its removal
            file.parent.mkdir(exist_ok=True)
        with pa.OSFile(str(file), "wb") as sink:
            write(sink)
        found = file.stat()
        return found.st_size, int(found.st_mtime * 1000)


class StoreFiles:
    """Objects in a store. A file is in memory while it is read or written, so each takes one request."""

    def __init__(self, uri: str) -> None:
        self._objects = Objects(uri)
        self.location = uri
        self.threads = _STORE_THREADS

    def open(self, path: str) -> pa.NativeFile:
        """See `TableFiles`."""
        return pa.BufferReader(pa.py_buffer(self._objects.read(unquote(path))))

    def write(self, path: str, write: Callable[[pa.NativeFile], None]) -> tuple[int, int]:
        """See `TableFiles`."""
        sink: Any = pa.BufferOutputStream()
        write(sink)
        data = sink.getvalue()
        self._objects.write(path, data.to_pybytes())
        return data.size, now_ms()


def files_of(uri: str) -> LocalFiles | StoreFiles:
    """Data files of the table at `uri`."""
    folder = local_folder(uri)
    return StoreFiles(uri.rstrip("/")) if folder is None else LocalFiles(folder)


def file_threads(files: TableFiles) -> ThreadPoolExecutor:
    """Create the threads for reading or writing many files."""
    return ThreadPoolExecutor(max_workers=files.threads)
