"""Burrow's configuration: TOML with a section per module (its config/burrow.toml, and the keys that its source reads)."""

from collections.abc import Mapping
from typing import Any

from pipelines.doctor.migration.client_properties import put_mechanism
from pipelines.doctor.migration.migrated_cluster import MigratedCluster, Migration
from pipelines.doctor.migration.peer_keys import PeerKeys

VERSION = "1.9.5"

_ALERTS = "alerts are rules and receivers in a file of their own: grouplake alerts (docs/alerts.md)"
_PROCESS = "Grouplake logs to standard error and writes no file of its process id: its service manager does"
_GROUPS = "the log has all groups: select them in queries, alert rules and metrics.partition_groups"
_REASONS = (
    ("notifier.*", _ALERTS),
    ("zookeeper.*", "no ZooKeeper: one job writes the tables, and a second one stops (docs/operations.md)"),
    ("general.access-control-allow-origin", "pages of other sites get no access"),
    ("general.*", _PROCESS),
    ("logging.*", _PROCESS),
    ("consumer.*.group-*list", _GROUPS),
    ("consumer.*.start-latest", "the log is read from its start once; later runs continue where the tables end"),
    ("consumer.*.backfill-earliest", "the log is read from its start once; later runs continue where the tables end"),
    ("consumer.*.zookeeper-*", "offsets in ZooKeeper are not read"),
    ("consumer.*.servers", "the addresses are those of the cluster"),
    ("consumer.*", "a module for a cluster that was translated"),
    ("cluster.*.topic-refresh", "topics are looked up with each sample"),
    ("cluster.*.groups-reaper-refresh", "groups are removed by their tombstones in the log, as brokers do"),
    ("client-profile.*.kafka-version", "the versions of requests are negotiated; job.era selects rules of expiry (default 4)"),
    ("client-profile.*.*-timeout", "kafka.request_timeout_ms limits a request as a whole"),
    ("client-profile.*", "a profile of no cluster, or IAM of MSK, which kafka:// does not have"),
    ("iam.*", "IAM of MSK is a login that kafka:// does not have"),
    ("sasl.*.handshake-first", "the handshake is always made"),
    ("sasl.*", "of a profile that no cluster uses"),
    ("tls.*.noverify", "certificates are always verified: set kafka.ssl_cafile"),
    ("tls.*", "of a profile that no cluster uses, or of the HTTP server: dashboard.tls_certificate and tls_key"),
    ("httpserver.*", "the page has TLS of its own: dashboard.tls_certificate and tls_key (docs/dashboard.md#security)"),
    ("storage.*.expire-group", "a group is removed when the broker removes it, however old its last commit is"),
    ("storage.*", "the tables are the storage"),
    ("evaluator.*", "statuses are evaluated with each sample"),
)


def is_burrow(tree: Mapping[Any, Any]) -> bool:
    """True for a file with modules of clusters."""
    modules = tree.get("cluster")
    return isinstance(modules, Mapping) and any(
        isinstance(module, Mapping) and ("class-name" in module or "servers" in module) for module in modules.values()
    )


def burrow_migration(tree: Mapping[Any, Any]) -> Migration:
    """A cluster of ours for each module of a cluster."""
    keys = PeerKeys(tree)
    clusters = [_cluster(keys, str(name)) for name, module in tree["cluster"].items() if isinstance(module, Mapping)]
    for cluster in clusters:
        # its metrics and its HTTP API
        cluster.put("metrics", "families", ["burrow"])
    for kind, key, ours, factor in (
        ("storage", "intervals", "window_commits", 1),
        ("storage", "min-distance", "min_distance_ms", 1_000),
        ("evaluator", "allowed-lag", "allowed_lag", 1),
    ):
        value = _shared(keys, kind, key)
        if value is not None:
            for cluster in clusters:
                cluster.put("status", ours, round(value) * factor)
    share = _shared(keys, "evaluator", "minimum-complete")
    if share is not None:
        for cluster in clusters:
            cluster.put("status", "minimum_complete", min(1.0, float(share)))
    for name in [key for key in keys.under("httpserver.") if key.endswith(".address")][:1]:
        clusters[0].put_port(keys, name)
    keys.remark_rest(_REASONS)
    return Migration("Burrow", VERSION, clusters, keys)


def _shared(keys: PeerKeys, kind: str, key: str) -> float | None:
    """A number that one module of its kind has for all clusters."""
    names = [name for name in keys.under(f"{kind}.") if name.endswith(f".{key}")]
    return keys.number(names[0]) if names else None


def _cluster(keys: PeerKeys, name: str) -> MigratedCluster:
    found = MigratedCluster(name)
    module = f"cluster.{name}."
    kind = keys.text(f"{module}class-name")
    if kind not in (None, "kafka"):
        keys.remark(f"{module}class-name", "a kind of cluster that Burrow does not document")
    found.put_servers(keys, f"{module}servers")
    found.put_interval(keys.milliseconds(f"{module}offset-refresh", "s"))
    for consumer in [key for key in keys.under("consumer.") if key.endswith(".cluster")]:
        prefix = consumer.removesuffix("cluster")
        if keys.peek(consumer) != name:
            continue
        keys.text(consumer)
        reader = keys.text(f"{prefix}class-name")
        if reader == "kafka_zk":
            keys.remark(f"{prefix}class-name", "offsets in ZooKeeper are not read")
        topic = keys.text(f"{prefix}offsets-topic")
        if topic and topic != "__consumer_offsets" and topic.replace("_", "").replace("-", "").replace(".", "").isalnum():
            found.topic = topic
        keys.text(f"{prefix}client-profile")
    _put_profile(found, keys, keys.text(f"{module}client-profile"))
    return found


def _put_profile(cluster: MigratedCluster, keys: PeerKeys, name: str | None) -> None:
    """Client id, TLS and SASL of a profile, which several clusters may have."""
    if name is None:
        return
    profile = keys.copy_under(f"client-profile.{name}.")
    cluster.put_text("kafka", "client_id", profile, "client-id")
    tls, sasl = profile.text("tls"), profile.text("sasl")
    if tls is not None:
        files = keys.copy_under(f"tls.{tls}.")
        for theirs, ours in (("cafile", "ssl_cafile"), ("certfile", "ssl_certfile"), ("keyfile", "ssl_keyfile")):
            cluster.put_text("kafka", ours, files, theirs)
    if sasl is not None:
        login = keys.copy_under(f"sasl.{sasl}.")
        put_mechanism(cluster, login, "mechanism", login.text("mechanism") or "PLAIN")
        cluster.put_text("kafka", "sasl_username", login, "username")
        cluster.put_secret("sasl_password", "KAFKA_SASL_PASSWORD", login, "password")
    protocol = f"SASL_{'SSL' if tls else 'PLAINTEXT'}" if sasl else "SSL" if tls else None
    cluster.put("kafka", "security_protocol", protocol)
