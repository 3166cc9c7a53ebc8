"""Login with OpenID Connect: a browser, a real `grouplake dashboard` and a real provider, over TLS."""

import base64
import hashlib
import json
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest
from dashboards import Dashboard
from eventually import eventually
from joserfc.jwk import RSAKey
from openid_provider import CLIENT_ID, CLIENT_SECRET, OpenIdProvider, openid_provider
from patience import PATIENCE_SECONDS
from secured_dashboards import Access, two_teams

from pipelines.examples.private.kafka.ports import PortReservation

HTML = {"Accept": "text/html,application/xhtml+xml"}
COOKIE = "__Host-grouplake"


@pytest.fixture(scope="module")
def access(tmp_path_factory: pytest.TempPathFactory) -> Access:
    return Access(tmp_path_factory.mktemp("access"))


@pytest.fixture(scope="module")
def running(access: Access, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Dashboard, OpenIdProvider]]:
    tables = two_teams(str(tmp_path_factory.mktemp("tables") / "east"))
    secret = tmp_path_factory.mktemp("secret") / "client-secret"
    secret.write_text(CLIENT_SECRET + "\n")
    port = PortReservation()
    with openid_provider(access.context) as provider, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(access.certificate))
        url = f"https://127.0.0.1:{port.port}"
        provider.client.redirect_uri = f"{url}/auth/callback"
        conf = access.conf(
            f'public_url = "{url}"',
            f'oidc_issuer = "{provider.issuer}"',
            f'oidc_client_id = "{CLIENT_ID}"',
            f'oidc_client_secret_file = "{secret}"',
            sections={"dashboard.oidc_roles": 'kafka-admins = "all"\nbilling = "team"'},
        )
        verify = ssl.create_default_context(cafile=str(access.certificate))
        port.release()
        server = Dashboard(tables, listen=f"127.0.0.1:{port.port}", conf=conf, defaults={"verify": verify})
        try:
            eventually(
                "the tables", lambda: server.get("/v3/kafka", headers=access.bearer()).status_code, lambda code: code == 200
            )
            yield server, provider
        finally:
            server.close()


@pytest.fixture
def server(running: tuple[Dashboard, OpenIdProvider]) -> Dashboard:
    return running[0]


@pytest.fixture
def provider(running: tuple[Dashboard, OpenIdProvider]) -> OpenIdProvider:
    """The provider, with its usual behaviour."""
    found = running[1]
    usual = OpenIdProvider()
    found.user, found.tamper, found.algorithm, found.has_id_token = usual.user, usual.tamper, "RS256", True
    return found


@pytest.fixture
def browser(server: Dashboard, access: Access) -> Iterator[httpx.Client]:
    verify = ssl.create_default_context(cafile=str(access.certificate))
    with httpx.Client(base_url=server.url, verify=verify, headers=HTML, timeout=PATIENCE_SECONDS) as client:
        yield client


def login(browser: httpx.Client, path: str = "/") -> httpx.Response:
    """Follow the redirects of a login by hand; the response to the callback."""
    first = browser.get(path)
    assert first.status_code == 303
    second = browser.get(first.headers["location"])
    assert second.status_code == 302
    third = browser.get(second.headers["location"])
    assert third.status_code == 302, third.text
    return browser.get(third.headers["location"])


def test_a_login(browser: httpx.Client, provider: OpenIdProvider) -> None:
    path = "/v3/kafka/east/consumer?x=1&y=%2F"
    answer = login(browser, path)
    assert (answer.status_code, answer.headers["location"]) == (303, path)
    asked = provider.requests[-1]
    assert asked["response_type"] == "code"
    assert asked["scope"] == "openid profile"
    assert asked["code_challenge_method"] == "S256"
    digest = hashlib.sha256(provider.verified[-1].encode()).digest()
    assert base64.urlsafe_b64encode(digest).decode().rstrip("=") == asked["code_challenge"]
    assert len(asked["state"]) >= 20
    assert len(asked["nonce"]) >= 20
    eventually("the tables are loaded", lambda: browser.get("/ready").status_code, lambda code: code == 200)
    assert browser.get(path).json()["consumers"] == ["billing-eu", "billing-us\nline", "fraud"]
    assert browser.get("/metrics").status_code == 200


def test_the_cookie(browser: httpx.Client, provider: OpenIdProvider, server: Dashboard) -> None:
    answer = login(browser)
    (cookie,) = answer.headers.get_list("set-cookie")
    value, *flags = [part.strip().lower() for part in cookie.split(";")]
    assert value.startswith(f"{COOKIE.lower()}=")
    assert set(flags) == {"path=/", "max-age=43200", "httponly", "samesite=lax", "secure"}
    # neither a token of the provider nor anything of the login is in it
    payload = json.loads(base64.b64decode(browser.cookies[COOKIE].split(".")[0]))
    assert payload == {"name": "anna", "role": "all"}
    forged = base64.b64encode(json.dumps({"name": "anna", "role": "all"}).encode()).decode()
    for value in (forged, forged + ".x.y", browser.cookies[COOKIE][:-2], "null"):
        assert server.get("/metrics", headers={"Cookie": f"{COOKIE}={value}"}).status_code == 401
    assert provider.requests


def test_roles_from_claims(browser: httpx.Client, provider: OpenIdProvider) -> None:
    provider.user = {"sub": "2", "groups": ["x", "billing"]}
    assert login(browser).status_code == 303
    assert browser.get("/v3/kafka/east/consumer").json()["consumers"] == ["billing-eu", "billing-us\nline"]
    assert browser.get("/metrics").status_code == 403
    assert browser.get("/auth/logout").status_code == 200
    assert browser.get("/v3/kafka").status_code == 303


