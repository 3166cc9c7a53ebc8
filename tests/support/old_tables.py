"""Tables that earlier versions wrote, in tests/data.

`tables-0.1.0.tar.xz` has two batches with the first 60 % of the log kafka-4.1.1 (era 4), each followed by a sample, and a
maintenance batch. It was written by commit 56732a1, before folders had a layout.
"""

import tarfile
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
from genuine import DATA, segments_dir

from coordinator_core.state.era import Era
from pipelines.batch.apply import BatchApplier
from pipelines.examples.log.example_log import unpack
from pipelines.source.address import open_source, parse_address
from pipelines.source.changes import SCHEMA
from pipelines.source.log_reading import SourceOptions, read_ranges
from pipelines.source.ranges import ranges
from pipelines.tables.store import TableStore

ERA = Era.named("4")
SHARES = (0.3, 0.6)


def old_tables(version: str, into: Path) -> Path:
    """Extract the tables of that version below `into` and return their folder."""
    with tarfile.open(DATA / f"tables-{version}.tar.xz") as archive:
        unpack(archive, into)
    return into / f"tables-{version}"


class OldLog:
    """The log of the old tables, and batches of it."""

    def __init__(self, into: Path) -> None:
        self.address = f"segments:{segments_dir('4.1.1', into)}"
        source = open_source(parse_address(self.address), {})
        self.ends: Mapping[int, int] = source.end_offsets()
        source.close()

    def apply(self, root: Path, share: float = 1.0) -> BatchApplier:
        """Apply a batch up to that share of the log."""
        store = TableStore(str(root))
        store.create()
        applier = BatchApplier(store, ERA, ERA.default_retention_ms, dict, bulk_rows=1_000_000)
        last = store.last_batch()
        todo = ranges(last.next_offsets if last else {}, {p: int(end * share) for p, end in self.ends.items()})
        rows = read_ranges(SourceOptions.parse({"path": self.address}), todo)
        applier.apply_rows(pa.Table.from_batches(list(rows), SCHEMA))
        return applier

    def fresh(self, root: Path) -> Path:
        """Tables of the whole log by the present version, in the batches of the old tables and one more."""
        for share in (*SHARES, 1.0):
            self.apply(root, share)
        return root
