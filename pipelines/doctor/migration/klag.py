"""klag's configuration: properties, or a file of environment variables (its application.properties.template and reference)."""

from collections.abc import Mapping
from typing import Any

from pipelines.doctor.migration import client_properties
from pipelines.doctor.migration.client_properties import put_client_properties
from pipelines.doctor.migration.group_expressions import glob, put_groups
from pipelines.doctor.migration.migrated_cluster import MigratedCluster, Migration
from pipelines.doctor.migration.peer_keys import PeerKeys

VERSION = "0.2.6"

_OTLP = "OpenTelemetry is not set up from this file"
_REASONS = (
    ("otlp.*", _OTLP),
    ("otel.*", _OTLP),
    ("metrics.reporter", "metrics are requested by Prometheus; klag's own names are in docs/moving/klag.md"),
    ("metrics.jvm.enabled", "there is no JVM beside Spark's"),
    ("kafka.chunk.*", "the number of requests at a time has no setting"),
    ("kafka.health.check.interval.ms", "/ready says whether the data is old (docs/metrics.md)"),
    ("time.lag.*", "lag in time follows from commits and samples (docs/lag.md)"),
    ("lag.trend.*", "trends have limits of their own: status.falls_behind_share and falls_behind_ms"),
    ("hot.partition.*", "limits of klag's own rule"),
    ("commit.freshness.*", "groups without commits are a rule of their own: stopped (docs/lag.md#status)"),
    ("mcp.auth.token", "agents log in with the users and tokens of the page: grouplake credential (docs/agents.md)"),
    ("mcp.path", "the path is /mcp"),
    ("log.level*", "Grouplake prints one line an event, without levels"),
    ("vertx.*", "an option of klag's own runtime"),
    *client_properties.REASONS,
    ("kafka.*", "a property of Kafka's Java client that kafka:// does not have"),
)
_KNOWN = (
    "kafka.bootstrap.servers",
    "metrics.group.filter",
    "metrics.group.exclude",
    "metrics.interval.ms",
    "hot.partition.enabled",
)


def is_klag(tree: Mapping[Any, Any]) -> bool:
    """True for names with values, if one of them is klag's."""
    return any(name in _KNOWN for name in _named(tree))


def klag_migration(tree: Mapping[Any, Any]) -> Migration:
    """The one cluster of the file."""
    keys = PeerKeys(_named(tree))
    cluster = MigratedCluster("klag", polled=True)
    cluster.put_servers(keys, "kafka.bootstrap.servers")
    cluster.put_interval(keys.number("metrics.interval.ms"))
    for theirs, ours in (("metrics.group.filter", "include"), ("metrics.group.exclude", "exclude")):
        put_groups(cluster, ours, keys.texts(theirs), glob, keys, theirs)
    put_client_properties(cluster, keys, "kafka.")
    cluster.put("metrics", "member_labels", keys.flag("consumer.member.labels.enabled"))
    if keys.flag("mcp.enabled"):
        cluster.put("dashboard", "mcp", True)
        keys.remark("mcp.enabled", "needs the extra mcp (docs/agents.md)")
    cluster.put_port(keys, "http.port")
    keys.remark_rest(_REASONS)
    return Migration("klag", VERSION, [cluster], keys)


def _named(tree: Mapping[Any, Any]) -> dict[str, str]:
    """Variables in the form of properties, as klag itself names them: KAFKA_X_Y is kafka.x.y."""
    return {str(name).lower().replace("_", "."): value for name, value in tree.items() if isinstance(value, str)}
