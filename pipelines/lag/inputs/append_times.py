"""Append times of the records at the largest lags, for topics whose timestamps the broker sets."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coordinator_core.codec.arrays import Int64s
from coordinator_core.health import NONE, AppendTime, LagMethod, TimestampSearch
from coordinator_core.health.sample_columns import integers
from coordinator_core.log.errors import LogError

#: Takes the steps of searches by (topic, partition).
Search = Callable[[Mapping[tuple[str, int], TimestampSearch]], Mapping[tuple[str, int], TimestampSearch]]

#: The methods whose interval a search narrows.
_NARROWED = pa.array([LagMethod.INTERPOLATED.value])


class NarrowedAges:
    """Append times of at most `most_partitions` partitions per sample, those with the largest lag."""

    def __init__(self, search: Search, most_partitions: int) -> None:
        self._search = search
        self._most = most_partitions
        self._known: dict[tuple[str, int], AppendTime] = {}

    def columns(self, positions: pa.Table, lag: pa.Table, offset: Int64s, append_time_topics: Sequence[str]) -> dict[str, Int64s]:
        """The columns `append_*` of `CommitColumns`; none if nothing was narrowed.

        `lag` is the lag without append times, a row per position. `offset` is the offset of the next data record of each row.
        `append_time_topics` are the topics with LogAppendTime.
        """
        of_topics = pc.is_in(positions["topic"], pa.array(append_time_topics, pa.string()))
        rows = np.flatnonzero(pc.and_(pc.is_in(lag["lag_method"], _NARROWED), of_topics).to_numpy())
        rows = rows[np.argsort(-integers(lag["lag"])[rows], kind="stable")]
        topics, partitions = positions["topic"], positions["partition"]
        chosen: dict[tuple[str, int], int] = {}
        for row in rows.tolist():
            if len(chosen) >= self._most:
                break
            key = topics[row].as_py(), partitions[row].as_py()
            chosen.setdefault(key, row)
        self._find({key: self._begun(row, lag, int(offset[row])) for key, row in chosen.items()})
        if not self._known:
            return {}
        columns = {name: np.full(lag.num_rows, NONE) for name in ("append_offset", "append_from_ms", "append_until_ms")}
        for key, append_time in self._known.items():
            for column, value in zip(columns.values(), append_time, strict=True):
                column[chosen[key]] = value
        return columns

    @staticmethod
    def _begun(row: int, lag: pa.Table, offset: int) -> TimestampSearch:
        sampled_at = lag["sampled_at"].cast(pa.int64())[row].as_py() // 1000
        low, high = (round(lag[name][row].as_py() * 1000) for name in ("lag_seconds_low", "lag_seconds_high"))
        return TimestampSearch(offset, sampled_at - high, sampled_at - low + 1)

    def _find(self, searches: Mapping[tuple[str, int], TimestampSearch]) -> None:
        """Search for the records that are not known yet, and forget all others."""
        same = {key for key, each in searches.items() if key in self._known and self._known[key].offset == each.offset}
        self._known = {key: self._known[key] for key in same}
        new = {key: each for key, each in searches.items() if key not in self._known}
        if not new:
            return
        try:
            found = self._search(new)
        except LogError:
            # the sample has just succeeded; the next one tries again
            return
        times = {key: each.append_time(log_append_time=True) for key, each in found.items()}
        self._known |= {key: each for key, each in times.items() if each is not None}
