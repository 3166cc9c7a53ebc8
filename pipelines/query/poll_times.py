"""Times of what a poll has seen: after the poll before it, and before its own last answer."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

import pyarrow as pa

from coordinator_core.group_polls.group_poll import POLLED_PARTITION
from coordinator_core.health.durations import duration
from pipelines.tables.store import Batch, is_in

#: Commits of partitions whose offset was another one at the poll before: only they are known to be newer than it. A first offset
#: may have been there before, without the permission to see it.
_CHANGED = f"""
SELECT log_offset, batch_id FROM offset_history
WHERE log_partition = {POLLED_PARTITION} AND previous_offset IS NOT NULL AND {{groups}} AND {{batches}}
"""
_READ_UNTIL = "SELECT batch_id, log_read_until FROM batches WHERE log_read_until IS NOT NULL AND {batches}"


def is_polled(batch: Batch) -> bool:
    """True if the tables were made from polls."""
    return POLLED_PARTITION in batch.next_offsets


def poll_note(batch: Batch) -> str | None:
    """What polls mean for the times in the tables, in words; None for tables of a log."""
    if not is_polled(batch):
        return None
    # the expected distance of batches, which that of samples may exceed
    every = f" at least every {duration(batch.interval_seconds)}" if batch.interval_seconds else ""
    return (
        f"Polled{every}: a commit or a rebalance is seen at the next poll, so it was made between two polls, "
        "and several of them are seen as one."
    )


def polls_before(query: Callable[[str], pa.Table], commits: Iterable[Mapping[str, Any]]) -> dict[int, datetime]:
    """Log offset of a polled commit → start of the last complete poll before it, which did not have the commit.

    `commits` are rows of `offsets`. A commit is left out if the poll before it is not known, or knew nothing of its partition.
    """
    polled = [row for row in commits if row["log_partition"] == POLLED_PARTITION]
    if not polled:
        return {}
    groups, batches = ({row[name] for row in polled} for name in ("group_id", "batch_id"))
    changed = query(_CHANGED.format(groups=is_in("group_id", groups), batches=is_in("batch_id", batches)))
    # each batch has the time of the last complete poll until then
    before = query(_READ_UNTIL.format(batches=is_in("batch_id", {batch_id - 1 for batch_id in batches})))
    read_until = dict(zip(*(before[name].to_pylist() for name in ("batch_id", "log_read_until")), strict=True))
    commits_of = zip(*(changed[name].to_pylist() for name in ("log_offset", "batch_id")), strict=True)
    return {offset: read_until[batch_id - 1] for offset, batch_id in commits_of if batch_id - 1 in read_until}
