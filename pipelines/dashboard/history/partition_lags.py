"""The lag of the partitions of a group over time, of the partitions with the greatest lag in a span.

`lag_history` has the partitions that were behind at each sample. A chart needs few samples: of each part of the span, the one
with the greatest lag of the topic.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby, pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.dashboard.history.group_samples import greatest_by_part
from pipelines.dashboard.history.span import Span
from pipelines.runtime.timestamps import TIMESTAMP
from pipelines.tables.store import literal, timestamp_literal

Row = dict[str, Any]

#: Most samples of a topic in a span.
BUCKETS = 60
#: Partitions whose samples are returned; the others are counted.
MOST_PARTITIONS = 24
#: A row of `lag_history` is at most ten minutes after the one before it, unless samples are rare.
_BEFORE = timedelta(minutes=20)
#: In place of a greatest lag.
_UNKNOWN: Row = {"at": None, "lag": None}

# the arrays are read for the chosen samples only
_BEHIND = """
SELECT topic, sampled_at AS at, unknown_partitions, behind FROM lag_history
WHERE group_id = {group} AND sampled_at IN ({times})
"""


def chosen_samples(query: Callable[[str], pa.Table], group: str, span: Span, samples: pa.Table) -> pa.Table:
    """The sample of each part of the span, by topic and time, with the partitions that were behind.

    `samples` are those of the group in the span and before it, as in `SAMPLES`.
    """
    near = samples.filter(pc.greater_equal(samples["at"], pa.scalar(span.start - _BEFORE, TIMESTAMP)))
    chosen = greatest_by_part(near, span, BUCKETS)
    pairs = set(_places(chosen))
    times = sorted({at for _, at in pairs}) or [span.end]
    sql = _BEHIND.format(
        group=literal(group),
        times=", ".join(map(timestamp_literal, times)),
    )
    found = query(sql)
    # topics are sampled at the same times, of which each shows others
    is_chosen = pa.array([place in pairs for place in _places(found)], pa.bool_())
    return found.filter(is_chosen).sort_by([("topic", "ascending"), ("at", "ascending")])


def _places(samples: pa.Table) -> Iterator[tuple[str, datetime]]:
    return zip(samples["topic"].to_pylist(), samples["at"].to_pylist(), strict=True)


def partition_lags(
    samples: pa.Table,
    span: Span,
    points: Sequence[Row],
    offsets: Sequence[Row],
    first: Collection[Row],
    sampled_at: datetime | None,
) -> Row:
    """`rows` of the partitions with the greatest lag in `samples` and of those of `first`, by partition, and what they leave out.

    There are as many rows as the group has partitions, up to `MOST_PARTITIONS`, so that their number does not change with the
    lag; none if no partition was behind in the span. A row has the present `lag` of `offsets`, and `samples` with `at`, `until`
    and `lag`, which is None where it is unknown or nothing was sampled, as in `points`, the lag of the group. The last one ends
    at `sampled_at`, the last sample of the moment. `hidden` is the number of other partitions, `hidden_lag` their greatest lag.
    """
    behind = _behind(samples)
    current = {(row["topic"], row["partition"]): row["lag"] for row in offsets}
    chosen = _strongest(behind, current, {(row["topic"], row["partition"]) for row in first})
    if not any(lag for *_, lag in chosen):
        return {"rows": [], "hidden": 0, "hidden_lag": None}
    # in the order of their numbers a pattern over partitions can be seen, and a partition keeps its place
    shown, hidden = sorted(chosen[:MOST_PARTITIONS]), chosen[MOST_PARTITIONS:]
    lags = _lags_by_sample(behind, shown)
    times = samples.drop_columns(["behind"]).to_pylist()
    of_topic = {topic: list(rows) for topic, rows in groupby(enumerate(times), lambda each: each[1]["topic"])}
    gaps = [(before["at"], after["at"]) for before, after in pairwise(points) if before["lag"] is None]
    end = min(span.end, sampled_at or span.end)
    rows = []
    for topic, partition, _ in shown:
        # a topic without samples has none to draw
        drawn = _samples(of_topic.get(topic, ()), lags[topic, partition], span.start, end, gaps)
        now = {"at": end, "lag": current.get((topic, partition))}
        most = max((each for each in [*drawn, now] if each["lag"] is not None), key=lambda each: each["lag"], default=_UNKNOWN)
        place = {"topic": topic, "partition": partition, "lag": now["lag"]}
        rows.append({**place, "most_lag": most["lag"], "most_at": most["at"], "samples": drawn})
    return {
        "rows": rows,
        "hidden": len(hidden),
        "hidden_lag": max((lag for *_, lag in hidden), default=None),
    }


def _behind(samples: pa.Table) -> pa.Table:
    """One row per sample and partition that was behind: number of the sample, topic, partition, lag."""
    arrays = samples["behind"].combine_chunks()
    numbers, flat = pc.list_parent_indices(arrays), pc.list_flatten(arrays)
    return pa.table(
        {
            "sample": numbers,
            "topic": samples["topic"].combine_chunks().take(numbers),
            "partition": pc.struct_field(flat, "partition"),
            "lag": pc.struct_field(flat, "lag"),
        }
    )


def _strongest(
    behind: pa.Table, current: Mapping[tuple[str, int], int | None], first: Collection[tuple[str, int]]
) -> list[tuple[str, int, int]]:
    """Topic, partition and greatest lag of all partitions, the greatest first, after the partitions of `first`."""
    greatest = behind.group_by(["topic", "partition"]).aggregate([("lag", "max")])
    lags = {name: lag or 0 for name, lag in current.items()}
    for topic, partition, lag in zip(*(greatest[name].to_pylist() for name in ("topic", "partition", "lag_max")), strict=True):
        lags[topic, partition] = max(lags.get((topic, partition), 0), lag or 0)
    return sorted(
        ((*name, lag) for name, lag in lags.items()),
        key=lambda row: ((row[0], row[1]) not in first, -row[2], row[0], row[1]),
    )


def _lags_by_sample(behind: pa.Table, shown: Sequence[tuple[str, int, int]]) -> dict[tuple[str, int], dict[int, int]]:
    found: dict[tuple[str, int], dict[int, int]] = {(topic, partition): {} for topic, partition, _ in shown}
    wanted = pa.array(sorted({partition for _, partition, _ in shown}), pa.int32())
    for row in behind.filter(pc.is_in(behind["partition"], wanted)).to_pylist():
        of_partition = found.get((row["topic"], row["partition"]))
        if of_partition is not None:
            of_partition[row["sample"]] = row["lag"]
    return found


def _samples(
    times: Sequence[tuple[int, Row]],
    lags: Mapping[int, int],
    begin: datetime,
    end: datetime,
    gaps: Sequence[tuple[datetime, datetime]],
) -> list[Row]:
    """The samples of a partition between two times."""
    found = []
    ends = [*(row["at"] for _, row in times[1:]), end][: len(times)]
    for (number, row), until in zip(times, ends, strict=True):
        # a partition that is not among those behind is at the end, unless the lag of any partition is unknown
        lag = lags.get(number, None if row["unknown_partitions"] else 0)
        at = max(row["at"], begin)
        gap = next((max(at, start) for start, stop in gaps if start < until and stop > at), until)
        found += [{"at": at, "until": gap, "lag": lag}, {"at": gap, "until": until, "lag": None}]
    return [each for each in found if each["until"] > each["at"]]
