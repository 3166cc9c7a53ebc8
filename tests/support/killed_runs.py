"""The work of a process that tests kill: stages of the job and maintenance over a log of `CrashLog`, without Spark.

A run continues where the tables end, as an operator's script that restarts everything would. Each stage is some steps of the
log, one batch each, then an expiry sweep, then `maintain`.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from crash_log import CrashLog
from table_contents import contents_of

from coordinator_core.state.era import Era
from pipelines.batch.apply import BatchApplier
from pipelines.batch.expiry_sweep import sweep
from pipelines.query.engine import Snapshot
from pipelines.runtime.errors import UsageError
from pipelines.runtime.timestamps import at_ms
from pipelines.source.changes import SCHEMA
from pipelines.source.log_reading import SourceOptions, read_ranges
from pipelines.source.ranges import Offsets, ranges
from pipelines.tables.store import Batch, TableStore
from pipelines.tables.writer import TablesWriter
from pipelines.tables.writer_lock import writer_lock
from pipelines.upkeep.maintain import Maintenance, maintain

ERA = Era.named("4")
STEPS_PER_STAGE = 3

#: Maintenance deletes history older than this.
_HISTORY_DAYS = 12


@dataclass(frozen=True)
class Workload:
    """The work of every run."""

    log: CrashLog
    vacuum_hours: int

    @property
    def stages(self) -> list[range]:
        steps = range(len(self.log.ends))
        return [steps[first : first + STEPS_PER_STAGE] for first in steps[::STEPS_PER_STAGE]]

    def run(self, root: Path) -> None:
        """Run to the end: do all work that is left."""
        done = self._steps_done(root)
        for stage in self.stages:
            if stage[-1] + 1 >= done:
                self._apply(root, [(step - 1, step) for step in stage if step >= done], stage[-1])
                maintain(str(root), self._limits, at_ms(self.log.time_ms(stage[-1])), lambda _line: None)

    def apply(self, root: Path, before: int, last_step: int) -> None:
        """Apply one batch from the end of step `before` (-1: the beginning) to that of `last_step`, and a sweep."""
        self._apply(root, [(before, last_step)], last_step)

    def states(self, root: Path) -> list[dict[str, list[str]]]:
        """Run undisturbed, and return the contents of the tables after every batch, sweep and maintenance."""
        found: list[dict[str, list[str]]] = []
        finish = TablesWriter.finish

        def finished(writer: TablesWriter, *arguments: Any, **values: Any) -> Batch:
            last = finish(writer, *arguments, **values)
            found.append(contents_of(Snapshot.open(str(root))))
            return last

        with patch.object(TablesWriter, "finish", finished):
            self.run(root)
        return found

    def warm_up(self) -> None:
        """Load what every run needs, without starting a thread, so that processes can be forked afterwards."""
        self._change_rows({}, self.log.ends[0])

    @property
    def _limits(self) -> Maintenance:
        return Maintenance(history_days=_HISTORY_DAYS, vacuum_hours=self.vacuum_hours, target_file_mb=16)

    def _apply(self, root: Path, spans: list[tuple[int, int]], last_step: int) -> None:
        """Apply batches and a sweep as `grouplake run --expiry apply` does."""
        store = TableStore(str(root))
        with writer_lock(store.root, "test of crashes"):
            store.create()
            applier = BatchApplier(store, ERA, ERA.default_retention_ms, dict, bulk_rows=1_000_000)
            for before, step in spans:
                applier.apply_rows(self._change_rows(self.log.ends[before] if before >= 0 else {}, self.log.ends[step]))
            sweep(store, ERA, ERA.default_retention_ms, self.log.time_ms(last_step + 1), applier.writer)

    def _change_rows(self, start: Offsets, end: Offsets) -> pa.Table:
        options = SourceOptions.parse({"path": self.log.address, "era": ERA.name})
        return pa.Table.from_batches(list(read_ranges(options, ranges(start, end))), SCHEMA)

    def _steps_done(self, root: Path) -> int:
        try:
            last = TableStore(str(root)).last_batch()
        except UsageError:
            last = None
        return self.log.ends.index(dict(last.next_offsets)) + 1 if last else 0
