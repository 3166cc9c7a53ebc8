"""Writers of the tables in threads that take turns at gates, so that every order of their steps can be run."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from deltalake import DeltaTable
from patience import LIMIT_SECONDS

from pipelines.batch import apply
from pipelines.tables import writer
from pipelines.tables.delta_writes import write_rows
from pipelines.tables.writer import TablesWriter


class Actor:
    """A function in a thread that runs for a number of gates at a time. `outcome` is None, or the exception that ended it."""

    def __init__(self, name: str, work: Callable[[], None]) -> None:
        self.outcome: BaseException | None = None
        self.gates: list[str] = []
        self._work = work
        self._may_go, self._stopped = threading.Semaphore(0), threading.Semaphore(0)
        self._steps = 0
        self._is_over = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def advance(self, gates: int | None = None) -> bool:
        """Pass that many gates (None: run to the end); return whether there is more to do."""
        if not self._is_over:
            self._steps = 1_000_000 if gates is None else gates
            self._may_go.release()
            assert self._stopped.acquire(timeout=LIMIT_SECONDS)
        return not self._is_over

    def at_gate(self, name: str) -> None:
        """Called in the thread: wait here once the granted steps are done."""
        self.gates.append(name)
        if self._steps == 0:
            self._stopped.release()
            self._may_go.acquire()
        self._steps -= 1

    def _run(self) -> None:
        self._may_go.acquire()
        _CURRENT.actor = self
        try:
            self._work()
        except Exception as error:
            self.outcome = error
        self._is_over = True
        self._stopped.release()


_CURRENT = threading.local()


def _gate(name: str) -> None:
    actor = getattr(_CURRENT, "actor", None)
    if actor is not None:
        actor.at_gate(name)


def _gated(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        _gate(name)
        return function(*arguments, **named)

    return call


@contextmanager
def gates() -> Iterator[None]:
    """Put gates after every named step of a batch, and between a commit's read of the table version and its write."""
    real_commit = TablesWriter.commit

    def commit(self: TablesWriter, name: str, change: Any) -> int:
        return real_commit(self, name, _gated(change, f"changing:{name}"))

    with pytest.MonkeyPatch.context() as patch:
        for module in (apply, writer):
            patch.setattr(module, "failpoint", _gate)
        patch.setattr(TablesWriter, "commit", commit)
        patch.setattr(writer, "write_rows", _gated(write_rows, "writing:batches"))
        patch.setattr(DeltaTable, "create_write_transaction", _gated(DeltaTable.create_write_transaction, "claiming"))
        patch.setattr(DeltaTable, "restore", _gated(DeltaTable.restore, "restoring"))
        yield
