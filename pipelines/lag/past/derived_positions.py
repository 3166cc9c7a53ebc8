"""Positions of groups at a batch whose tables were removed, from the histories of later tables.

They lack the times of commits and the topic ids, which the histories do not have.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.query.earlier_state import earlier_state
from pipelines.query.engine import PUBLIC, Snapshot
from pipelines.runtime.errors import RemovedState, UsageError
from pipelines.tables.store import Batch, is_in, timestamp_literal

Row = dict[str, Any]

_OWNERS = """
SELECT group_id, topic, partition, member_id AS consumer_id, client_host AS member_host, client_id FROM ownership
WHERE {named} AND topic IS NOT NULL AND (since IS NULL OR since <= {at}) AND (until IS NULL OR until > {at})
"""
_OFFSETS = "SELECT group_id, topic, partition, committed_offset FROM ({offsets}) o WHERE {named}"
_KEY = ("group_id", "topic", "partition")
_VALUES = ("consumer_id", "member_host", "client_id", "committed_offset", "commit_timestamp", "topic_id")


def derived_state(newest: Snapshot, batch: Batch) -> Mapping[str, str]:
    """The queries of `earlier_state` over the tables of `newest`. Raises RemovedState if the histories begin later."""
    try:
        return earlier_state(newest, PUBLIC, batch)
    except UsageError as error:
        raise RemovedState(
            f"batch {batch.batch_id} can no longer be read: `grouplake maintain` has removed its files "
            "(maintain.vacuum_hours), and the histories start later (maintain.history_days)"
        ) from error


def derived_positions(newest: Snapshot, batch: Batch, groups: Sequence[str]) -> list[Row]:
    """Rows like POSITIONS at a batch, by key: of these groups, or of all. Raises RemovedState as `derived_state` does."""
    named = is_in("group_id", groups) if groups else "TRUE"
    offsets = _OFFSETS.format(offsets=derived_state(newest, batch)["offsets"], named=named)
    owners = _OWNERS.format(named=named, at=timestamp_literal(batch.finished_at))
    found: dict[tuple[Any, ...], Row] = {}
    for row in (*newest.query(offsets).to_pylist(), *newest.query(owners).to_pylist()):
        key = tuple(row[name] for name in _KEY)
        found[key] = {**found.get(key, dict.fromkeys(_VALUES)), **row}
    return [found[key] for key in sorted(found)]
