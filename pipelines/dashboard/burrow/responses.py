"""Bodies of Burrow's HTTP API, version 3, from a snapshot: the same keys with the same types.

Lists by partition number are as long as the topic. Burrow ignores commits to partitions that a topic does not have, so they are
not in the lists; `consumer_status` names every partition.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.metrics.level_rows import numbers
from pipelines.query.snapshots.memory_snapshot import MemorySnapshot
from pipelines.runtime.timestamps import to_ms

Body = dict[str, Any]

#: Offset of a partition whose log end is unknown.
_UNKNOWN = -1
#: Places of a list without a partition with a position, beside one for each position, where the size of the topic is unknown.
_EMPTY_PLACES = 64
_OK = "OK"

#: Status of a group that is not in the tables.
NOT_FOUND = "NOTFOUND"


def cluster_module(snapshot: MemorySnapshot, interval_seconds: int) -> Body:
    """The body about a cluster: what corresponds to Burrow's configuration of it."""
    brokers = snapshot.brokers
    rows = [] if brokers is None else brokers.select(["host", "port"]).to_pylist()
    return {
        "class-name": "kafka",
        "servers": [f"{row['host']}:{row['port']}" for row in rows],
        "client-profile": {"name": "", "client-id": "grouplake", "kafka-version": "", "tls": None, "sasl": None},
        "topic-refresh": interval_seconds,
        "offset-refresh": interval_seconds,
    }


def topics(snapshot: MemorySnapshot) -> list[str]:
    """Topics that groups have positions on."""
    return sorted(pc.unique(snapshot.lag.table["topic"]).to_pylist())


def topic_offsets(snapshot: MemorySnapshot, topic: str) -> list[int] | None:
    """Log ends by partition, -1 where unknown; None for a topic that no group has a position on."""
    rows = _of_topic(snapshot, topic)
    if not rows.num_rows:
        return None
    offsets = [_UNKNOWN] * _partitions_of(snapshot, topic, rows)
    for partition, end in zip(rows["partition"].to_pylist(), numbers(rows["latest_offset"]).tolist(), strict=True):
        if 0 <= partition < len(offsets):
            offsets[partition] = max(offsets[partition], end)
    return offsets


def _of_topic(snapshot: MemorySnapshot, topic: str) -> pa.Table:
    return snapshot.lag.table.filter(pc.equal(snapshot.lag.table["topic"], topic))


def _partitions_of(snapshot: MemorySnapshot, topic: str, rows: pa.Table) -> int:
    """The length of a list of the topic's partitions by number; `rows` are positions on it.

    It is what the cluster has reported, else one more than the last partition with a known log end. For a source without a
    cluster the partition numbers come from the log alone, and the list ends before a number that is out of proportion.
    """
    reported = snapshot.topic_partitions
    if reported is not None:
        known: int = reported.filter(pc.equal(reported["topic"], topic)).num_rows
        if known:
            return known
    sampled: int | None = pc.max(rows.filter(rows["latest_offset"].is_valid())["partition"]).as_py()
    if sampled is not None:
        return sampled + 1
    limit = 2 * rows.num_rows + _EMPTY_PLACES
    return max((number + 1 for number in rows["partition"].to_pylist() if 0 <= number < limit), default=0)


def consumers_of_topic(snapshot: MemorySnapshot, topic: str) -> list[str]:
    """Groups with positions on a topic."""
    return sorted(pc.unique(_of_topic(snapshot, topic)["group_id"]).to_pylist())


def consumers(snapshot: MemorySnapshot) -> list[str]:
    """Groups with committed offsets: Burrow knows no others."""
    committed = snapshot.lag.table.filter(snapshot.lag.table["group_offset"].is_valid())
    return sorted(pc.unique(committed["group_id"]).to_pylist())


