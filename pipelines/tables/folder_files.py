"""Files beside the tables, such as requests to the job, and files of backups: in a local folder, or as objects of a store."""

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from pipelines.runtime.errors import TablesError
from pipelines.tables.location import local_folder
from pipelines.tables.object_stores import ObjectExists, Objects, reason_of

#: Largest file that `read` returns.
_LONGEST = 16 << 20
#: Largest object that `move` moves: it is in memory meanwhile.
_LONGEST_MOVED = 1 << 30
_CHUNK = 4 << 20


class FolderFiles:
    """The files of one folder or object-store prefix, by their names relative to it. A write replaces a file as a whole.

    Every method raises TablesError if the files cannot be read or written.
    """

    def __init__(self, root: str) -> None:
        self.root = root.rstrip("/") or "/"
        self._folder = local_folder(self.root)

    @property
    def is_local(self) -> bool:
        """Whether a look costs no request to a store."""
        return self._folder is not None

    def read(self, name: str) -> bytes | None:
        """The content of a small file, None without it."""
        with self._errors("read", name):
            if self._folder is None:
                return Objects(self.root).read_small(name, _LONGEST)
            try:
                return b"".join(_read_local(self._folder / name, _LONGEST))
            except (FileNotFoundError, NotADirectoryError):
                # the second one: a file has the name of the folder
                return None

    def chunks(self, name: str) -> Iterator[bytes]:
        """The content of a file of any size, piece by piece. Raises FileNotFoundError without it."""
        with self._errors("read", name):
            if self._folder is not None:
                yield from _read_local(self._folder / name, None)
                return
            file = self._store().open_input_file(name)
            while piece := file.read(_CHUNK):
                yield bytes(piece)

    def write(self, name: str, content: bytes | Iterable[bytes]) -> None:
        """Write a file. Readers see all of it or nothing."""
        with self._errors("write", name):
            pieces = (content,) if isinstance(content, bytes) else content
            if self._folder is None:
                file = self._store().open_output_stream(name)
                for piece in pieces:
                    file.write(piece)
                file.close()
            else:
                _write_local(self._folder / name, pieces)

    def move(self, name: str, target: str) -> None:
        """Move a file, if it is there. In an object store an existing target stays: an interrupted move has written it."""
        with self._errors("move", name), suppress(FileNotFoundError):
            if self._folder is not None:
                (self._folder / target).parent.mkdir(parents=True, exist_ok=True)
                (self._folder / name).replace(self._folder / target)
                return
            objects = Objects(self.root)
            content = objects.read_small(name, _LONGEST_MOVED)
            if content is not None:
                with suppress(ObjectExists):
                    objects.create(target, content)
                objects.delete([name])

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        with self._errors("remove", name), suppress(FileNotFoundError):
            if self._folder is None:
                self._store().delete_file(name)
            else:
                (self._folder / name).unlink()

    def remove_empty(self, folder: str) -> None:
        """Remove a folder that has no files any more; an object store has none."""
        if self._folder is not None:
            for where, _, _ in sorted(os.walk(self._folder / folder), reverse=True):
                with suppress(OSError):
                    Path(where).rmdir()

    def sizes(self, under: str = "") -> dict[str, int]:
        """Size in bytes of every file below `under`, by name; none without that folder."""
        with self._errors("list", under):
            if self._folder is None:
                found = self._store().get_file_info_selector(under, True, True)
                return {info.path: info.size for info in found if info.is_file}
            top = self._folder / under
            files = (Path(where) / name for where, _, names in os.walk(top) for name in names)
            return {str(path.relative_to(self._folder)): path.lstat().st_size for path in files}

    def _store(self) -> Any:
        # the class of `deltalake.fs` around this one passes buffers on that it does not accept
        from deltalake._internal import DeltaFileSystemHandler

        return DeltaFileSystemHandler(self.root)

    @contextmanager
    def _errors(self, what: str, name: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise
        except TablesError as error:
            raise TablesError(f"cannot {what} {self.root}/{name}: {error}") from error
        except OSError as error:
            reason = error.strerror or reason_of(error)
            raise TablesError(f"cannot {what} {self.root}/{name}: {reason}") from error


def _read_local(path: Path, longest: int | None) -> Iterator[bytes]:
    # the folder may come from outside: no link is followed, and a pipe does not block
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode) or (longest is not None and found.st_size > longest):
            raise OSError("it is not a small regular file" if longest else "it is not a regular file")
        while piece := os.read(file, _CHUNK):
            yield piece
    finally:
        os.close(file)


def _write_local(path: Path, pieces: Iterable[bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{uuid4().hex}.tmp")
    try:
        with draft.open("wb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
