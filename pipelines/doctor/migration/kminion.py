"""KMinion's configuration: YAML (its docs/reference-config.yaml)."""

from collections.abc import Mapping
from typing import Any

from pipelines.doctor.migration.client_properties import put_mechanism
from pipelines.doctor.migration.group_expressions import found_anywhere, put_groups, whole_name
from pipelines.doctor.migration.migrated_cluster import MigratedCluster, Migration
from pipelines.doctor.migration.peer_keys import PeerKeys

VERSION = "2.3.5"

_TOPICS = "topics of groups and the log itself have series, and no others"
_REASONS = (
    ("minion.endToEnd.*", "Grouplake writes nothing to the cluster, so it has no probes of its own"),
    ("minion.logDirs.*", "sizes on disk are not requested"),
    ("minion.topics.infoMetric.*", "the label cleanup_policy is the only one of topic settings"),
    ("minion.topics.*", _TOPICS),
    ("minion.consumerGroups.enabled", "groups are always read"),
    ("minion.consumerGroups.*Groups", "the log has all groups: select them in queries, alert rules and metrics.partition_groups"),
    ("kafka.rackId", "the leaders of partitions are read, wherever they are"),
    ("kafka.retryInitConnection", "a job that follows a cluster waits for its brokers (docs/sources.md#outages)"),
    ("kafka.tls.insecureSkipTlsVerify", "certificates are always verified: set kafka.ssl_cafile"),
    ("kafka.tls.ca", "a certificate within the file, which is not copied: write it to a file, and set kafka.ssl_cafile"),
    ("kafka.tls.cert", "a certificate within the file, which is not copied: write it to a file, and set kafka.ssl_certfile"),
    ("kafka.tls.key", "a key within the file, which is not copied: write it to a file, and set kafka.ssl_keyfile"),
    (
        "kafka.sasl.gssapi.*",
        "Kerberos is that of spark-kafka://, with the options of Kafka's client in [kafka.jvm] (docs/sources.md)",
    ),
    ("kafka.sasl.oauth.*", "no token is requested from a provider: set kafka.sasl_oauth_token_file"),
    ("logger.*", "Grouplake prints one line an event, without levels"),
    ("exporter.host", "the page listens on this machine alone: another address needs TLS and users (docs/dashboard.md#security)"),
    ("exporter.namespace", "the names begin with kminion, as those of public boards"),
)
#: Keys whose default says the same as ours, or that are only switches of what follows them.
_SILENT = (("logger.level", "info"), ("exporter.namespace", "kminion"))


def is_kminion(tree: Mapping[Any, Any]) -> bool:
    """True for a file with its sections."""
    kafka = tree.get("kafka")
    return isinstance(tree.get("minion"), Mapping) or (isinstance(kafka, Mapping) and "brokers" in kafka)


def kminion_migration(tree: Mapping[Any, Any]) -> Migration:
    """The one cluster of the file."""
    keys = PeerKeys(tree)
    cluster = MigratedCluster("kminion")
    # without Read on the offsets topic, as its mode adminApi
    cluster.polled = keys.text("minion.consumerGroups.scrapeMode") != "offsetsTopic"
    cluster.put_servers(keys, "kafka.brokers")
    cluster.put_text("kafka", "client_id", keys, "kafka.clientId")
    _put_tls_and_sasl(cluster, keys)
    if cluster.polled:
        for theirs, ours in (("allowedGroups", "include"), ("ignoredGroups", "exclude")):
            name = f"minion.consumerGroups.{theirs}"
            put_groups(cluster, ours, keys.texts(name), _expression, keys, name)
    granularity = keys.text("minion.consumerGroups.granularity")
    if granularity in ("topic", "partition"):
        cluster.put("metrics", "granularity", granularity)
    cluster.put("metrics", "families", ["kminion"])
    cluster.put_port(keys, "exporter.port")
    for name, default in _SILENT:
        value = keys.text(name)
        if value not in (None, default):
            keys.restore(name, value)
    keys.remark_rest(_REASONS)
    return Migration("KMinion", VERSION, [cluster], keys)


def _expression(text: str) -> str:
    """KMinion's form: between slashes an expression for any part of the name, otherwise one for the whole name."""
    if len(text) > 1 and text.startswith("/") and text.endswith("/"):
        return found_anywhere(text[1:-1])
    return whole_name(text)


def _put_tls_and_sasl(cluster: MigratedCluster, keys: PeerKeys) -> None:
    tls, sasl = bool(keys.flag("kafka.tls.enabled")), bool(keys.flag("kafka.sasl.enabled"))
    if tls:
        for theirs, ours in (("caFilepath", "ssl_cafile"), ("certFilepath", "ssl_certfile"), ("keyFilepath", "ssl_keyfile")):
            cluster.put_text("kafka", ours, keys, f"kafka.tls.{theirs}")
        cluster.put_secret("ssl_password", "KAFKA_SSL_PASSWORD", keys, "kafka.tls.passphrase")
    if sasl:
        put_mechanism(cluster, keys, "kafka.sasl.mechanism", keys.text("kafka.sasl.mechanism") or "PLAIN")
        cluster.put_text("kafka", "sasl_username", keys, "kafka.sasl.username")
        cluster.put_secret("sasl_password", "KAFKA_SASL_PASSWORD", keys, "kafka.sasl.password")
    if tls or sasl:
        transport = "SSL" if tls else "PLAINTEXT"
        cluster.put("kafka", "security_protocol", f"SASL_{transport}" if sasl else transport)
    for part, is_on in (("tls", tls), ("sasl", sasl)):
        for key in [] if is_on else keys.under(f"kafka.{part}."):
            keys.drop(key, f"kafka.{part} is not enabled in the file")
