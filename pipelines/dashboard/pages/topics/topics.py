"""The list of topics that groups read: lag, age with its group, growth; search, order, pages of 100 rows."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.dashboard.history.topic_rows import GROWTH, group_topics, growth, incarnations
from pipelines.dashboard.pages.parts.listing import Listing
from pipelines.dashboard.pages.parts.page import Query
from pipelines.dashboard.state.moment import Moment
from pipelines.lag.columns import starts_of_runs

Row = dict[str, Any]

LISTING = Listing(
    key="topic",
    sorts={
        "age": ("lag_seconds", "descending"),
        "lag": ("lag", "descending"),
        "topic": ("topic", "ascending"),
        "groups": ("groups", "descending"),
        "partitions": ("partitions", "descending"),
        "rate": ("records_per_second", "descending"),
    },
    searched=("topic",),
    ties=("lag_seconds", "lag"),
)
_AGES = ("lag_seconds", "lag_seconds_low", "lag_seconds_high")


def topics_page(moment: Moment, query: Query) -> Row:
    """The model: the topics of one page of the list. Raises UsageError for an invalid order or page."""
    return {**LISTING.page(topic_rows(moment), query), "growth_seconds": GROWTH.total_seconds()}


def topic_rows(moment: Moment) -> pa.Table:
    """One row per topic; `partitions` is the greatest number that one group has, `group_id` the group of the greatest age."""
    # the oldest of each topic first, so that its first row has the age of the topic
    keys = [("topic", "ascending"), ("lag_seconds", "descending"), ("lag", "descending"), ("group_id", "ascending")]
    rows = group_topics(moment).sort_by(keys).combine_chunks()
    starts = starts_of_runs(rows["topic"])
    firsts = starts[:-1]
    topics = rows["topic"].take(firsts).combine_chunks()
    names = topics.to_pylist()
    growths, ids = growth(moment), incarnations(moment)
    behind = pc.fill_null(pc.greater(rows["lag"], 0), False)
    without_bound = pc.and_(behind, rows["lag_seconds_high"].is_null()).to_numpy(zero_copy_only=False)
    is_unbounded = pa.array(np.logical_or.reduceat(without_bound, firsts))
    known = np.add.reduceat(rows["lag"].is_valid().to_numpy().astype(np.int64), firsts)
    return pa.table(
        {
            "topic": topics,
            "groups": pa.array(np.diff(starts)),
            "partitions": pa.array(np.maximum.reduceat(rows["partitions"].to_numpy(), firsts)),
            "unknown_partitions": pa.array(np.add.reduceat(rows["unknown_partitions"].to_numpy(), firsts)),
            "lag": pa.array(np.add.reduceat(rows["lag"].fill_null(0).to_numpy(), firsts), mask=known == 0),
            **{name: rows[name].take(firsts) for name in _AGES},
            "lag_seconds_high": pc.if_else(is_unbounded, None, rows["lag_seconds_high"].take(firsts)),
            "group_id": rows["group_id"].take(firsts),
            "records_per_second": pa.array([growths.get(name) for name in names], pa.float64()),
            "incarnations": pa.array([ids.get(name, 0) for name in names], pa.int64()),
        }
    )


def topics_view(_model: Row, _moment: Moment) -> Row:
    """The orders of the list, for its headings."""
    return {"sorts": LISTING.sorts}
