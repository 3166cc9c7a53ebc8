"""The tables `brokers` and `topic_partitions`: a batch of its own, written when the cluster has changed."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from coordinator_core.log.errors import LogError
from pipelines.phases import Phases
from pipelines.query.engine import Snapshot
from pipelines.tables import definitions
from pipelines.tables.store import Batch
from pipelines.tables.writer import TablesWriter
from pipelines.writers.delta_rs import DeltaRsWriter
from pipelines.writers.table_write import TableWrite

if TYPE_CHECKING:
    from coordinator_core.sources.cluster_metadata import ClusterMetadata

#: Asks the cluster about topics.
RequestMetadata = Callable[[Sequence[str]], "ClusterMetadata"]

_TABLES = ("brokers", "topic_partitions")


class ClusterSampling:
    """Asks for the brokers, and for the replicas of all topics of groups. For one thread at a time."""

    def __init__(self, request: RequestMetadata, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._request = request
        self._clock = clock
        self._stored: dict[str, pa.Table] | None = None

    def sample(self, writer: TablesWriter) -> Batch | None:
        """Write a batch with the tables that differ from the stored ones; None if none does, or if no broker answers.

        Raises:
            AnotherWriter: another job took over the tables.
        """
        last = writer.last
        if last is None:
            return None
        phases = Phases(self._clock())
        snapshot = Snapshot(writer.store, last)
        if self._stored is None:
            self._stored = {name: _stored_rows(snapshot, name) for name in _TABLES}
        with phases.timed("read"):
            topics = snapshot.query("SELECT DISTINCT topic FROM lag")["topic"].to_pylist()
        try:
            with phases.timed("metadata"):
                found = metadata_tables(self._request(topics))
        except LogError:
            # the sample of end offsets reports an outage
            return None
        changed = {name: rows for name, rows in found.items() if not rows.equals(self._stored[name])}
        if not changed:
            return None
        batch_id = writer.begin()
        for name, rows in changed.items():
            with phases.timed(f"write_{name}"):
                stamped = rows.append_column("batch_id", pa.array([batch_id] * rows.num_rows, pa.int64()))
                DeltaRsWriter(writer).write(TableWrite(name, stamped.cast(definitions.table(name).schema)))
        batch = writer.finish(phases, self._clock(), era=last.era, retention_ms=last.retention_ms, next_offsets=last.next_offsets)
        self._stored |= changed
        return batch


def metadata_tables(metadata: "ClusterMetadata") -> dict[str, pa.Table]:
    """Rows of both tables, without `batch_id`."""
    brokers = {
        "node_id": [each.node_id for each in metadata.brokers],
        "host": [each.host for each in metadata.brokers],
        "port": [each.port for each in metadata.brokers],
        "rack": [each.rack for each in metadata.brokers],
        "is_controller": [each.node_id == metadata.controller_id for each in metadata.brokers],
        "cluster_id": [metadata.cluster_id for _ in metadata.brokers],
    }
    partitions = {
        "topic": [each.topic for each in metadata.partitions],
        "partition": [each.partition for each in metadata.partitions],
        "topic_id": [each.topic_id for each in metadata.partitions],
        "leader": [each.leader for each in metadata.partitions],
        "replicas": [each.replicas for each in metadata.partitions],
        "in_sync_replicas": [each.in_sync for each in metadata.partitions],
    }
    return {name: pa.table(rows, _schema(name)) for name, rows in (("brokers", brokers), ("topic_partitions", partitions))}


def _schema(name: str) -> pa.Schema:
    """Columns of a table without `batch_id`, all nullable as query results are."""
    return pa.schema([field.with_nullable(True) for field in definitions.table(name).schema if field.name != "batch_id"])


def _stored_rows(snapshot: Snapshot, name: str) -> pa.Table:
    schema = _schema(name)
    if name not in snapshot.batch.versions:
        return schema.empty_table()
    key = "node_id" if name == "brokers" else "topic, partition"
    return snapshot.query(f"SELECT {', '.join(schema.names)} FROM {name} ORDER BY {key}").cast(schema)
