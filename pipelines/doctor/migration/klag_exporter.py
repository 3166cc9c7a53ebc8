"""The configuration of klag-exporter: TOML (its config.example.toml and src/config.rs)."""

from collections.abc import Mapping
from typing import Any

from pipelines.doctor.migration import client_properties
from pipelines.doctor.migration.client_properties import put_client_properties
from pipelines.doctor.migration.group_expressions import found_anywhere, put_groups
from pipelines.doctor.migration.migrated_cluster import MigratedCluster, Migration
from pipelines.doctor.migration.peer_keys import PeerKeys

VERSION = "commit 6e6e6fd of config.example.toml"

_REASONS = (
    (
        "exporter.http_host",
        "the page listens on this machine alone: another address needs TLS and users (docs/dashboard.md#security)",
    ),
    ("exporter.timestamp_sampling.*", "lag in time follows from commits and samples, without reading records (docs/lag.md)"),
    ("exporter.performance.*", "the number of requests at a time has no setting"),
    ("exporter.otel.*", "OpenTelemetry is not set up from this file"),
    ("exporter.leadership.*", "one job writes the tables, and a second one stops (docs/operations.md)"),
)
_CLUSTER_REASONS = (
    ("topic_*list", "topics of groups have lag, and no others; select them in queries and alert rules"),
    ("labels*", "labels are those of the scrape configuration of Prometheus"),
    *client_properties.REASONS,
    ("consumer_properties.*", "a property of librdkafka that kafka:// does not have"),
)


def is_klag_exporter(tree: Mapping[Any, Any]) -> bool:
    """True for a file with its list of clusters."""
    listed = tree.get("clusters")
    return isinstance(listed, list) and any(isinstance(each, Mapping) and "bootstrap_servers" in each for each in listed)


def klag_exporter_migration(tree: Mapping[Any, Any]) -> Migration:
    """A cluster for each of the list."""
    keys = PeerKeys({name: value for name, value in tree.items() if name != "clusters"})
    interval = keys.milliseconds("exporter.poll_interval", "s")
    stale = keys.milliseconds("exporter.staleness_threshold", "s")
    # its own default is "topic"
    granularity = keys.text("exporter.granularity") or "topic"
    clusters = []
    for number, each in enumerate(entry for entry in tree["clusters"] if isinstance(entry, Mapping)):
        cluster = _cluster(PeerKeys(each, f"clusters[{number}].", keys.remarks))
        cluster.put_interval(interval)
        if stale is not None:
            cluster.put("metrics", "stale_seconds", max(1, stale // 1_000))
        if granularity in ("topic", "partition"):
            cluster.put("metrics", "granularity", granularity)
        clusters.append(cluster)
    clusters[0].put_port(keys, "exporter.http_port")
    keys.remark_rest(_REASONS)
    return Migration("klag-exporter", VERSION, clusters, keys)


def _cluster(keys: PeerKeys) -> MigratedCluster:
    cluster = MigratedCluster(keys.text("name") or "", polled=True)
    cluster.put_servers(keys, "bootstrap_servers")
    for theirs, ours in (("group_whitelist", "include"), ("group_blacklist", "exclude")):
        put_groups(cluster, ours, keys.items(theirs), found_anywhere, keys, theirs)
    put_client_properties(cluster, keys, "consumer_properties.")
    cluster.put("metrics", "families", ["kafka-lag-exporter"])
    keys.remark_rest(_CLUSTER_REASONS)
    return cluster
