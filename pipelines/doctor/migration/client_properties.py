"""Properties of Kafka's Java client and of librdkafka, as keys of `[kafka]`."""

import re

from pipelines.doctor.migration.migrated_cluster import MigratedCluster
from pipelines.doctor.migration.peer_keys import PeerKeys

_TEXTS = {
    "ssl.ca.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.key.location": "ssl_keyfile",
    "client.id": "client_id",
    "sasl.username": "sasl_username",
}
_SECRETS = {"sasl.password": ("sasl_password", "KAFKA_SASL_PASSWORD"), "ssl.key.password": ("ssl_password", "KAFKA_SSL_PASSWORD")}
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
_KEYSTORE = "a Java keystore: export its certificates and key as PEM, and set kafka.ssl_cafile, ssl_certfile and ssl_keyfile"
_MECHANISM = (
    "a login that kafka:// does not have: Kerberos is that of spark-kafka://, with the options of Kafka's client in [kafka.jvm] "
    "(docs/sources.md)"
)
_OAUTH = "no token is requested from a provider: write it to a file with a program of yours, and set kafka.sasl_oauth_token_file"
_JAAS = re.compile(r"\b(username|password)\s*=\s*(?:\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)')")

REASONS = (
    ("*ssl.truststore.*", _KEYSTORE),
    ("*ssl.keystore.*", _KEYSTORE),
    ("*ssl.key.password", _KEYSTORE),
    ("*sasl.kerberos.*", _MECHANISM),
    ("*sasl.client.callback.*", _MECHANISM),
    ("*sasl.oauthbearer.*", _OAUTH),
    ("*sasl.login.*", _OAUTH),
    ("*enable.ssl.certificate.verification", "certificates are always verified: set kafka.ssl_cafile"),
    ("*group.id", "Grouplake joins no group"),
)
"""Reasons for the properties that `put_client_properties` leaves."""


def put_client_properties(cluster: MigratedCluster, keys: PeerKeys, prefix: str) -> None:
    """Translate the properties whose keys begin with the prefix."""
    protocol = keys.text(f"{prefix}security.protocol")
    put_protocol(cluster, keys, f"{prefix}security.protocol", protocol)
    for name in ("sasl.mechanism", "sasl.mechanisms"):
        put_mechanism(cluster, keys, prefix + name, keys.text(prefix + name))
    for name, key in _TEXTS.items():
        cluster.put_text("kafka", key, keys, prefix + name)
    _put_pem(cluster, keys, prefix)
    for name, (key, variable) in _SECRETS.items():
        if name == "sasl.password" or "ssl_keyfile" in cluster.sections.get("kafka", {}):
            cluster.put_secret(key, variable, keys, prefix + name)
    _put_jaas(cluster, keys, f"{prefix}sasl.jaas.config")
    for name in ("request.timeout.ms", "socket.timeout.ms"):
        timeout = keys.number(prefix + name)
        cluster.put("kafka", "request_timeout_ms", None if timeout is None else round(timeout))
    name = f"{prefix}ssl.endpoint.identification.algorithm"
    if name in keys and (keys.text(name) or "none").lower() == "none":
        cluster.put("kafka", "ssl_check_hostname", False)


def put_protocol(cluster: MigratedCluster, keys: PeerKeys, name: str, protocol: str | None) -> None:
    """Set the protocol of the connection, if it is one of Kafka's."""
    if protocol is not None and protocol.upper() in _PROTOCOLS:
        cluster.put("kafka", "security_protocol", protocol.upper())
    elif protocol is not None:
        keys.remark(name, "not a protocol of Kafka's listeners: set kafka.security_protocol")


def put_mechanism(cluster: MigratedCluster, keys: PeerKeys, name: str, mechanism: str | None) -> None:
    """Set the SASL mechanism, if kafka:// has it."""
    if mechanism is not None and mechanism.upper() in _MECHANISMS:
        cluster.put("kafka", "sasl_mechanism", mechanism.upper())
    elif mechanism is not None:
        keys.remark(name, _MECHANISM)


def _put_pem(cluster: MigratedCluster, keys: PeerKeys, prefix: str) -> None:
    """Java's stores of the type PEM, which are files as ours."""
    for store, ours in (("truststore", ("ssl_cafile",)), ("keystore", ("ssl_certfile", "ssl_keyfile"))):
        kind, location = f"{prefix}ssl.{store}.type", f"{prefix}ssl.{store}.location"
        if kind in keys and location in keys:
            text = keys.text(kind)
            if text is not None and text.upper() == "PEM":
                path = keys.text(location)
                for key in ours:
                    cluster.put_copied("kafka", key, path, keys, location)
            else:
                keys.remark(kind, _KEYSTORE)


def _put_jaas(cluster: MigratedCluster, keys: PeerKeys, name: str) -> None:
    """User and password of the modules for PLAIN and SCRAM."""
    text = keys.text(name)
    if text is None:
        return
    values = {match[1]: match[2] if match[2] is not None else match[3] for match in _JAAS.finditer(text)}
    user, password = values.get("username"), values.get("password")
    if user is None or password is None:
        keys.remark(name, _MECHANISM)
        return
    cluster.put_copied("kafka", "sasl_username", user, keys, name)
    cluster.put_secret_text("sasl_password", "KAFKA_SASL_PASSWORD", password)
    keys.remark(name, "user and password are keys of their own; the password is not copied: set the variable that is named")
