"""Maintenance of tables that a job is writing: table by table, so that batches and samples wait for one table at most."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime

from pipelines.batch.without_records import finish_batch
from pipelines.runtime.phases import Phases
from pipelines.tables import definitions
from pipelines.tables.store import Batch, TableStore
from pipelines.tables.writer import TablesWriter
from pipelines.upkeep.maintain import Maintenance, TableStep, compact_batches, describe_maintenance, steps, tidy
from pipelines.upkeep.sample_retention import removable_share

#: Share of removable rows from which a table of samples is rewritten: a rewrite takes as long as the whole table is large.
_LEAST_THINNED = 0.1

#: Pause between two tables: a waiting batch gets the lock only while it is free.
_PAUSE_SECONDS = 0.05

#: Holds the lock of the batches and gives the writer of the tables.
Hold = Callable[[], AbstractContextManager[TablesWriter]]

#: One piece of the work, during which no batch is applied.
_Part = Callable[[TablesWriter, Batch], None]


class MaintenanceInSteps:
    """One maintenance of the tables under `root` by the job that holds them, with the limits and the time of `now`."""

    def __init__(self, root: str, hold: Hold, limits: Maintenance, now: datetime) -> None:
        self._root, self._hold, self._limits, self._now = root, hold, limits, now
        self._phases = Phases(datetime.now(UTC))
        self._lines: list[str] = []
        self._removed = 0
        self._longest_seconds = 0.0

    def run(self, is_stopped: Callable[[], bool]) -> tuple[str, ...] | None:
        """Maintain all tables, and write a row of `batches` about it.

        Each table that changes has its own row as well, since other batches are written in between. Returns the lines of the
        result; None if stopped before the end.

        Raises:
            AnotherWriter: another job took over the tables.
            TablesError: a table cannot be written.
        """
        for part in self._parts():
            if is_stopped():
                return None
            with self._held() as writer:
                if writer.last is None:
                    return ("the tables have no batch yet",)
                part(writer, writer.last)
            time.sleep(_PAUSE_SECONDS)
        with self._held() as writer:
            assert writer.last is not None, "the parts return without a batch"
            writer.begin()
            batch = finish_batch(writer, writer.last, self._phases, datetime.now(UTC))
        done = f"{self._removed} files removed, batches waited for {self._longest_seconds:.1f} s at most"
        return (*self._lines, f"{describe_maintenance(batch)}; {done}")

    def _parts(self) -> Iterator[_Part]:
        of_table: dict[str, list[TableStep]] = {}
        for step in steps(self._limits, self._now, self._lines.append):
            of_table.setdefault(step.table, []).append(step)
        for name, changes in of_table.items():
            yield self._change([step for step in changes if step.phase != "thin" or self._is_thinning_due(name)])
        yield self._compact_batches
        for name in definitions.WRITE_ORDER:
            yield self._tidy(name)

    def _change(self, changes: Sequence[TableStep]) -> _Part:
        def part(writer: TablesWriter, last: Batch) -> None:
            phases = Phases(datetime.now(UTC))
            writer.begin()
            before = [writer.version(step.table) for step in changes]
            for step in changes:
                # the phase "age" is for the batch that ends the maintenance: readers look for it
                with phases.timed("compact"), self._phases.timed(step.phase):
                    writer.commit(step.table, step.change)
            if before != [writer.version(step.table) for step in changes]:
                finish_batch(writer, last, phases, datetime.now(UTC))

        return part

    def _compact_batches(self, writer: TablesWriter, last: Batch) -> None:
        with self._phases.timed("compact"):
            compact_batches(writer, last, self._limits, self._now, self._lines.append)

    def _tidy(self, name: str) -> _Part:
        def part(writer: TablesWriter, _last: Batch) -> None:
            with self._phases.timed("tidy"):
                self._removed += tidy(writer, name, self._limits.vacuum_hours, lambda _line: None)

        return part

    def _is_thinning_due(self, name: str) -> bool:
        """Read the table while batches are applied. A `store` of its own: open tables are not shared between threads."""
        with self._phases.timed("thin"):
            table = TableStore(self._root).table(name)
            return removable_share(name, self._limits.keep, self._now, table) >= _LEAST_THINNED

    @contextmanager
    def _held(self) -> Iterator[TablesWriter]:
        with self._hold() as writer:
            started = time.monotonic()
            try:
                yield writer
            finally:
                self._longest_seconds = max(self._longest_seconds, time.monotonic() - started)