def consumer_topics(snapshot: MemorySnapshot, group: str, history: Iterable[Mapping[str, Any]]) -> Body | None:
    """Windows of commits of a group, by topic, in the order of partitions; None for a group without committed offsets.

    `history` has the commits, each with topic, partition, offset and time, oldest first. The lag at a commit is known for the
    first and the last one of a window.
    """
    rows = snapshot.lag.of(group)
    rows = rows.filter(rows["group_offset"].is_valid())
    if not rows.num_rows:
        return None
    windows: dict[tuple[str, int], list[Body]] = {}
    for commit in history:
        windows.setdefault((commit["topic"], commit["partition"]), []).append(_point(commit["offset"], commit["at"], None))
    found: dict[str, list[Body | None]] = {}
    sizes = {topic: _partitions_of(snapshot, topic, _of_topic(snapshot, topic)) for topic in pc.unique(rows["topic"]).to_pylist()}
    statuses = {(row["topic"], row["partition"]): row for row in _partition_rows(snapshot, group)}
    for row in rows.sort_by([("topic", "ascending"), ("partition", "ascending")]).to_pylist():
        key = row["topic"], row["partition"]
        partitions = found.setdefault(row["topic"], [])
        if not 0 <= row["partition"] < sizes[row["topic"]]:
            continue
        # partitions without a commit are null, as in Burrow's rings
        partitions += [_partition([], None, None, None)] * (row["partition"] - len(partitions))
        window = windows.get(key, [])
        if window and key in statuses:
            _set_lags(window, statuses[key])
        lag = row["lag"] if row["lag"] is not None and row["lag"] >= 0 else None
        partitions.append(_partition(window, row["member_host"], row["client_id"], lag))
    return dict(sorted(found.items()))


def consumer_status(snapshot: MemorySnapshot, cluster: str, group: str, *, is_complete: bool) -> Body:
    """Status of a group, with all its partitions or only those that are not OK. NOTFOUND for an unknown group."""
    status = None if snapshot.group_status is None else _first(snapshot.group_status.of(group))
    if status is None or status["burrow_status"] == NOT_FOUND:
        return not_found(cluster, group)
    rows = _partition_rows(snapshot, group)
    greatest = next(
        (row for row in rows if (row["topic"], row["partition"]) == (status["max_lag_topic"], status["max_lag_partition"])), None
    )
    return {
        "cluster": cluster,
        "group": group,
        "status": status["burrow_status"],
        "complete": float(status["complete"]),
        "partitions": [_partition_status(row) for row in rows if is_complete or row["status"] != _OK],
        "partition_count": len(rows),
        "maxlag": None if greatest is None else _partition_status(greatest),
        "totallag": status["total_lag"] or 0,
    }


def not_found(cluster: str, group: str) -> Body:
    """Status of a group that is not in the tables."""
    return {
        "cluster": cluster,
        "group": group,
        "status": NOT_FOUND,
        "complete": 1.0,
        "partitions": [],
        "partition_count": 0,
        "maxlag": None,
        "totallag": 0,
    }


def _partition_rows(snapshot: MemorySnapshot, group: str) -> list[dict[str, Any]]:
    if snapshot.partition_status is None:
        return []
    rows: list[dict[str, Any]] = snapshot.partition_status.of(group).to_pylist()
    return rows


def _first(rows: pa.Table) -> dict[str, Any] | None:
    return next(iter(rows.to_pylist()), None)


def _partition_status(row: Mapping[str, Any]) -> Body:
    return {
        "topic": row["topic"],
        "partition": row["partition"],
        "owner": row["owner"] or "",
        "client_id": row["client_id"] or "",
        "status": row["status"],
        "start": _point(row["start_offset"], row["start_timestamp"], row["start_lag"]),
        "end": _point(row["end_offset"], row["end_timestamp"], row["end_lag"]),
        "current_lag": row["current_lag"],
        "complete": float(row["complete"]),
    }


def _partition(window: list[Body], owner: str | None, client_id: str | None, lag: int | None) -> Body:
    return {"offsets": window, "owner": owner or "", "client_id": client_id or "", "current-lag": lag or 0}


def _point(offset: int, at: Any, lag: int | None) -> Body:
    # the log has no time at which a commit was observed
    ms = to_ms(at)
    return {"offset": offset, "timestamp": ms, "observedAt": ms, "lag": lag}


def _set_lags(window: list[Body], status: Mapping[str, Any]) -> None:
    for point, which in ((window[0], "start"), (window[-1], "end")):
        if point["offset"] == status[f"{which}_offset"] and point["timestamp"] == to_ms(status[f"{which}_timestamp"]):
            point["lag"] = status[f"{which}_lag"]
