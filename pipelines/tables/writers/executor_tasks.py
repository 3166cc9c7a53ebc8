"""Tasks of a bulk write, run by the executors: rows → data files, which the driver commits.

A task yields a row per file: `added`, the JSON of an `add` action, `removed`, the path of a file that it replaces, or `changed`,
the JSON of the `cdc` action of a change file. No commit names the files of failed and of speculative tasks; `maintain` removes
them.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from pipelines.tables.sorted_files.file_ranges import FileRun, RunLookup
from pipelines.tables.sorted_files.sorted_files import open_file, split_rows, write_file
from pipelines.tables.table_files import files_of
from pipelines.tables.writers.sorted_merge import MergedFiles, SortedMerge

#: Rows that a task writes together, and holds in memory. A merge holds more if they are in one run of sorted files.
TASK_ROWS = 500_000

FILES_DDL = "added STRING, removed STRING, changed STRING"
_FILES = pa.schema([(name, pa.string()) for name in ("added", "removed", "changed")])


@dataclass(frozen=True)
class AppendTask:
    """Writes rows to files: one per TASK_ROWS, or sorted files if the rows are sorted."""

    uri: str
    schema: pa.Schema
    is_sorted: bool

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The function of `mapInArrow`."""
        files = files_of(self.uri)
        for rows in _parts(batches):
            typed = rows.cast(self.schema)
            parts = split_rows(typed) if self.is_sorted else [typed]
            yield _result(MergedFiles([], [write_file(files, part) for part in parts], []))


@dataclass(frozen=True)
class MergeTask:
    """Merges rows, sorted by key, into the runs of sorted files in their range; no other task has rows for these runs."""

    uri: str
    schema: pa.Schema
    key: tuple[str, ...]
    runs: Sequence[FileRun]
    has_feed: bool = False

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The function of `mapInArrow`."""
        files, lookup, merged = files_of(self.uri), RunLookup(self.runs), -1
        for rows in self._separable(batches, lookup):
            indexes = sorted({lookup.index(value) for value in rows[self.schema.names[0]].unique().to_pylist()})
            # rows after a run that is merged already become sorted files of their own
            sorted_files = [sorted_file for index in indexes if index > merged for sorted_file in self.runs[index].sorted_files]
            merged = max(merged, indexes[-1])
            merge = SortedMerge(files, self.schema, self.key, rows, has_feed=self.has_feed)
            yield _result(merge.replaced(sorted_files))

    def _separable(self, batches: Iterable[pa.RecordBatch], lookup: RunLookup) -> Iterator[pa.Table]:
        """Divide the rows into parts of about TASK_ROWS without a run of sorted files in common."""
        waiting: pa.Table | None = None
        limit = TASK_ROWS
        for batch in batches:
            rows = pa.Table.from_batches([batch])
            waiting = rows if waiting is None else pa.concat_tables([waiting, rows])
            if waiting.num_rows < limit:
                continue
            end = self._last_cut(waiting, lookup)
            if end:
                yield waiting.slice(0, end)
            waiting = waiting.slice(end)
            limit = max(TASK_ROWS, 2 * waiting.num_rows)
        if waiting is not None and waiting.num_rows:
            yield waiting

    def _last_cut(self, rows: pa.Table, lookup: RunLookup) -> int:
        values = rows[self.schema.names[0]].to_pylist()
        return next((end for end in range(len(values) - 1, 0, -1) if lookup.is_separable(values[end - 1], values[end])), 0)


@dataclass(frozen=True)
class ReadTask:
    """Reads columns of the data files whose paths it gets."""

    uri: str
    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The function of `mapInArrow`."""
        files = files_of(self.uri)
        for batch in batches:
            for path in batch["path"].to_pylist():
                for rows in open_file(files, path).iter_batches(columns=self.schema.names, use_threads=False):
                    yield rows.select(self.schema.names).cast(self.schema)


@dataclass
class WrittenFiles:
    """Result of all tasks of a write: `add` actions, paths of replaced sorted files, and `cdc` actions."""

    added: list[dict[str, Any]] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    changed: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def of(cls, rows: pa.Table) -> "WrittenFiles":
        """Read the rows of the tasks."""
        added, changed = ([json.loads(text) for text in rows[name].drop_null().to_pylist()] for name in ("added", "changed"))
        return cls(added, rows["removed"].drop_null().to_pylist(), changed)


def _parts(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    waiting: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        waiting.append(batch)
        count += batch.num_rows
        if count >= TASK_ROWS:
            yield pa.Table.from_batches(waiting).combine_chunks()
            waiting, count = [], 0
    if count:
        yield pa.Table.from_batches(waiting).combine_chunks()


def _result(files: MergedFiles) -> pa.RecordBatch:
    rows = [
        *({"added": json.dumps(action)} for action in files.added),
        *({"removed": sorted_file.path} for sorted_file in files.removed),
        *({"changed": json.dumps(action)} for action in files.changed),
    ]
    return pa.RecordBatch.from_pylist(rows, _FILES)
