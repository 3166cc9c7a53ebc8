"""`grouplake doctor` with a broker that requires TLS, a password and ACLs: each missing right and wrong setting, caused."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    ResourcePatternType,
    ResourceType,
)
from doctor_findings import Doctor, Findings
from eventually import eventually
from jobs import run_options
from log_builder import Log
from patience import PATIENCE_SECONDS
from server_certificates import self_made_certificate
from table_logs import applied

from coordinator_core.sources.kafka_connection import close_idle_connections
from coordinator_core.state.era import Era
from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.examples.private.kafka.clients import Clients
from pipelines.job.offset_retention import with_offset_retention
from pipelines.runtime import timestamps

pytestmark = pytest.mark.broker

TOPIC = "__consumer_offsets"
VISIBLE, SECRET = "visible", "secret"
#: User → its operations on the topic of offsets, on VISIBLE, and on the cluster.
USERS = {
    "follower": ((AclOperation.READ, AclOperation.DESCRIBE_CONFIGS), (AclOperation.DESCRIBE_CONFIGS,), True),
    "reader": ((AclOperation.READ,), (AclOperation.DESCRIBE,), False),
    "describer": ((AclOperation.DESCRIBE,), (), False),
    "stranger": ((), (), False),
}


@dataclass
class Guarded:
    """A broker, the certificate that identifies it, and a client of its administrator."""

    broker: PrivateBroker
    certificate: Path
    clients: Clients

    def examine(
        self, doctor: Doctor, folder: Path, user: str, *arguments: str, scheme: str = "kafka", **changed: str
    ) -> Findings:
        """The findings for a user; `changed` replaces settings of the connection."""
        settings = {
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "PLAIN",
            "sasl_username": user,
            "sasl_password": f"{user}-password",
            "ssl_cafile": str(self.certificate),
        } | changed
        file = folder / "job.toml"
        file.write_text("[kafka]\n" + "".join(f'{name} = "{value}"\n' for name, value in settings.items() if value))
        # a connection of another test knows this broker already
        close_idle_connections()
        found = doctor.examine("--conf", str(file), "--source", f"{scheme}://{self.broker.bootstrap}", *arguments)
        assert settings["sasl_password"] == "" or settings["sasl_password"] not in str(found.rows)
        return found

    def set(self, name: str, value: str) -> None:
        """Change a setting of the topic of offsets."""
        entry = ConfigEntry(name, value, ConfigSource.DYNAMIC_TOPIC_CONFIG, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, TOPIC, incremental_configs=[entry])
        self.clients.admin.incremental_alter_configs([resource])[resource].result(PATIENCE_SECONDS)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    certificate, both = self_made_certificate(tmp_path_factory.mktemp("tls"))
    login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    users = " ".join(f'user_{user}="{user}-password"' for user in ("admin", *USERS))
    properties = {
        "listeners": "SASL_SSL://127.0.0.1:{port}",
        "security.inter.broker.protocol": "SASL_SSL",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": f'{login} username="admin" password="admin-password" {users};',
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(both),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificate),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin;User:ANONYMOUS",
    }
    admin: dict[str, str | int | float | bool] = {
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(certificate),
        "sasl.mechanism": "PLAIN",
        "sasl.username": "admin",
        "sasl.password": "admin-password",
    }
    with PrivateBroker("4.1.1", offsets_partitions=2, properties=properties) as broker:
        with Clients(broker.bootstrap, admin) as clients:
            clients.create_topics([VISIBLE, SECRET], 1)
            clients.commit(clients.consumer("group"), [(VISIBLE, 0, 1)])
            bindings = [
                binding
                for user, (of_offsets, of_visible, has_cluster) in USERS.items()
                for binding in (
                    *(_allowed(user, ResourceType.TOPIC, TOPIC, operation) for operation in of_offsets),
                    *(_allowed(user, ResourceType.TOPIC, VISIBLE, operation) for operation in of_visible),
                    *(
                        [_allowed(user, ResourceType.BROKER, "kafka-cluster", AclOperation.DESCRIBE_CONFIGS)]
                        if has_cluster
                        else ()
                    ),
                )
            ]
            for future in clients.admin.create_acls(bindings).values():
                future.result(PATIENCE_SECONDS)
            yield Guarded(broker, certificate, clients)
        close_idle_connections()


def _allowed(user: str, resource: ResourceType, name: str, operation: AclOperation) -> AclBinding:
    return AclBinding(resource, name, ResourcePatternType.LITERAL, f"User:{user}", "*", operation, AclPermissionType.ALLOW)


@pytest.fixture
def doctor(capsys: pytest.CaptureFixture[str]) -> Doctor:
    return Doctor(capsys)


@pytest.fixture
def tables(tmp_path: Path) -> str:
    """Tables with groups of both topics. Their log is another one, and they do not have its topic id."""
    log = Log(partition=0)
    log.commit(0, 5, group="g", topic=VISIBLE)
    log.commit(0, 5, group="g", topic=SECRET)
    applied(log, Era.named("4"), [], str(tmp_path / "tables"))
    return str(tmp_path / "tables")


def test_a_user_with_all_rights(guarded: Guarded, doctor: Doctor, tmp_path: Path) -> None:
    found = guarded.examine(doctor, tmp_path, "follower")
    names = ("bootstrap servers", "advertised listeners", "permissions", "settings", "topics of groups", "clock", "position")
    assert found.marks("source") == dict.fromkeys(names, "ok")
    ((_, server),) = found.of("source", "bootstrap servers")
    assert server.startswith(f"{guarded.broker.bootstrap} answers after ")
    assert server.endswith(" ms (SASL_SSL, PLAIN)")
    assert found.of("source", "permissions") == [("ok", f"topic {TOPIC}: 2 partitions, may be described and read")]
    topic, retention = found.of("source", "settings")
    assert topic[1].startswith(f"topic {TOPIC}: cleanup.policy compact, segment.bytes ")
    assert "min.insync.replicas 1" in topic[1]
    assert retention == ("ok", "offsets.retention.minutes of the brokers is 10080, which the job uses")
    # the broker's certificate ends in two days; that of the authority is the same
    assert found.marks("certificates") == {"files": "warning", "servers": "warning"}
    assert found.code == 0


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ("describer", f"not authorized to read topic {TOPIC}, only to describe it"),
        ("stranger", f"not authorized to describe topic {TOPIC}"),
    ],
)
def test_missing_rights_on_the_topic(user: str, expected: str, guarded: Guarded, doctor: Doctor, tmp_path: Path) -> None:
    found = guarded.examine(doctor, tmp_path, user)
    assert found.of("source", "permissions") == [("problem", expected)]
    # the checks that need the same rights are left out
    assert list(found.marks("source")) == ["bootstrap servers", "advertised listeners", "permissions"]


def test_optional_rights_are_warnings(guarded: Guarded, doctor: Doctor, tables: str, tmp_path: Path) -> None:
    found = guarded.examine(doctor, tmp_path, "reader", "--tables", tables)
    assert [mark for mark, _ in found.of("source", "settings")] == ["warning", "warning"]
    assert "TOPIC_AUTHORIZATION_FAILED (29)" in found.of("source", "settings")[0][1]
    describe, configs = found.of("source", "topics of groups")
    assert describe == ("warning", "not authorized to describe topic secret, so the lag of their groups is unknown")
    assert configs[0] == "warning"
    assert configs[1].startswith("settings of topics secret, visible cannot be read")


def test_a_job_without_the_right_to_read_the_retention_uses_the_default(guarded: Guarded) -> None:
    settings = {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "PLAIN",
        "sasl_username": "reader",
        "sasl_password": "reader-password",
        "ssl_cafile": str(guarded.certificate),
    }
    options, lines = run_options(f"kafka://{guarded.broker.bootstrap}/{TOPIC}", "tables", kafka=settings), list[str]()
    assert with_offset_retention(options, None, lines.append).retention_ms == 7 * 86_400_000
    assert lines == [
        "offset retention: 10,080 minutes = 7 days (default of era 4; offsets.retention.minutes of the brokers cannot be read: "
        "CLUSTER_AUTHORIZATION_FAILED (31); set job.retention_minutes if the brokers have another one)"
    ]


def test_settings_that_lose_offsets(guarded: Guarded, doctor: Doctor, tmp_path: Path) -> None:
    guarded.set("cleanup.policy", "compact,delete")
    try:

        def settings() -> tuple[str, str]:
            return guarded.examine(doctor, tmp_path, "follower", "--retention-minutes", "1440").of("source", "settings")[0]

        mark, text = eventually("the broker reports the setting", settings, lambda found: "delete" in found[1])
        assert mark == "problem"
        assert text.startswith(f"topic {TOPIC}: cleanup.policy is compact,delete: brokers delete records older than 7 days")
    finally:
        guarded.set("cleanup.policy", "compact")
    found = guarded.examine(doctor, tmp_path, "follower", "--retention-minutes", "1440")
    assert found.of("source", "settings")[1] == (
        "problem",
        "offsets.retention.minutes of the brokers is 10080, the job uses 1440",
    )


def test_the_log_of_transactions(guarded: Guarded, doctor: Doctor, tmp_path: Path) -> None:
    def found(user: str) -> list[tuple[str, tuple[str, str]]]:
        rows = guarded.examine(doctor, tmp_path, user, "--transactions")
        names = [f"{name} of transactions" for name in ("permissions", "settings", "position")]
        return [(name.partition(" ")[0], finding) for name in names for finding in rows.of("source", name)]

    topic, of_missing = "__transaction_state", "so Read was not tried"
    assert found("follower") == [("permissions", ("problem", f"not authorized to describe topic {topic}"))]
    rights = [
        _allowed("follower", ResourceType.TOPIC, topic, each) for each in (AclOperation.READ, AclOperation.DESCRIBE_CONFIGS)
    ]
    for future in guarded.clients.admin.create_acls(rights).values():
        future.result(PATIENCE_SECONDS)
    permissions, *_ = eventually("the rights apply", lambda: found("follower"), lambda rows: rows[0][1][0] != "problem")
    assert permissions[1][0] == "warning"
    assert permissions[1][1].endswith(of_missing)
    # the first transactional producer creates the topic
    guarded.clients.transaction("writer")
    permissions, settings, position = eventually(
        "the topic has a record", lambda: found("follower"), lambda rows: rows[0][1][0] == "ok"
    )
    assert permissions[1] == ("ok", f"topic {topic}: 2 partitions, may be described and read")
    assert settings[1][1].startswith(f"topic {topic}: cleanup.policy compact, segment.bytes ")
    assert position[1][1].endswith("2 partitions, read from their start by the first run with --transactions")


def test_polls_of_transactions(guarded: Guarded, doctor: Doctor, tmp_path: Path) -> None:
    guarded.clients.transaction("polled-writer")

    def found() -> tuple[str, str]:
        rows = guarded.examine(doctor, tmp_path, "describer", "--transactions", scheme="kafka-groups")
        ((mark, text),) = rows.of("source", "polls of transactions")
        return mark, text

    # brokers leave out what the user may not describe, without an error
    assert found() == ("warning", "no transactional id may be described: there is none, or the user lacks permissions")
    binding = _allowed("describer", ResourceType.TRANSACTIONAL_ID, "polled-writer", AclOperation.DESCRIBE)
    guarded.clients.admin.create_acls([binding])[binding].result(PATIENCE_SECONDS)
    wanted = ("ok", "1 transactional ids may be described")
    eventually("the right applies", found, lambda finding: finding == wanted)


def test_a_clock_that_is_behind(guarded: Guarded, doctor: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = timestamps.now_ms
    monkeypatch.setattr(timestamps, "now_ms", lambda: now() - 3_600_000)
    ((mark, text),) = guarded.examine(doctor, tmp_path, "follower").of("source", "clock")
    assert mark == "problem"
    assert text.startswith("the clock of the brokers is 3")
    assert text.endswith(" s ahead of that of this machine")


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"sasl_password": "wrong"}, "authentication failed"),
        ({"sasl_mechanism": "SCRAM-SHA-512"}, "authentication failed"),
        ({"security_protocol": "SASL_PLAINTEXT", "ssl_cafile": ""}, "is security_protocol that of the listener"),
    ],
)
def test_a_login_that_fails(changed: dict[str, str], expected: str, guarded: Guarded, doctor: Doctor, tmp_path: Path) -> None:
    found = guarded.examine(doctor, tmp_path, "reader", **changed)
    ((mark, text),) = found.of("source", "bootstrap servers")
    assert mark == "problem"
    assert expected in text
    assert list(found.marks("source")) == ["bootstrap servers"]


def test_an_authority_that_did_not_sign(guarded: Guarded, doctor: Doctor, tmp_path: Path) -> None:
    other, _ = self_made_certificate(tmp_path)
    found = guarded.examine(doctor, tmp_path, "reader", ssl_cafile=str(other))
    ((mark, text),) = found.of("source", "bootstrap servers")
    assert mark == "problem"
    assert "CERTIFICATE_VERIFY_FAILED" in text


def test_an_address_that_is_advertised_but_not_reachable(doctor: Doctor) -> None:
    unreachable = {"advertised.listeners": "PLAINTEXT://127.0.0.1:1"}
    with PrivateBroker(
        "4.1.1", offsets_partitions=1, properties={**unreachable, "listeners": "PLAINTEXT://127.0.0.1:{port}"}
    ) as broker:
        found = doctor.examine("--source", f"kafka://{broker.bootstrap}")
    assert found.marks("source") == {"bootstrap servers": "ok", "advertised listeners": "problem"}
    assert "advertises 127.0.0.1:1: connection refused" in found.of("source", "advertised listeners")[0][1]
