"""Numbers of groups and events of the last day of a cluster."""

from datetime import datetime, timedelta
from typing import Any

from pipelines.query.engine import Queries
from pipelines.query.histories import REMOVALS, may_be_older
from pipelines.tables.store import timestamp_literal

_GROUPS = """
SELECT change, group_id, count(*) AS events, max(record_timestamp) AS last_at, min(log_partition) < 0 AS is_polled
FROM group_history
WHERE change IN ('group_created', 'group_deleted', 'moved', 'rebalance') AND record_timestamp BETWEEN {start} AND {end}
  AND (change <> 'group_created' OR NOT {may_be_older})
GROUP BY change, group_id
"""
_OFFSETS = """
SELECT change, group_id, count(*) AS events, max(record_timestamp) AS last_at, min(log_partition) < 0 AS is_polled
FROM offset_history
WHERE change IN ('rewind', 'tombstone', 'expire', 'moved') AND record_timestamp BETWEEN {start} AND {end}
GROUP BY change, group_id
"""
#: Name in the model → changes that it counts.
_COUNTED = {
    "created": ("group_created",),
    "deleted": ("group_deleted", "moved"),
    "rebalanced": ("rebalance",),
    "went_back": ("rewind",),
    "lost_offsets": REMOVALS,
}
#: Groups that the model names of each kind.
_NAMED = 5


def recent_events(tables: Queries, end: datetime, span: timedelta) -> dict[str, Any]:
    """Kind → number of groups and events (a lower bound if `is_least`), with the groups that have the most of them."""
    values = {
        "start": timestamp_literal(end - span),
        "end": timestamp_literal(end),
        "may_be_older": may_be_older(tables.query),
    }
    rows = [row for sql in (_GROUPS, _OFFSETS) for row in tables.query(sql.format(**values)).to_pylist()]
    found = {}
    for name, changes in _COUNTED.items():
        by_group: dict[str, int] = {}
        counted = [row for row in rows if row["change"] in changes]
        for row in counted:
            by_group[row["group_id"]] = by_group.get(row["group_id"], 0) + row["events"]
        most = sorted(by_group.items(), key=lambda item: (-item[1], item[0]))[:_NAMED]
        found[name] = {
            "groups": len(by_group),
            "events": sum(by_group.values()),
            # polls count the events between two of them as one
            "is_least": any(row["is_polled"] for row in counted),
            "most": [{"group_id": group, "events": events} for group, events in most],
        }
    return found