@pytest.mark.parametrize("claim", [[], ["other"], "other", None, 7, {"kafka-admins": 1}])
def test_a_user_without_a_role(claim: Any, browser: httpx.Client, provider: OpenIdProvider, server: Dashboard) -> None:
    provider.user = {"sub": "3", "groups": claim}
    answer = login(browser)
    assert answer.status_code == 403
    assert answer.json()["message"] == "no role: no value of your claim 'groups' is in dashboard.oidc_roles"
    assert browser.get("/v3/kafka").status_code == 303
    assert "login failed: no role for the claim of the provider, client 127.0.0.1\n" in server.errors()


@pytest.mark.parametrize(
    ("change", "value"),
    [
        ("nonce", "another"),
        ("nonce", None),
        ("iss", "https://attacker.example"),
        ("aud", ["another-client"]),
        ("aud", None),
        ("exp", 1_000_000_000),
        ("exp", None),
        ("sub", None),
    ],
)
def test_wrong_claims(change: str, value: Any, browser: httpx.Client, provider: OpenIdProvider) -> None:
    def tamper(claims: dict[str, Any]) -> dict[str, Any]:
        # with another audience, `azp` names this client
        changed = {**claims, change: value, "azp": CLIENT_ID}
        return {name: each for name, each in changed.items() if each is not None}

    provider.tamper = tamper
    refused(browser)


def refused(browser: httpx.Client) -> None:
    answer = login(browser)
    assert answer.status_code == 403, answer.text
    assert answer.json()["message"].startswith("login failed: ")
    assert browser.get("/v3/kafka").status_code == 303


def test_another_key(browser: httpx.Client, provider: OpenIdProvider) -> None:
    usual = provider.key
    try:
        provider.published, provider.key = usual, RSAKey.generate_key(2048, {"kid": str(usual.kid)})
        refused(browser)
    finally:
        provider.published, provider.key = None, usual


def test_a_key_that_the_provider_replaced(browser: httpx.Client, provider: OpenIdProvider) -> None:
    assert login(browser).status_code == 303
    provider.key = RSAKey.generate_key(2048, {"kid": "second"})
    assert login_again(browser).status_code == 303
    assert browser.get("/metrics").status_code == 200


def login_again(browser: httpx.Client) -> httpx.Response:
    browser.get("/auth/logout")
    return login(browser)


@pytest.mark.parametrize("algorithm", ["HS256", "none"])
def test_signatures_without_the_key_of_the_provider(algorithm: str, browser: httpx.Client, provider: OpenIdProvider) -> None:
    provider.algorithm = algorithm
    refused(browser)


def test_no_id_token(browser: httpx.Client, provider: OpenIdProvider) -> None:
    provider.has_id_token = False
    refused(browser)


def test_a_refused_login(browser: httpx.Client, provider: OpenIdProvider) -> None:
    provider.user = None
    refused(browser)


def test_another_state_and_a_second_use(browser: httpx.Client, provider: OpenIdProvider) -> None:
    first = browser.get("/auth/login")
    callback = browser.get(first.headers["location"]).headers["location"]
    code = dict(parse_qsl(urlsplit(callback).query))["code"]
    # a callback that this browser did not begin
    assert browser.get(f"/auth/callback?code={code}&state=other").status_code == 403
    assert browser.get("/auth/callback").status_code == 403
    assert browser.get(callback).status_code == 403
    assert login(browser).status_code == 303
    assert provider.codes.keys() <= {code}


@pytest.mark.parametrize(
    "target", ["//attacker.example", "https://attacker.example", "/\\attacker.example", "/a\nb", "/" + "x" * 3000, ""]
)
def test_the_login_leads_to_no_other_site(target: str, browser: httpx.Client, provider: OpenIdProvider) -> None:
    first = browser.get("/auth/login", params={"next": target})
    callback = browser.get(first.headers["location"]).headers["location"]
    assert browser.get(callback).headers["location"] == "/"
    assert provider.requests[-1]["redirect_uri"] == provider.client.redirect_uri


def test_programs_get_401_and_may_use_tokens(server: Dashboard, access: Access) -> None:
    assert server.get("/v3/kafka").status_code == 401
    assert server.get("/v3/kafka", headers=access.bearer()).status_code == 200
    assert server.get("/v3/kafka", headers={**HTML, "Authorization": "Bearer x"}).status_code == 401


def test_an_unavailable_provider(access: Access, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(access.certificate))
    closed = PortReservation()
    conf = access.conf(
        'public_url = "https://127.0.0.1"',
        f'oidc_issuer = "https://127.0.0.1:{closed.port}"',
        f'oidc_client_id = "{CLIENT_ID}"',
        sections={"dashboard.oidc_roles": 'kafka-admins = "all"'},
    )
    closed.release()
    verify = ssl.create_default_context(cafile=str(access.certificate))
    server = Dashboard(two_teams(str(tmp_path / "east")), conf=conf, defaults={"verify": verify})
    try:
        answer = server.get("/auth/login")
        assert (answer.status_code, answer.json()["message"]) == (502, "the provider is not available (ConnectError): try again")
    finally:
        server.close()


def test_no_secret_in_the_log(browser: httpx.Client, provider: OpenIdProvider, server: Dashboard) -> None:
    assert login(browser).status_code == 303
    asked = provider.requests[-1]
    text = server.errors()
    secrets = [CLIENT_SECRET, "access-token-of-the-provider", asked["state"], asked["nonce"], provider.verified[-1]]
    assert not [secret for secret in (*secrets, browser.cookies[COOKIE]) if secret in text]
    assert "Traceback" not in text
