"""The configuration of kafka-lag-exporter: HOCON (its README, reference.conf and AppConfig.scala)."""

from collections.abc import Mapping
from typing import Any

from pipelines.doctor.migration import client_properties
from pipelines.doctor.migration.client_properties import put_client_properties
from pipelines.doctor.migration.group_expressions import put_groups, whole_name
from pipelines.doctor.migration.migrated_cluster import MigratedCluster, Migration
from pipelines.doctor.migration.peer_keys import PeerKeys

VERSION = "0.8.2"

_ROOT = "kafka-lag-exporter"
_SINKS = "metrics are requested by Prometheus; the tables have the history"
_OTHER_CLIENT = "Grouplake has one client: the properties of the admin client were taken"
_REASONS = (
    ("reporters.*", _SINKS),
    ("sinks", _SINKS),
    ("lookup-table*", "lag in time needs no table of points: it follows from commits and samples in the tables (docs/lag.md)"),
    ("client-group-id", "Grouplake joins no group"),
    ("kafka-client-timeout", "of another form than 10 seconds"),
    ("kafka-retries", "a sample that fails is a reason of unknown lag, and the next one is taken"),
    ("watchers.*", "clusters are not discovered: a job follows one cluster"),
    ("metric-whitelist", "metrics are chosen by family: metrics.families and metrics.granularity"),
)
_CLUSTER_REASONS = (
    ("topic-*list", "topics of groups have lag, and no others; select them in queries and alert rules"),
    ("labels*", "labels are those of the scrape configuration of Prometheus"),
    ("consumer-properties.*", _OTHER_CLIENT),
    *client_properties.REASONS,
    ("admin-client-properties.*", "a property of Kafka's Java client that kafka:// does not have"),
)


def is_kafka_lag_exporter(tree: Mapping[Any, Any]) -> bool:
    """True for a file with its section."""
    return isinstance(tree.get(_ROOT), Mapping)


def kafka_lag_exporter_migration(tree: Mapping[Any, Any]) -> Migration:
    """A cluster for each of the list."""
    section = tree[_ROOT]
    listed = section.get("clusters")
    listed = [each for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else []
    keys = PeerKeys({name: value for name, value in section.items() if name != "clusters"}, f"{_ROOT}.")
    interval = keys.milliseconds("poll-interval", "ms")
    timeout = keys.milliseconds("kafka-client-timeout", "ms")
    clusters = []
    for number, each in enumerate(listed):
        cluster = _cluster(PeerKeys(each, f"{_ROOT}.clusters[{number}].", keys.remarks))
        cluster.put_interval(interval)
        if timeout is not None:
            cluster.sections.setdefault("kafka", {}).setdefault("request_timeout_ms", timeout)
        clusters.append(cluster)
    if clusters:
        clusters[0].put_port(keys, "reporters.prometheus.port")
    keys.remark_rest(_REASONS)
    return Migration("kafka-lag-exporter", VERSION, clusters, keys)


def _cluster(keys: PeerKeys) -> MigratedCluster:
    cluster = MigratedCluster(keys.text("name") or "", polled=True)
    cluster.put_servers(keys, "bootstrap-brokers")
    for theirs, ours in (("group-whitelist", "include"), ("group-blacklist", "exclude")):
        put_groups(cluster, ours, keys.items(theirs), whole_name, keys, theirs)
    prefix = "admin-client-properties."
    put_client_properties(cluster, keys, prefix if keys.under(prefix) else "consumer-properties.")
    cluster.put("metrics", "families", ["kafka-lag-exporter"])
    keys.remark_rest(_CLUSTER_REASONS)
    return cluster
