"""Rows of the levels about the job and the cluster."""

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.metrics.level_rows import LevelRows
from pipelines.metrics.metric import Level
from pipelines.query.snapshots.memory_snapshot import MemorySnapshot
from pipelines.runtime.timestamps import to_ms
from pipelines.runtime.version import version_text

#: The levels of these rows: they always have series.
JOB_LEVELS = (
    *(Level.CLUSTER, Level.PHASE, Level.LOG_PARTITION, Level.BROKER),
    *(Level.TRANSACTION_LOG_PARTITION, Level.TRANSACTION_STATE),
)

#: Phase of a sample in which the brokers answer.
_SAMPLE_PHASE = "sample"


def job_rows(snapshot: MemorySnapshot) -> Mapping[Level, LevelRows]:
    """A row about the cluster, and those about phases, log partitions and brokers."""
    brokers = snapshot.brokers
    phases = newest_phases(snapshot)
    tables = {
        Level.CLUSTER: _cluster(snapshot, phases, brokers),
        Level.PHASE: pa.table(
            {"phase": pa.array(phases, pa.string()), "seconds": pa.array([ms / 1000 for ms in phases.values()], pa.float64())}
        ),
        Level.LOG_PARTITION: _log_partitions(snapshot.batch.next_offsets),
        Level.TRANSACTION_LOG_PARTITION: _log_partitions(snapshot.batch.transaction_offsets or {}),
        Level.TRANSACTION_STATE: _transaction_states(snapshot),
        Level.BROKER: _brokers(brokers),
    }
    return {level: LevelRows(table, np.zeros(table.num_rows, np.int64)) for level, table in tables.items()}


def newest_phases(snapshot: MemorySnapshot) -> dict[str, int]:
    """Phase → milliseconds in the newest batch that has it."""
    found: dict[str, int] = {}
    for batch in snapshot.recent:
        found = {**batch.phase_ms, **found}
    return dict(sorted(found.items()))


def _cluster(snapshot: MemorySnapshot, phases: Mapping[str, int], brokers: pa.Table | None) -> pa.Table:
    batch = snapshot.batch
    reading = next((each for each in snapshot.recent if each.records_read), None)
    row: dict[str, Any] = {
        "one": 1,
        **_build(),
        "batch_id": batch.batch_id,
        "generation": batch.generation,
        "snapshot_at": _seconds(batch.finished_at),
        "sampled_at": _seconds(snapshot.sampled_at),
        "interval_seconds": batch.interval_seconds,
        "maintained_at": _seconds(snapshot.maintained_at),
        "batch_seconds": (reading.finished_at - reading.started_at).total_seconds() if reading else None,
        "records_read": reading.records_read if reading else None,
        "records_kept": reading.records_kept if reading else None,
        "quarantine_rows": snapshot.quarantine_rows,
        "oldest_transaction_start": _seconds(snapshot.transactions.oldest_start if snapshot.transactions else None),
        "poll_time_ms": phases.get(_SAMPLE_PHASE),
        "brokers": brokers.num_rows if brokers is not None and brokers.num_rows else None,
        "has_brokers": 1 if brokers is not None and brokers.num_rows else None,
        "broker_count": str(brokers.num_rows) if brokers is not None else "",
        "controller_id": _controller(brokers),
        "cluster_id": _of_cluster(brokers, "cluster_id"),
        "cluster_version": _of_cluster(brokers, "cluster_version"),
    }
    return pa.table({name: pa.array([value]) for name, value in row.items()})


@cache
def _build() -> dict[str, str]:
    version, _, revision = version_text().removeprefix("grouplake ").partition(" (git ")
    return {"version": version, "revision": revision.removesuffix(")")}


def _seconds(at: datetime | None) -> float | None:
    return None if at is None else to_ms(at) / 1000


def _controller(brokers: pa.Table | None) -> str:
    ids = [] if brokers is None else brokers.filter(brokers["is_controller"])["node_id"].to_pylist()
    return str(ids[0]) if ids else ""


def _of_cluster(brokers: pa.Table | None, column: str) -> str:
    """The value that all brokers have; empty if it is unknown, and without the column, which a later layout has added."""
    if brokers is None or column not in brokers.column_names:
        return ""
    return next((each for each in brokers[column].to_pylist() if each), "")


def _transaction_states(snapshot: MemorySnapshot) -> pa.Table:
    states = dict(sorted(snapshot.transactions.ids.items())) if snapshot.transactions else {}
    return pa.table({"state": pa.array(states, pa.string()), "ids": pa.array(states.values(), pa.int64())})


def _log_partitions(next_offsets: Mapping[int, int]) -> pa.Table:
    offsets = dict(sorted(next_offsets.items()))
    return pa.table(
        {
            "log_partition": pa.array(map(str, offsets), pa.string()),
            "next_offset": pa.array(offsets.values(), pa.int64()),
        }
    )


def _brokers(brokers: pa.Table | None) -> pa.Table:
    if brokers is None:
        names = ("node_id", "host", "port", "rack", "is_controller", "address")
        return pa.table({**dict.fromkeys(names, pa.array([], pa.string())), "one": pa.array([], pa.int64())})
    port = brokers["port"].cast(pa.string())
    return pa.table(
        {
            "node_id": brokers["node_id"].cast(pa.string()),
            "host": brokers["host"],
            "port": port,
            "rack": pc.fill_null(brokers["rack"], ""),
            "is_controller": brokers["is_controller"].cast(pa.string()),
            "address": pc.binary_join_element_wise(brokers["host"], port, ":"),
            "one": pa.array(np.ones(brokers.num_rows, np.int64)),
        }
    )
