"""Which program a file configures, by its keys."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pipelines.doctor.migration.burrow import burrow_migration, is_burrow
from pipelines.doctor.migration.datadog import datadog_migration, is_datadog
from pipelines.doctor.migration.kafka_lag_exporter import is_kafka_lag_exporter, kafka_lag_exporter_migration
from pipelines.doctor.migration.klag import is_klag, klag_migration
from pipelines.doctor.migration.klag_exporter import is_klag_exporter, klag_exporter_migration
from pipelines.doctor.migration.kminion import is_kminion, kminion_migration
from pipelines.doctor.migration.migrated_cluster import Migration
from pipelines.doctor.migration.peer_file import peer_trees
from pipelines.runtime.errors import UsageError


class _Peer(NamedTuple):
    name: str
    has: Callable[[Mapping[Any, Any]], bool]
    migration: Callable[[Mapping[Any, Any]], Migration]


PEERS = (
    _Peer("kafka-lag-exporter (HOCON)", is_kafka_lag_exporter, kafka_lag_exporter_migration),
    _Peer("klag-exporter (TOML)", is_klag_exporter, klag_exporter_migration),
    _Peer("Burrow (TOML)", is_burrow, burrow_migration),
    _Peer("KMinion (YAML)", is_kminion, kminion_migration),
    _Peer("Datadog's kafka_consumer (YAML)", is_datadog, datadog_migration),
    _Peer("klag (properties, or a file of variables)", is_klag, klag_migration),
)
#: More clusters of one file are not translated.
_MAX_CLUSTERS = 100


def migration_of(path: str) -> Migration:
    """Translate a configuration file of another program.

    Raises:
        UsageError: the file cannot be read, is of another program, or has no cluster.
    """
    for tree in peer_trees(path):
        for peer in PEERS:
            if peer.has(tree):
                found = peer.migration(tree)
                if not 0 < len(found.clusters) <= _MAX_CLUSTERS:
                    raise UsageError(
                        f"{path} has {len(found.clusters)} clusters of {found.peer}: from 1 to {_MAX_CLUSTERS} are known"
                    )
                return found
    raise UsageError(f"{path} has no keys of a known program: {', '.join(peer.name for peer in PEERS)}")
