"""TLS, every SASL mechanism and ACLs on one broker that requires all of them, and no secret in any message or log."""

import base64
import json
import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Producer
from patience import PATIENCE_SECONDS
from server_certificates import self_made_certificate

from coordinator_core.log.errors import AuthenticationFailed, LogMisconfigured, LogUnreachable, NotAuthorized
from coordinator_core.sources.kafka import KafkaSource
from coordinator_core.sources.kafka_connection import close_idle_connections
from pipelines.examples.private.kafka.broker import PrivateBroker

pytestmark = [pytest.mark.broker, pytest.mark.long]

USER, PASSWORD = "reader", "correct-horse-battery-staple"
TOPIC = "guarded"
PLAIN = {"sasl_mechanism": "PLAIN", "sasl_username": USER, "sasl_password": PASSWORD}


@dataclass(frozen=True)
class SecureBroker:
    """A broker that listens on SASL_SSL only, and the certificate that identifies it."""

    bootstrap: str
    certificate: Path

    def read(self, options: dict[str, str], topic: str = TOPIC) -> list[int]:
        """The offsets of a topic, read with these options and the certificate."""
        given = {"security_protocol": "SASL_SSL", "ssl_cafile": str(self.certificate)} | options
        with KafkaSource(f"kafka://{self.bootstrap}/{topic}", given, connect_limit_seconds=2) as log:
            return [offset for columns in log.read_columns(0, 0, log.end_offsets()[0]) for offset in columns.offset.tolist()]


def unsigned_token(user: str) -> str:
    """A token that Kafka's development handler of OAUTHBEARER accepts: a JWT without signature."""
    claims = {"sub": user, "iat": time.time() - 5, "exp": time.time() + 600}
    parts = (json.dumps(part).encode() for part in ({"alg": "none"}, claims))
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts) + "."


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    certificate, both = self_made_certificate(tmp_path_factory.mktemp("tls"))
    modules = "org.apache.kafka.common.security"
    users = f'username="admin" password="admin-secret" user_admin="admin-secret" user_{USER}="{PASSWORD}" user_stranger="s";'
    properties = {
        "listeners": "SASL_SSL://127.0.0.1:{port}",
        "security.inter.broker.protocol": "SASL_SSL",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,OAUTHBEARER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": f"{modules}.plain.PlainLoginModule required {users}",
        "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config": f"{modules}.scram.ScramLoginModule required;",
        "listener.name.sasl_ssl.oauthbearer.sasl.jaas.config": (
            f'{modules}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="{USER}";'
        ),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(both),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificate),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:admin;User:ANONYMOUS;User:{USER}",
    }
    with PrivateBroker("4.1.1", properties=properties, scram_users={USER: PASSWORD}) as broker:
        settings = {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "ssl.ca.location": str(certificate),
            # a request that is answered late is repeated, and must not write the records again
            "enable.idempotence": True,
            "log_level": 0,
        }
        producer = Producer({"bootstrap.servers": broker.bootstrap, "sasl.username": USER, "sasl.password": PASSWORD, **settings})
        for number in range(3):
            producer.produce(TOPIC, b"%d" % number)
        assert producer.flush(PATIENCE_SECONDS) == 0
        yield SecureBroker(broker.bootstrap, certificate)
        close_idle_connections()


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_passwords_over_tls(secure: SecureBroker, mechanism: str) -> None:
    assert secure.read(PLAIN | {"sasl_mechanism": mechanism}) == [0, 1, 2]


def test_tokens(secure: SecureBroker, tmp_path: Path) -> None:
    token_file = tmp_path / "token"
    token_file.write_text(unsigned_token(USER) + "\n")
    assert secure.read({"sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token": unsigned_token(USER)}) == [0, 1, 2]
    assert secure.read({"sasl_mechanism": "oauthbearer", "sasl_oauth_token_file": str(token_file)}) == [0, 1, 2]
    token_file.unlink()
    close_idle_connections()
    with pytest.raises(LogMisconfigured, match="token: No such file"):
        secure.read({"sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token_file": str(token_file)})


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_a_wrong_password_fails_at_once_and_is_not_shown(
    secure: SecureBroker, mechanism: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with pytest.raises(AuthenticationFailed, match=r"^authentication failed: ") as failure:
        secure.read(PLAIN | {"sasl_mechanism": mechanism, "sasl_password": "wrong-and-secret"})
    assert "waiting for the brokers" not in caplog.text
    assert "wrong-and-secret" not in str(failure.value) + repr(failure.value)
    assert failure.value.__cause__ is None
    assert "wrong-and-secret" not in caplog.text


def test_nothing_secret_is_logged_when_all_goes_well(secure: SecureBroker, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    close_idle_connections()
    token = unsigned_token(USER)
    secure.read(PLAIN)
    secure.read({"sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token": token})
    assert "kafka.net" in caplog.text
    assert PASSWORD not in caplog.text
    assert token not in caplog.text


def test_missing_rights_of_a_user_are_named(secure: SecureBroker) -> None:
    with pytest.raises(NotAuthorized, match=f"not authorized to read topic {TOPIC}: the user needs the ACLs Describe and Read"):
        secure.read({"sasl_mechanism": "PLAIN", "sasl_username": "stranger", "sasl_password": "s"})


def test_an_untrusted_certificate(secure: SecureBroker, tmp_path: Path) -> None:
    other, _ = self_made_certificate(tmp_path)
    with pytest.raises(AuthenticationFailed, match=r"TLS handshake failed: .*CERTIFICATE_VERIFY_FAILED.*check ssl_cafile"):
        secure.read(PLAIN | {"ssl_cafile": str(other)})
    broken = tmp_path / "broken.pem"
    broken.write_text("no certificate")
    with pytest.raises(LogMisconfigured, match="TLS cannot be set up"):
        secure.read(PLAIN | {"ssl_cafile": str(broken)})


def test_the_wrong_protocol_is_suspected(secure: SecureBroker) -> None:
    with pytest.raises(LogUnreachable, match="is security_protocol that of the listener"):
        KafkaSource(f"kafka://{secure.bootstrap}/{TOPIC}", connect_limit_seconds=0.3)
    with pytest.raises(AuthenticationFailed, match=r"authentication failed: .*SCRAM-SHA-512"):
        secure.read(PLAIN | {"sasl_mechanism": "SCRAM-SHA-512"})
