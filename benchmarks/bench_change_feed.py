"""CPU and bytes of micro-batches with and without a change data feed of `offsets`, `groups` and `members`.

Two copies of the same tables get the same batches in turn, in one process with the code of the job. Of a pair the copy without a
feed is first and the other one second, then the reverse. CPU is that of the process, all threads included.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.arguments import cache_folder, count, counts, short
from benchmarks.large_tables import BULK_ROWS, ERA, NEWEST_MS, TablesShape, copied, large_tables
from benchmarks.offset_changes import Changes, as_change_rows
from benchmarks.report import print_machine, print_table
from pipelines.batch.apply import BatchApplier
from pipelines.tables.change_data_feed import FEED_TABLES
from pipelines.tables.store import TableStore

#: Uncounted batches, the first of which enables the feed.
_WARM_UP = 3


@dataclass
class Side:
    """A copy of the tables, with the CPU seconds and the new bytes of each counted batch."""

    applier: BatchApplier
    root: Path
    cpu: list[float] = field(default_factory=list)
    written: list[int] = field(default_factory=list)
    of_feed: list[int] = field(default_factory=list)

    def apply(self, batches: dict[int, bytes], start: dict[int, int], *, is_counted: bool) -> None:
        """Apply a round of changes."""
        rows, before = as_change_rows(batches, start), self._files()
        begun = time.process_time()
        self.applier.apply_rows(rows)
        seconds = time.process_time() - begun
        if is_counted:
            new = {path: size for path, size in self._files().items() if path not in before}
            self.cpu.append(seconds)
            self.written.append(sum(new.values()))
            self.of_feed.append(sum(size for path, size in new.items() if "_change_data" in path.parts))

    def _files(self) -> dict[Path, int]:
        return {
            path.relative_to(self.root): path.stat().st_size
            for name in FEED_TABLES
            for path in (self.root / name).rglob("*")
            if path.is_file()
        }


def side(store: TableStore, to: Path, feed_tables: frozenset[str]) -> Side:
    """A copy of the tables, and the job that writes it."""
    made = copied(store, to)
    applier = BatchApplier(made, ERA, ERA.default_retention_ms, dict, bulk_rows=BULK_ROWS, feed_tables=feed_tables)
    return Side(applier, to)


def measured(size: int, groups: int, changed: int, rounds: int, cache: Path) -> tuple[Side, Side]:
    """Both copies after the same batches."""
    shape = TablesShape(size)
    store = large_tables(size, cache)
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        pair = side(store, Path(scratch) / "off", frozenset()), side(store, Path(scratch) / "on", frozenset(FEED_TABLES))
        changes = Changes(shape)
        for number in range(_WARM_UP + rounds):
            start = changes.next_offsets
            batches = changes.round(groups, changed, NEWEST_MS)
            for each in pair if number % 2 else reversed(pair):
                each.apply(batches, start, is_counted=number >= _WARM_UP)
        return pair


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--offsets", "--records", type=counts, default=counts("10k,1M"), help="offsets in the tables")
    parser.add_argument("--groups", type=counts, default=counts("20,1000"), help="groups per batch")
    parser.add_argument("--changed", type=count, default=1_000, help="changed offsets per batch")
    parser.add_argument("--rounds", type=int, default=10, help="pairs of measured batches")
    parser.add_argument("--cache", type=Path, default=cache_folder(), help="folder of generated tables")
    options = parser.parse_args(arguments)
    print_machine()
    options.cache.mkdir(parents=True, exist_ok=True)
    rows: list[list[object]] = []
    for size in options.offsets:
        for groups in options.groups:
            off, on = measured(size, groups, options.changed, options.rounds, options.cache)
            ratio = statistics.median(b / a for a, b in zip(off.cpu, on.cpu, strict=True))
            rows.append(
                [
                    short(size),
                    groups,
                    *(f"{1000 * statistics.median(each.cpu):.0f}" for each in (off, on)),
                    f"{ratio:.1f}",
                    *(f"{statistics.median(each.written) / 1e6:.2f}" for each in (off, on)),
                    f"{statistics.median(on.of_feed) / 1e6:.3f}",
                ]
            )
    head = ["offsets", "groups", "CPU ms off", "CPU ms on", "median of ratios", "MB off", "MB on", "of which feed"]
    print_table(head, rows)


if __name__ == "__main__":
    main()
