"""Storage of a day of samples: a simulated day of few groups, before and after `maintain`, scaled to 10,000 groups.

Groups of 50 partitions, one topic partition to each 50 group partitions, a sample every 30 s. All topics grow all the time. Half
of the partitions of a group are caught up at a sample, and half have a lag that changes; a twentieth of the groups has stopped.
"""

import argparse
import shutil
import tempfile
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from benchmarks.arguments import count
from benchmarks.report import print_machine, print_table
from coordinator_core.codec.arrays import Int64s
from coordinator_core.health import DEFAULT_KEEP, CommitColumns, EndOffsetSample, SampledPartitions, lag_columns, samples_table
from coordinator_core.state.era import Era
from pipelines.lag.inputs.open_transactions import COLUMNS as OPEN_TRANSACTION_COLUMNS
from pipelines.lag.tables.lag_history import LagHistory
from pipelines.runtime.phases import Phases
from pipelines.runtime.timestamps import at_ms
from pipelines.tables import definitions
from pipelines.tables.delta_writes import stamped
from pipelines.tables.store import TableStore
from pipelines.tables.writer import TablesWriter
from pipelines.upkeep.maintain import Maintenance, maintain

_GROUPS = 10_000
_PARTITIONS = 50
_INTERVAL_MS = 30_000
_START_MS = 1_795_000_000_000
_STOPPED_EVERY = 20
#: Samples of an append: as many as the job compacts together.
_APPENDED = 100
#: Samples that the lag is computed from, to keep the simulation short.
_KNOWN_SAMPLES = 40


