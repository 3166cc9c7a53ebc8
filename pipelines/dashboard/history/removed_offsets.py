"""Offsets of a group that were removed, and the first commits after it, from one statement."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from pipelines.dashboard.history.span import Span
from pipelines.query.histories import IS_CHANGE, REMOVALS, REMOVALS_SQL

Row = dict[str, Any]

#: Removals, commits of partitions without an offset, and those of the span that went back, by partition in the order of the log.
DISCONTINUITIES = f"""
SELECT topic, partition, change, record_timestamp AS at, min_offset, previous_offset FROM offset_history
WHERE group_id = {{group}} AND {IS_CHANGE} AND (
  change IN ({REMOVALS_SQL}) OR previous_offset IS NULL
  OR (change = 'rewind' AND COALESCE(commit_timestamp, record_timestamp) BETWEEN {{start}} AND {{end}})
)
ORDER BY topic, partition, batch_id, log_offset
"""


def removals(rows: Sequence[Row], span: Span) -> list[Row]:
    """Number of partitions by `change`, time and topic of the removals in the span, in the order of time."""
    removed = Counter((row["at"], row["change"], row["topic"]) for row in rows if row["change"] in REMOVALS and _is_in(row, span))
    return [
        {"change": change, "at": at, "topic": topic, "partitions": partitions}
        for (at, change, topic), partitions in sorted(removed.items())
    ]


def returns(rows: Sequence[Row], span: Span) -> list[Row]:
    """First commits after a removal in the span, in the order of time: the removed offset and the committed one."""
    found = []
    for before, row in pairwise(rows):
        is_same = (row["topic"], row["partition"]) == (before["topic"], before["partition"])
        is_return = row["change"] not in REMOVALS and before["change"] in REMOVALS and before["previous_offset"] is not None
        if is_same and is_return and _is_in(row, span):
            place = {name: row[name] for name in ("topic", "partition", "at")}
            found.append({**place, "to_offset": row["min_offset"], "from_offset": before["previous_offset"]})
    return sorted(found, key=lambda row: (row["at"], row["topic"], row["partition"]))


def _is_in(row: Row, span: Span) -> bool:
    return row["at"] is not None and span.start <= row["at"] <= span.end
