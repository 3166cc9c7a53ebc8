"""Settings of access to the dashboard: what is refused at the start, with one line."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from secured_dashboards import Access

from coordinator_core.service.net.addresses import ListenAddress
from pipelines.dashboard.security.credentials import read_credentials
from pipelines.dashboard.security.hashes import PasswordHash, TokenHash, parse_hash
from pipelines.dashboard.security.login_log import LoginLog
from pipelines.dashboard.security.roles import Roles
from pipelines.dashboard.security.settings import SecuritySettings, security_settings
from pipelines.dashboard.security.viewer import Viewer
from pipelines.dashboard.sql.settings import sql_settings
from pipelines.runtime.configuration import load_configuration
from pipelines.runtime.errors import UsageError

SECTION = load_configuration(None).dashboard
LOOPBACK, REMOTE = ListenAddress("127.0.0.1", 0), ListenAddress("0.0.0.0", 80)
OIDC: dict[str, Any] = {
    "oidc_issuer": "https://id.example",
    "oidc_client_id": "c",
    "public_url": "https://g.example/",
    "oidc_roles": {"a": "all"},
}


@pytest.fixture(scope="module")
def access(tmp_path_factory: pytest.TempPathFactory) -> Access:
    return Access(tmp_path_factory.mktemp("access"))


def settings(listen: ListenAddress = LOOPBACK, **changes: Any) -> SecuritySettings:
    return security_settings({**SECTION, **changes}, listen)


def refusal(listen: ListenAddress = LOOPBACK, **changes: Any) -> str:
    with pytest.raises(UsageError) as error:
        settings(listen, **changes)
    message = str(error.value)
    assert "\n" not in message
    return message


def test_the_default_is_a_loopback_address_without_authentication() -> None:
    assert not settings().has_authentication
    assert not sql_settings(SECTION).is_on


def test_other_addresses_need_authentication_and_encryption(access: Access) -> None:
    tls: dict[str, Any] = {"tls_certificate": str(access.certificate), "tls_key": str(access.key)}
    credentials: dict[str, Any] = {"credentials_file": str(access.file), "roles": {"team": "x"}}
    proxies: dict[str, Any] = {"trusted_proxies": ["10.0.0.7", "fd00::/8"]}
    assert refusal(REMOTE).startswith("0.0.0.0:80 is not a loopback address: set dashboard.credentials_file or")
    assert refusal(REMOTE, **tls).startswith("0.0.0.0:80 is not a loopback address: set dashboard.credentials_file or")
    assert refusal(**proxies).startswith("dashboard.trusted_proxies makes the server reachable from other machines: set")
    assert refusal(REMOTE, **credentials).startswith("0.0.0.0:80 is not a loopback address: set dashboard.tls_certificate and")
    for allowed in ({**tls, **credentials}, {**proxies, **credentials}, {**tls, **proxies, **OIDC}):
        assert settings(REMOTE, **allowed).has_authentication
    assert settings(**proxies, **credentials).trusted_proxies == ("10.0.0.7", "fd00::/8")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"trusted_proxies": ["proxy.example"]}, "dashboard.trusted_proxies: 'proxy.example' is not an IP address or network"),
        ({"trusted_proxies": ["*"]}, "dashboard.trusted_proxies: '*' is not"),
        ({"trusted_proxies": ["0.0.0.0/0"]}, "dashboard.trusted_proxies: '0.0.0.0/0' is every address"),
        ({"tls_certificate": "/absent"}, "dashboard.tls_key is missing"),
        ({"tls_certificate": "/absent", "tls_key": "/absent"}, "dashboard.tls_certificate: cannot read /absent: No such file"),
        ({"credentials_file": "/absent"}, "dashboard.credentials_file: cannot read /absent: No such file"),
        ({"roles": {"team": "("}}, "dashboard.roles.team: invalid regular expression '('"),
        ({"roles": {"team": 1}}, "dashboard.roles.team must be a regular expression, not 1"),
        ({**OIDC, "oidc_client_id": ""}, "dashboard.oidc_client_id is missing"),
        ({**OIDC, "public_url": "http://127.0.0.1"}, "dashboard.public_url must be an https:// address"),
        ({**OIDC, "oidc_issuer": "http://id.example"}, "dashboard.oidc_issuer must be an https:// address"),
        ({**OIDC, "oidc_issuer": "https://u:p@id.example"}, "dashboard.oidc_issuer must be an https:// address without user"),
        ({**OIDC, "oidc_roles": {}}, "dashboard.oidc_roles is empty"),
        ({**OIDC, "oidc_roles": {"a": "no"}}, "dashboard.oidc_roles.a: unknown role 'no' (roles: all)"),
        ({**OIDC, "session_hours": 0}, "dashboard.session_hours is 0"),
        ({**OIDC, "oidc_client_secret_file": "/absent"}, "dashboard.oidc_client_secret_file: cannot read /absent"),
    ],
)
def test_invalid_settings(changes: dict[str, Any], message: str) -> None:
    assert refusal(**changes).startswith(message)


def test_keys_that_cannot_be_used(access: Access, tmp_path: Path) -> None:
    encrypted = tmp_path / "encrypted.pem"
    subprocess.run(
        ["openssl", "rsa", "-aes256", "-passout", "pass:secret", "-in", access.key, "-out", encrypted],
        check=True,
        capture_output=True,
    )
    other = Access(tmp_path)
    assert "is encrypted" in refusal(tls_certificate=str(access.certificate), tls_key=str(encrypted))
    assert "KEY_VALUES_MISMATCH" in refusal(tls_certificate=str(access.certificate), tls_key=str(other.key))
    other.key.write_text("x")
    assert "cannot be used" in refusal(tls_certificate=str(access.certificate), tls_key=str(other.key))


def test_secrets_are_not_shown(access: Access, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s3cret-of-the-client\n")
    found = settings(**OIDC, oidc_client_secret_file=str(secret))
    assert found.oidc is not None
    assert found.oidc.client_secret == "s3cret-of-the-client"
    credentials = read_credentials(str(access.file), Roles({"team": "x"}))
    assert "s3cret" not in repr(found)
    assert repr(credentials) == "Credentials()"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("anna all", "2 words: use NAME ROLE HASH"),
        ("anna no sha256:" + "a" * 64, "unknown role of anna (roles: all)"),
        ("a:b all sha256:" + "a" * 64, "invalid name"),
        ("anna all hunter2", "invalid hash"),
        ("anna all sha256:abc", "invalid hash"),
        ("anna all scrypt:1000:8:5:AAAAAAAAAAAAAAAAAAAAAA==:" + "A" * 43 + "=", "invalid parameters of scrypt: n 1000"),
        ("anna all scrypt:1048576:64:1:AAAAAAAAAAAAAAAAAAAAAA==:" + "A" * 43 + "=", "invalid parameters of scrypt: n 1048576"),
        ("# nothing", "has no credentials"),
    ],
)
def test_invalid_credentials(line: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "credentials"
    path.write_text(f"\n{line}\n")
    with pytest.raises(UsageError) as error:
        read_credentials(str(path), Roles({}))
    assert message in str(error.value)
    assert "hunter2" not in str(error.value)
    assert "line 2" in str(error.value) or line.startswith("#")


def test_a_second_password_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "credentials"
    path.write_text(f"anna all {PasswordHash.of('x')}\n" * 2)
    with pytest.raises(UsageError, match="line 2: a second password of anna"):
        read_credentials(str(path), Roles({}))


def test_hashes_are_read_as_they_are_written() -> None:
    password, token = PasswordHash.of("pässword"), TokenHash.of("t")
    assert parse_hash(str(password)) == password
    assert parse_hash(str(token)) == token
    assert password.matches("pässword")
    assert not password.matches("password")
    assert str(PasswordHash.of("pässword")) != str(password)


@given(st.text())
def test_a_role_without_a_limit_sees_every_name(name: str) -> None:
    for pattern in (".*", "(.*)"):
        viewer = Roles({"r": pattern}).viewer("v", "r")
        assert viewer is not None
        assert viewer.may_see(name)


@given(st.text())
def test_a_pattern_matches_the_whole_name(name: str) -> None:
    viewer = Roles({"r": "billing-[a-z]+"}).viewer("v", "r")
    assert viewer is not None
    assert not viewer.may_see(f"{name}\nbilling-eu")
    assert not viewer.may_see(f"billing-eu\n{name}")
    assert viewer.visible([name, "billing-eu"]) == (["billing-eu"] if not viewer.may_see(name) else [name, "billing-eu"])


def test_an_unknown_role_has_no_viewer() -> None:
    assert Roles({}).viewer("v", "removed") is None
    assert Roles({}).viewer("v", "all") == Viewer("v", None)


def test_the_log_of_failed_logins_is_bounded() -> None:
    lines: list[str] = []
    now = 0.0
    log = LoginLog(lines.append, lambda: now)
    for _ in range(500):
        log.failed("unknown token", "10.0.0.1")
    assert lines == ["login failed: unknown token, client 10.0.0.1"] * 10
    now = 61.0
    log.failed("unknown name", "\x1b[2J forged line")
    assert lines[10:] == ["login failed: 490 more times", "login failed: unknown name, client unknown"]
