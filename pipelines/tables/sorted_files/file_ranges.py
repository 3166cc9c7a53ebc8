"""Ranges of keys whose rows can be merged independently: no file belongs to two of them."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.tables.sorted_files.sorted_files import SortedFile


@dataclass(frozen=True)
class FileRun:
    """Sorted files whose ranges overlap, with their common range; `high` is None without an upper bound."""

    low: str
    high: str | None
    sorted_files: tuple[SortedFile, ...]

    @property
    def rows(self) -> int:
        """Number of rows."""
        return sum(sorted_file.rows for sorted_file in self.sorted_files)


def file_runs(sorted_files: Sequence[SortedFile]) -> list[FileRun]:
    """Divide the sorted files of a table, in the order of `sorted_files_of`, into runs with disjoint ranges."""
    runs: list[FileRun] = []
    for sorted_file in sorted_files:
        last = runs[-1] if runs else None
        # a file without statistics may have any row, so all sorted files are one run
        low, high = (
            (sorted_file.low, sorted_file.high) if sorted_file.low is not None and sorted_file.high is not None else ("", None)
        )
        if last is None or (last.high is not None and low > last.high):
            runs.append(FileRun(low, high, (sorted_file,)))
        else:
            end = None if last.high is None or high is None else max(last.high, high)
            runs[-1] = FileRun(last.low, end, (*last.sorted_files, sorted_file))
    return runs


def range_starts(runs: Sequence[FileRun], count: int) -> list[str]:
    """Starts of the second and further of `count` ranges with similar numbers of rows; fewer if there are fewer runs."""
    total, seen = sum(run.rows for run in runs), 0
    starts: list[str] = []
    for run in runs:
        if seen and seen * count >= total * (len(starts) + 1):
            starts.append(run.low)
        seen += run.rows
    return starts


class RunLookup:
    """The run of each key."""

    def __init__(self, runs: Sequence[FileRun]) -> None:
        self._runs = runs
        self._lows = [run.low for run in runs]

    def index(self, key: str) -> int:
        """Index of the run that contains `key`, or of the last one before it; -1 before the first."""
        return bisect_right(self._lows, key) - 1

    def is_separable(self, before: str, key: str) -> bool:
        """True if the rows up to key `before` can be merged without those from `key`, the next one, on."""
        index = self.index(key)
        if before == key or index != self.index(before):
            return before != key
        high = self._runs[index].high if index >= 0 else ""
        return index < 0 or (high is not None and key > high)
