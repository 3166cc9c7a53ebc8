"""Our tables of the oracle's log, and their answers."""

import random
from pathlib import Path

import pyarrow as pa
from stories import Setting
from table_answers import Answers, answers

from coordinator_core.reduction.range_reduction import RangeReducer
from coordinator_core.sources.segments import SegmentSource
from coordinator_core.state.era import Era
from pipelines.batch.apply import BatchApplier
from pipelines.batch.expiry_sweep import sweep
from pipelines.source.changes import SCHEMA
from pipelines.source.reduction_rows import change_rows
from pipelines.tables.store import TableStore

_FAR_ABOVE_ALL_ROWS = 1_000_000_000


class Tables:
    """Tables of a log under `root`, without Spark: read from segment files, reduced, planned and written as the job does it."""

    def __init__(self, root: Path, setting: Setting) -> None:
        self._root = root
        self._setting = setting
        self._era = Era.named(setting.generation.era)

    def load(self, log: Path, seed: int) -> None:
        """Read the log in some batches whose borders `seed` decides."""
        store = TableStore(str(self._root))
        store.create()
        names = {topic_id: (topic, "cluster") for topic, topic_id in self._setting.topic_ids.items()}
        applier = BatchApplier(store, self._era, self._setting.retention_ms, lambda: names, bulk_rows=_FAR_ABOVE_ALL_ROWS)
        source = SegmentSource(log)
        draw = random.Random(seed)
        starts, ends = source.earliest_offsets(), source.end_offsets()
        for share in (draw.random() * 0.5, 0.5 + draw.random() * 0.4, 1.0):
            upto = {p: start + round((ends[p] - start) * share) for p, start in starts.items()}
            batches = [
                batch
                for partition, start in starts.items()
                if upto[partition] > start
                for batch in self._changes(source, partition, start, upto[partition])
            ]
            if batches:
                applier.apply_rows(pa.Table.from_batches(batches, SCHEMA))
            starts = upto

    def sweep(self, now_ms: int) -> None:
        """Sweep as `--expiry apply` does."""
        sweep(TableStore(str(self._root)), self._era, self._setting.retention_ms, now_ms)

    def answers(self) -> Answers:
        """The tables' rows that correspond to an answer of a broker."""
        return answers(self._root)

    def _changes(self, source: SegmentSource, partition: int, start: int, end: int) -> list[pa.RecordBatch]:
        reducer = RangeReducer(self._era, partition)
        for columns in source.read_columns(partition, start, end):
            reducer.add(columns)
        return list(change_rows(reducer.finish(), start, end, self._era, self._setting.retention_ms))
