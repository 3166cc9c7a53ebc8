"""The samples of one group in a span, from one statement: the lag of the group at each of them, and those that a chart shows."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.dashboard.history.span import Span
from pipelines.runtime.timestamps import TIMESTAMP, to_us

#: A row per topic and sample, without the arrays of partitions.
SAMPLES = """
SELECT topic, sampled_at AS at, lag, lag_seconds, lag_seconds_low, lag_seconds_high, unknown_partitions, messages_lost,
       blocked_partitions
FROM lag_history WHERE group_id = {group} AND sampled_at BETWEEN {before} AND {end}
"""
_GREATEST = ("lag_seconds", "lag_seconds_low", "lag_seconds_high")


def sums_of_topics(samples: pa.Table) -> pa.Table:
    """Lag and age of the group at each time of `SAMPLES`, in the order of time.

    Lags are added, ages are the greatest ones. The upper bound is null where that of any age above 0 is unknown.
    """
    is_unbounded = pc.and_(pc.greater(samples["lag_seconds"], 0), pc.is_null(samples["lag_seconds_high"]))
    sums = (
        samples.append_column("is_unbounded", is_unbounded)
        .group_by("at", use_threads=False)
        .aggregate(
            [
                *(("lag", "sum"), ("unknown_partitions", "sum"), ("is_unbounded", "any")),
                *((name, "max") for name in _GREATEST),
            ]
        )
        .sort_by("at")
    )
    bounded = pc.if_else(pc.invert(sums["is_unbounded_any"]), sums["lag_seconds_high_max"], None)
    return pa.table(
        {
            "at": sums["at"],
            "lag": sums["lag_sum"],
            "lag_seconds": sums["lag_seconds_max"],
            "lag_seconds_low": sums["lag_seconds_low_max"],
            "lag_seconds_high": bounded,
            "unknown_partitions": sums["unknown_partitions_sum"],
        }
    )


def greatest_by_part(samples: pa.Table, span: Span, parts: int) -> pa.Table:
    """Topic and time of the sample with the greatest lag of each topic in each part of the span, the newest of equal ones.

    Of the samples before the span, the newest one of each topic counts. A known lag is greater than an unknown one.
    """
    times = samples["at"].cast(TIMESTAMP).cast(pa.int64()).to_numpy()
    start = to_us(span.start)
    part = np.where(times < start, -1, (times - start) * parts // max(1, to_us(span.end) - start))
    lags = pc.fill_null(samples["lag"], -1).to_numpy()
    topics = samples["topic"].combine_chunks().dictionary_encode().indices.to_numpy()
    order = np.lexsort((times, np.where(part < 0, 0, lags), part, topics))
    is_last = np.ones(len(order), np.bool_)
    is_last[:-1] = (np.diff(topics[order]) != 0) | (np.diff(part[order]) != 0)
    return samples.select(["topic", "at"]).take(order[is_last])
