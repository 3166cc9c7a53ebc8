"""The tables `brokers` and `topic_partitions`: a batch of its own, written when the cluster has changed."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from pipelines.batch.without_records import finish_batch, nullable_schema, stored_rows, write_rows
from pipelines.query.engine import Snapshot
from pipelines.runtime.phases import Phases
from pipelines.tables.store import Batch
from pipelines.tables.writer import TablesWriter

if TYPE_CHECKING:
    from coordinator_core.sources.cluster_metadata import ClusterMetadata

#: Brokers and replicas as of the last sample of end offsets.
SampledMetadata = Callable[[], "ClusterMetadata | None"]

#: Table → its key, in whose order the rows are compared.
_KEYS = {"brokers": ["node_id"], "topic_partitions": ["topic", "partition"]}


class ClusterSampling:
    """Writes the brokers, and the replicas of all topics of groups. For one thread at a time."""

    def __init__(
        self,
        metadata: SampledMetadata,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        cleanup_policies: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self._metadata = metadata
        self._cleanup_policies = cleanup_policies
        self._clock = clock
        self._stored: dict[str, pa.Table] | None = None

    def sample(self, writer: TablesWriter) -> Batch | None:
        """Write a batch with the tables that differ from the stored ones; None if none does.

        Raises:
            AnotherWriter: another job took over the tables.
        """
        last, metadata = writer.last, self._metadata()
        if last is None or metadata is None:
            return None
        phases = Phases(self._clock())
        with phases.timed("read"):
            if self._stored is None:
                snapshot = Snapshot(writer.store, last)
                self._stored = {name: _stored(snapshot, name, key) for name, key in _KEYS.items()}
            # settings that cannot be read at the moment have not changed as far as is known
            policies = {**_known_policies(self._stored["topic_partitions"]), **self._cleanup_policies()}
            found = metadata_tables(metadata, policies)
        changed = {name: rows for name, rows in found.items() if not rows.equals(self._stored[name])}
        if not changed:
            return None
        batch_id = writer.begin()
        for name, rows in changed.items():
            with phases.timed(f"write_{name}", rows.num_rows):
                write_rows(writer, name, rows, batch_id)
        batch = finish_batch(writer, last, phases, self._clock())
        self._stored |= changed
        return batch


def metadata_tables(metadata: "ClusterMetadata", cleanup_policies: Mapping[str, str]) -> dict[str, pa.Table]:
    """Rows of both tables, without `batch_id`."""
    brokers = {
        "node_id": [each.node_id for each in metadata.brokers],
        "host": [each.host for each in metadata.brokers],
        "port": [each.port for each in metadata.brokers],
        "rack": [each.rack for each in metadata.brokers],
        "is_controller": [each.node_id == metadata.controller_id for each in metadata.brokers],
        "cluster_id": [metadata.cluster_id for _ in metadata.brokers],
        "cluster_version": [metadata.release for _ in metadata.brokers],
    }
    partitions = {
        "topic": [each.topic for each in metadata.partitions],
        "partition": [each.partition for each in metadata.partitions],
        "topic_id": [each.topic_id for each in metadata.partitions],
        "leader": [each.leader for each in metadata.partitions],
        "replicas": [each.replicas for each in metadata.partitions],
        "in_sync_replicas": [each.in_sync for each in metadata.partitions],
        "cleanup_policy": [cleanup_policies.get(each.topic) for each in metadata.partitions],
    }
    return {name: pa.table(rows, _schema(name)) for name, rows in (("brokers", brokers), ("topic_partitions", partitions))}


def _known_policies(stored: pa.Table) -> dict[str, str]:
    rows = zip(stored["topic"].to_pylist(), stored["cleanup_policy"].to_pylist(), strict=True)
    return {topic: policy for topic, policy in rows if policy is not None}


def _schema(name: str) -> pa.Schema:
    schema = nullable_schema(name)
    return schema.remove(schema.get_field_index("batch_id"))


def _stored(snapshot: Snapshot, name: str, key: list[str]) -> pa.Table:
    return stored_rows(snapshot, name).drop_columns("batch_id").sort_by([(column, "ascending") for column in key])