class Day:
    """Groups and topics of one simulated day."""

    def __init__(self, groups: int) -> None:
        self.random = np.random.default_rng(1)
        self.groups = groups
        self.topics = max(1, groups // _PARTITIONS)
        self.ends = self.random.integers(10**6, 10**9, self.topics * _PARTITIONS)
        self.rates = self.random.lognormal(3, 2, len(self.ends))
        self.partition = np.concatenate([np.arange(_PARTITIONS) + group % self.topics * _PARTITIONS for group in range(groups)])
        self.stopped = np.repeat(np.arange(groups) % _STOPPED_EVERY == 0, _PARTITIONS)
        self.stopped_at = self.ends[self.partition]
        self.names = pa.array(np.repeat([f"group-{group:05}" for group in range(groups)], _PARTITIONS).tolist(), pa.string())
        self.topic_names = [f"topic-{number:03}" for number in range(self.topics)]
        self.samples: list[pa.Table] = []
        self.history = LagHistory()

    def sample(self, now_ms: int) -> tuple[pa.Table, pa.Table, pa.Table]:
        """Rows of `end_offsets`, `lag` and `lag_history` of one sample."""
        self.ends = self.ends + self.random.poisson(self.rates * _INTERVAL_MS / 1000)
        taken = samples_table(
            EndOffsetSample(topic, topic, number, now_ms, now_ms + 20, 0, int(self.ends[at * _PARTITIONS + number]), None, 1)
            for at, topic in enumerate(self.topic_names)
            for number in range(_PARTITIONS)
        )
        self.samples = [*self.samples[-_KNOWN_SAMPLES:], taken]
        lag = self._lag()
        return taken, lag, self.history.add(lag, now_ms + 20, at_ms(now_ms))

    def _lag(self) -> pa.Table:
        sampled = SampledPartitions(pa.concat_tables(self.samples))
        topic = pa.array([self.topic_names[number] for number in (self.partition // _PARTITIONS).tolist()], pa.string())
        number = pa.array(self.partition % _PARTITIONS, pa.int32())
        lag = lag_columns(
            CommitColumns(
                sampled.partition_numbers(pa.chunked_array([topic]), pa.chunked_array([number])),
                np.where(self.stopped, self.stopped_at, self.ends[self.partition] - self._unread()),
            ),
            sampled.columns,
        )
        names = {"group_id": self.names, "topic": topic, "partition": number}
        unblocked = {name: pa.nulls(lag.num_rows, kind) for name, kind in OPEN_TRANSACTION_COLUMNS.items()}
        return pa.table({**names, **dict(zip(lag.column_names, lag.columns, strict=True)), **unblocked})

    def _unread(self) -> Int64s:
        """Records of up to 20 s, of half of the partitions."""
        seconds = self.random.uniform(0, 20, len(self.partition)) * (self.random.random(len(self.partition)) < 0.5)
        unread: Int64s = np.floor(self.rates[self.partition] * seconds).astype(np.int64)
        return unread


def main(arguments: list[str] | None = None) -> None:
    made = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    made.add_argument("--groups", type=count, default=50, help="groups of 50 partitions (default 50)")
    made.add_argument("--hours", type=int, default=24, help="simulated time (default 24)")
    options = made.parse_args(arguments)
    print_machine()
    folder = Path(tempfile.mkdtemp(prefix="grouplake-bench-"))
    try:
        _measure(Day(options.groups), folder, options.hours * 3_600_000 // _INTERVAL_MS)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _measure(day: Day, folder: Path, samples: int) -> None:
    store = TableStore(str(folder))
    store.create()
    writer = TablesWriter.claim(store)
    writer.begin()
    rows: dict[str, list[pa.Table]] = {"end_offsets": [], "lag_history": []}
    lag = pa.table({})
    for number in range(samples):
        ends, lag, history = day.sample(_START_MS + number * _INTERVAL_MS)
        rows["end_offsets"].append(ends)
        rows["lag_history"].append(history)
        if number % _APPENDED == _APPENDED - 1 or number == samples - 1:
            for name, tables in rows.items():
                _append(writer, name, pa.concat_tables(tables))
                tables.clear()
    _append(writer, "lag", lag.append_column("commits_read_until", pa.array([at_ms(_START_MS)] * lag.num_rows)))
    end = at_ms(_START_MS + samples * _INTERVAL_MS)
    era = Era.named("4")
    writer.finish(Phases(end), end, era=era.name, retention_ms=era.default_retention_ms, next_offsets={})
    written = {name: _bytes(store, name) for name in ("end_offsets", "lag_history", "lag")}
    thinned = {}
    for days in (0, 1):
        maintain(store.root, Maintenance(90, 168, 16, DEFAULT_KEEP), end + timedelta(days=days), lambda _line: None)
        thinned[days] = {name: _bytes(store, name) for name in rows}
    scale = _GROUPS / day.groups / 1e9
    print_table(
        ("GB of 10,000 groups", "written", "kept while it is the last day", "kept when it is older"),
        [(name, *(f"{sizes[name] * scale:.2f}" for sizes in (written, thinned[0], thinned[1]))) for name in rows],
    )
    print_table(("MB of a sample of 10,000 groups", "`lag`"), [("", f"{written['lag'] * scale * 1e3:.1f}")])


def _append(writer: TablesWriter, name: str, rows: pa.Table) -> None:
    schema = definitions.table(name).schema
    missing = [field for field in schema if field.name not in rows.schema.names and field.name != "batch_id"]
    for field in missing:
        rows = rows.append_column(field.name, pa.nulls(rows.num_rows, field.type))
    rows = rows.append_column("batch_id", pa.repeat(pa.scalar(0), rows.num_rows)).select(schema.names).cast(schema)

    def change(table: DeltaTable, stamp: str) -> bool:
        write_deltalake(table, rows, mode="append", commit_properties=stamped(stamp))
        return True

    writer.commit(name, change)


def _bytes(store: TableStore, name: str) -> int:
    """Size of the files of the newest version."""
    sizes = pa.table(store.table(name).get_add_actions(flatten=True))["size_bytes"].to_pylist()
    return sum(sizes)


if __name__ == "__main__":
    main()
