"""The configuration of Datadog's check kafka_consumer: YAML (its assets/configuration/spec.yaml)."""

import re
from collections.abc import Mapping
from typing import Any

from pipelines.doctor.migration.client_properties import put_mechanism, put_protocol
from pipelines.doctor.migration.group_expressions import found_at_start, put_groups, whole_name
from pipelines.doctor.migration.migrated_cluster import MigratedCluster, Migration
from pipelines.doctor.migration.peer_keys import PeerKeys

VERSION = "commit 00146c9 of spec.yaml"

_AGENT = "an option of Datadog's agent; its OpenMetrics check can read /metrics (docs/moving/datadog.md)"
_GROUPS = "a topic or partitions of a group: all its positions are read"
_REASONS = (
    ("monitor_all_broker_highwatermarks", "topics of groups and the log itself have log ends, and no others"),
    ("collect_consumer_group_state", "the state of groups is always there"),
    ("kafka_client_api_version", "the versions of requests are negotiated"),
    (
        "sasl_kerberos_*",
        "Kerberos is that of spark-kafka://, with the options of Kafka's client in [kafka.jvm] (docs/sources.md)",
    ),
    ("sasl_oauth_token_provider*", "no token is requested from a provider: set kafka.sasl_oauth_token_file"),
    ("tls_verify", "certificates are always verified: set kafka.ssl_cafile"),
    ("tls_*", "the TLS library decides"),
    ("data_streams_enabled", "lag in time is always there (docs/lag.md)"),
    ("enable_cluster_monitoring", "brokers, connectors and schemas are not monitored"),
    ("schema_registry_*", "schemas are not read"),
    ("consumer_groups*", _GROUPS),
    ("*", _AGENT),
)


def is_datadog(tree: Mapping[Any, Any]) -> bool:
    """True for a file with instances of the check."""
    listed = tree.get("instances")
    return isinstance(listed, list) and any(isinstance(each, Mapping) and "kafka_connect_str" in each for each in listed)


def datadog_migration(tree: Mapping[Any, Any]) -> Migration:
    """A cluster for each instance that has addresses."""
    keys = PeerKeys({name: value for name, value in tree.items() if name != "instances"})
    timeout = keys.milliseconds("init_config.kafka_timeout", "s")
    clusters = []
    for number, each in enumerate(tree["instances"]):
        if isinstance(each, Mapping) and "kafka_connect_str" in each:
            cluster = _cluster(each, PeerKeys(each, f"instances[{number}].", keys.remarks), number)
            cluster.put("kafka", "request_timeout_ms", timeout)
            clusters.append(cluster)
    keys.remark_rest(_REASONS)
    return Migration("Datadog's kafka_consumer", VERSION, clusters, keys)


def _cluster(tree: Mapping[Any, Any], keys: PeerKeys, number: int) -> MigratedCluster:
    cluster = MigratedCluster(f"instance-{number}", polled=True)
    cluster.put_servers(keys, "kafka_connect_str")
    cluster.put_interval(keys.milliseconds("min_collection_interval", "s"))
    if not (keys.flag("monitor_unlisted_consumer_groups") or tree.get("enable_cluster_monitoring") is True):
        _put_listed_groups(cluster, tree, keys)
    put_protocol(cluster, keys, "security_protocol", keys.text("security_protocol"))
    put_mechanism(cluster, keys, "sasl_mechanism", keys.text("sasl_mechanism"))
    cluster.put_text("kafka", "sasl_username", keys, "sasl_plain_username")
    cluster.put_secret("sasl_password", "KAFKA_SASL_PASSWORD", keys, "sasl_plain_password")
    for theirs, ours in (("tls_ca_cert", "ssl_cafile"), ("tls_cert", "ssl_certfile"), ("tls_private_key", "ssl_keyfile")):
        cluster.put_text("kafka", ours, keys, theirs)
    cluster.put_secret("ssl_password", "KAFKA_SSL_PASSWORD", keys, "tls_private_key_password")
    if keys.flag("tls_validate_hostname") is False:
        cluster.put("kafka", "ssl_check_hostname", False)
    keys.remark_rest(_REASONS)
    return cluster


def _put_listed_groups(cluster: MigratedCluster, tree: Mapping[Any, Any], keys: PeerKeys) -> None:
    """Names of groups, and expressions that match the beginning of a name."""
    patterns = []
    for key, translate in (("consumer_groups", re.escape), ("consumer_groups_regex", found_at_start)):
        listed = tree.get(key)
        if isinstance(listed, Mapping):
            patterns += [translate(str(name)) for name in listed]
            if not any(listed.values()):
                keys.forget_under(key)
    put_groups(cluster, "include", patterns, whole_name, keys, "consumer_groups")
