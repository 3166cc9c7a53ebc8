"""Batches that end before one of their writes, as with a kill of the process."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import pytest

from pipelines.tables.writer import TablesWriter
from pipelines.tables.writers.delta_rs import DeltaRsWriter
from pipelines.tables.writers.table_write import TableWrite


class Killed(Exception):
    """In place of the kill."""


@contextmanager
def dying_before(name: str) -> Iterator[None]:
    """Fail before the write of this table."""

    def write(self: DeltaRsWriter, write: TableWrite) -> int:
        if write.table == name:
            raise Killed
        return real_write(self, write)

    def finish(*_: object, **_values: object) -> NoReturn:
        raise Killed

    real_write = DeltaRsWriter.write
    owner, method, replacement = (TablesWriter, "finish", finish) if name == "batches" else (DeltaRsWriter, "write", write)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, method, replacement)
        with pytest.raises(Killed):
            yield
