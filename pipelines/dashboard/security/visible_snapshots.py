"""Snapshots that have the groups of a viewer only, so that every route over them answers an unseen group like an unknown one."""

import re
import threading
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
from cachetools import LRUCache

from pipelines.dashboard.security.viewer import Viewer
from pipelines.query.snapshots.grouped_table import GroupedTable
from pipelines.query.snapshots.memory_snapshot import MemorySnapshot

#: Clusters times limited roles of usual sizes; a further one is computed again for each request.
_REMEMBERED = 32


class VisibleSnapshots:
    """Restricted snapshots, one per cluster and role. A new batch replaces those of the one before."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: LRUCache[tuple[str, re.Pattern[str]], tuple[MemorySnapshot, MemorySnapshot]] = LRUCache(_REMEMBERED)

    def snapshot(self, snapshot: MemorySnapshot, viewer: Viewer) -> MemorySnapshot:
        """The snapshot with the groups that the viewer may see."""
        if viewer.groups is None:
            return snapshot
        key = snapshot.cluster, viewer.groups
        with self._lock:
            whole, found = self._found.get(key, (None, snapshot))
            if whole is not snapshot:
                found = restricted(snapshot, viewer)
                self._found[key] = snapshot, found
        return found


def restricted(snapshot: MemorySnapshot, viewer: Viewer) -> MemorySnapshot:
    """`snapshot` with the groups that `viewer` may see, and the topics that they have positions on."""
    statuses, partitions = snapshot.group_status, snapshot.partition_status
    lag = _restricted(snapshot.lag, viewer)
    topics = pc.unique(lag.table["topic"])
    replicas = snapshot.topic_partitions
    return replace(
        snapshot,
        lag=lag,
        groups=_restricted(snapshot.groups, viewer),
        members=_restricted(snapshot.members, viewer),
        group_status=None if statuses is None else _restricted(statuses, viewer),
        partition_status=None if partitions is None else _restricted(partitions, viewer),
        topic_partitions=None if replicas is None else replicas.filter(pc.is_in(replicas["topic"], topics)),
    )


def _restricted(rows: GroupedTable, viewer: Viewer) -> GroupedTable:
    return rows.with_groups(pa.array(viewer.visible(rows), rows.groups.type))
