"""The same log in our tables, and what they answer."""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from stories import Setting

from coordinator_core.log.segments import SegmentSource
from coordinator_core.state.era import Era
from coordinator_core.state.range_reduction import RangeReducer
from pipelines.batch.apply import BatchApplier
from pipelines.batch.expiry_sweep import sweep
from pipelines.query.engine import Snapshot
from pipelines.source.changes import SCHEMA
from pipelines.source.reduction_rows import change_rows
from pipelines.tables.store import TableStore

_FAR_ABOVE_ALL_ROWS = 1_000_000_000


@dataclass(frozen=True)
class Answers:
    """What the tables say, by group; times and places left out."""

    offsets: Mapping[str, dict[tuple[str, int], tuple[int, int, str]]]
    pending: frozenset[tuple[str, str, int]]
    groups: Mapping[str, dict[str, Any]]
    members: Mapping[str, dict[str, dict[str, Any]]]
    assigned: Mapping[tuple[str, str], frozenset[tuple[str, int]]]


class Tables:
    """Tables of a log under `root`, without Spark: read from segment files, reduced, planned and written as the job does it."""

    def __init__(self, root: Path, setting: Setting) -> None:
        self._root = root
        self._setting = setting
        self._era = Era.named(setting.generation.era)

    def load(self, log: Path, seed: int) -> None:
        """Reads the log, in some batches whose borders `seed` decides."""
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
        """As `--expiry apply` does."""
        sweep(TableStore(str(self._root)), self._era, self._setting.retention_ms, now_ms)

    def ask(self) -> Answers:
        """Everything that a broker could be asked as well."""
        snapshot = Snapshot.open(str(self._root))
        offsets: dict[str, dict[tuple[str, int], tuple[int, int, str]]] = {}
        columns = "group_id, topic, partition, committed_offset, leader_epoch, metadata"
        for row in snapshot.query(f"SELECT {columns} FROM committed_offsets").to_pylist():
            epoch = -1 if row["leader_epoch"] is None else row["leader_epoch"]
            place = (row["topic"], row["partition"])
            offsets.setdefault(row["group_id"], {})[place] = (row["committed_offset"], epoch, row["metadata"])
        members: dict[str, dict[str, dict[str, Any]]] = {}
        for row in snapshot.query("SELECT * FROM members").to_pylist():
            members.setdefault(row["group_id"], {})[row["member_id"]] = row
        assigned: dict[tuple[str, str], set[tuple[str, int]]] = {}
        for row in snapshot.query("SELECT group_id, member_id, topic, partition FROM assignments").to_pylist():
            assigned.setdefault((row["group_id"], row["member_id"]), set()).add((row["topic"], row["partition"]))
        pending = snapshot.query("SELECT group_id, topic, partition FROM pending_offsets").to_pylist()
        return Answers(
            offsets,
            frozenset((row["group_id"], row["topic"], row["partition"]) for row in pending),
            {row["group_id"]: row for row in snapshot.query("SELECT * FROM groups").to_pylist()},
            members,
            {member: frozenset(places) for member, places in assigned.items()},
        )

    def _changes(self, source: SegmentSource, partition: int, start: int, end: int) -> list[pa.RecordBatch]:
        reducer = RangeReducer(self._era, partition)
        for columns in source.read_columns(partition, start, end):
            reducer.add(columns)
        return list(change_rows(reducer.finish(), start, end, self._era, self._setting.retention_ms))
