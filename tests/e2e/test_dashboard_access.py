"""Access to a real `grouplake dashboard` over TLS: tokens, passwords, roles, headers, methods, and secrets in logs."""

import re
import ssl
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from dashboards import Dashboard, dashboard
from eventually import eventually
from patience import PATIENCE_SECONDS
from prometheus_server import PrometheusServer
from secured_dashboards import PASSWORD, Access, two_teams
from starlette.routing import BaseRoute

from pipelines.dashboard.live.streams import Streams
from pipelines.dashboard.options import dashboard_options
from pipelines.dashboard.security.authentication import CALLBACK, LOGIN, LOGOUT
from pipelines.dashboard.security.hashes import TokenHash, new_token
from pipelines.dashboard.server.app import make_app
from pipelines.metrics.site import Site
from pipelines.runtime.configuration import load_configuration

PROTECTED = (
    "/",
    "/metrics",
    "/ready",
    "/openapi.json",
    "/v3/kafka",
    "/v3/kafka/east/consumer",
    "/burrow/admin",
    "/c/east/sql",
    "/x",
)


@pytest.fixture(scope="module")
def access(tmp_path_factory: pytest.TempPathFactory) -> Access:
    return Access(tmp_path_factory.mktemp("access"))


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> str:
    return two_teams(str(tmp_path_factory.mktemp("tables") / "east"))


@pytest.fixture(scope="module")
def server(access: Access, tables: str) -> Iterator[Dashboard]:
    verify = ssl.create_default_context(cafile=str(access.certificate))
    with dashboard(tables, conf=access.conf("sql = true"), defaults={"headers": access.bearer(), "verify": verify}) as running:
        yield running


def names(answer: httpx.Response, key: str) -> Any:
    assert answer.status_code == 200, answer.text
    return answer.json()[key]


def test_it_speaks_tls_only(server: Dashboard) -> None:
    assert server.url.startswith("https://")
    with pytest.raises(httpx.HTTPError):
        httpx.get(server.url.replace("https:", "http:") + "/health")
    old = ssl.create_default_context()
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    assert server.get("/health", verify=old).status_code == 200


def test_a_renewed_certificate_is_read_without_a_restart(tmp_path: Path, tables: str) -> None:
    access = Access(tmp_path)

    def trusted() -> dict[str, Any]:
        return {"headers": access.bearer(), "verify": ssl.create_default_context(cafile=str(access.certificate))}

    with dashboard(tables, conf=access.conf(), defaults=trusted()) as running:
        first = trusted()
        access.renew_certificate()
        eventually("the new certificate is used", lambda: is_trusted(running, trusted()), unless=running.failure)
        assert not is_trusted(running, first)
        assert "certificate.pem is loaded" in running.errors()
        # a key of another certificate: the pair is reported, and the certificate stays
        renewed = trusted()
        access.key.write_text(Access(folder_in(tmp_path, "other")).key.read_text())
        eventually(
            "the mistake is reported",
            lambda: (is_trusted(running, renewed), "certificate: the previous one is used" in running.errors()),
            lambda found: found[1],
        )
        assert is_trusted(running, renewed)
        assert running.end() == 0


def folder_in(folder: Path, name: str) -> Path:
    (folder / name).mkdir()
    return folder / name


def is_trusted(running: Dashboard, access: dict[str, Any]) -> bool:
    """Whether a new connection accepts the certificate of the server."""
    try:
        return running.get("/ready", **access).status_code == 200
    except httpx.ConnectError:
        return False


@pytest.mark.parametrize("path", PROTECTED)
def test_every_path_but_health_needs_credentials(path: str, server: Dashboard) -> None:
    answer = server.get(path, headers={})
    assert answer.status_code == 401
    assert answer.headers.get_list("www-authenticate") == ['Basic realm="grouplake", charset="UTF-8"', 'Bearer realm="grouplake"']
    assert answer.json()["message"] == "login required: send a token or a password of dashboard.credentials_file"
    assert server.get("/health", headers={}).status_code == 200
    # for probes: whether the clusters are loaded, and nothing about them
    loaded = server.get("/ready/loaded", headers={})
    assert (loaded.status_code, loaded.json()["message"], "clusters" in loaded.json()) == (200, "loaded", False)


@pytest.mark.parametrize(
    "value",
    [
        "Bearer",
        "Bearer wrong",
        "Bearer " + "x" * 43,
        "Basic !",
        "Basic YW5uYQ==",
        "Basic YW5uYTp3cm9uZw==",
        "Negotiate x",
        "Basic",
    ],
)
def test_wrong_credentials(value: str, server: Dashboard) -> None:
    answer = server.get("/metrics", headers={"Authorization": value})
    assert answer.status_code == 401
    assert "login failed" in answer.json()["message"]


def test_a_token_and_a_password(server: Dashboard) -> None:
    assert server.get("/metrics").status_code == 200
    for _ in range(2):
        assert server.get("/metrics", headers={}, auth=("anna", PASSWORD)).status_code == 200
    assert server.get("/metrics", headers={}, auth=("anna", PASSWORD + "x")).status_code == 401
    assert server.get("/metrics", headers={}, auth=("nobody", PASSWORD)).status_code == 401


def test_a_limited_viewer_sees_its_groups_only(server: Dashboard, access: Access) -> None:
    team = {"headers": access.bearer(access.team_token)}
    everything = names(server.get("/v3/kafka/east/consumer"), "consumers")
    assert everything == ["billing-eu", "billing-us\nline", "fraud"]
    assert names(server.get("/v3/kafka/east/consumer", **team), "consumers") == ["billing-eu", "billing-us\nline"]
    assert names(server.get("/v3/kafka/east/topic", **team), "topics") == ["orders"]
    assert names(server.get("/v3/kafka/east/topic/orders/consumers", **team), "consumers") == ["billing-eu", "billing-us\nline"]
    assert names(server.get("/v3/kafka/east/consumer/billing-us%0Aline", **team), "topics")
    for path in ("/consumer/{}", "/consumer/{}/status", "/consumer/{}/lag", "/topic/payments{}"):
        shown = path.format("" if "topic" in path else "fraud")
        unseen, unknown = (server.get(f"/v3/kafka/east{each}", **team) for each in (shown, path.format("absent")))
        assert (unseen.status_code, unknown.status_code) == (404, 404)
        # apart from the name itself, the answers are the same
        assert unseen.text.replace("fraud", "absent").replace("payments", "") == unknown.text.replace("paymentsabsent", "")
        assert server.get(f"/v3/kafka/east{shown}").status_code == 200


def test_metrics_need_a_role_without_a_limit(server: Dashboard, access: Access) -> None:
    answer = server.get("/metrics", headers=access.bearer(access.team_token))
    assert answer.status_code == 403
    assert "your role is limited" in answer.json()["message"]


@pytest.fixture(scope="module")
def routes(tables: str) -> set[str]:
    """The paths of all routes, with values for their parameters."""
    section = load_configuration(None)
    options = dashboard_options([tables], None, section.dashboard, section.metrics, section.lag)
    site = Site(options.roots, options.metrics, options.poll_seconds, lambda _: None)
    found = set(paths(make_app(site, options, Streams(options.roots, options.max_streams, options.max_user_streams)).routes))
    return {re.sub(r"\{[^}]*\}", "x", path) for path in found} | {LOGIN, CALLBACK, LOGOUT, "/nothing"}


def paths(found: Iterable[BaseRoute]) -> Iterator[str]:
    for route in found:
        # an included router of FastAPI has no path of its own
        inner = getattr(route, "original_router", None)
        yield from paths(inner.routes) if inner else [str(getattr(route, "path", "/"))]


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"])
def test_no_route_has_a_method_that_could_change_something(method: str, server: Dashboard, routes: set[str]) -> None:
    with httpx.Client(base_url=server.url, timeout=PATIENCE_SECONDS, **server.defaults) as client:
        for path in routes:
            answer = client.request(method, path)
            assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD"), path
            assert "the server only reads" in answer.json()["message"]


def test_every_route_can_be_read(server: Dashboard, routes: set[str]) -> None:
    assert {"/", "/metrics", "/health", "/v3/kafka/x/consumer/x/lag", "/c/x/sql", "/openapi.json"} <= routes
    with httpx.Client(base_url=server.url, timeout=PATIENCE_SECONDS, **server.defaults) as client:
        assert [path for path in routes if client.get(path).status_code == 405] == []


def test_queries_need_a_role_without_a_limit(server: Dashboard, access: Access) -> None:
    query = {"params": {"q": "SELECT group_id FROM groups"}}
    assert server.get("/c/east/sql", **query).status_code == 200
    answer = server.get("/c/east/sql", headers=access.bearer(access.team_token), **query)
    assert answer.status_code == 403
    assert "your role is limited" in answer.json()["message"]
    page = server.get("/c/east/sql", headers={**access.bearer(access.team_token), "Accept": "text/html"}, **query)
    assert (page.status_code, "your role is limited" in page.text, 'data-page="sql"' in page.text) == (403, True, False)


@pytest.mark.parametrize("path", ["/", "/health", "/metrics", "/nothing", "/v3/kafka", "/c/east/sql", "/auth/login"])
@pytest.mark.parametrize("is_known", [True, False])
def test_headers_of_every_answer(path: str, is_known: bool, server: Dashboard) -> None:
    headers = server.get(path, **({} if is_known else {"headers": {}})).headers
    policy = dict(each.split(" ", 1) for each in headers["content-security-policy"].split("; "))
    assert policy == {
        "default-src": "'self'",
        "style-src": "'self'",
        "script-src": "'self'",
        "img-src": "'self' data:",
        "object-src": "'none'",
        "frame-ancestors": "'none'",
        "base-uri": "'none'",
        "form-action": "'self'",
    }
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-opener-policy"] == headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["strict-transport-security"] == "max-age=31536000"
    assert headers["cache-control"] == "private, no-cache"
    assert "Authorization" in headers["vary"]
    assert "server" not in headers


@pytest.mark.long
@pytest.mark.debian
@pytest.mark.parametrize("kind", ["token", "password"])
def test_prometheus_scrapes_with_credentials(kind: str, server: Dashboard, access: Access, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(access.token if kind == "token" else PASSWORD)
    credentials = {
        "token": {"authorization": {"credentials_file": str(secret)}},
        "password": {"basic_auth": {"username": "anna", "password_file": str(secret)}},
    }
    tls = {"scheme": "https", "tls_config": {"ca_file": str(access.certificate)}}
    target = server.url.removeprefix("https://")
    with PrometheusServer(tmp_path, target, {}, access={**tls, **credentials[kind]}) as prometheus:
        lag = eventually("the lag", lambda: prometheus.query("sum(kafka_consumergroup_lag)"), bool)
        assert float(lag[0]["value"][1]) == 12


def test_a_changed_file_of_credentials(tmp_path: Path, tables: str) -> None:
    access = Access(tmp_path)
    verify = ssl.create_default_context(cafile=str(access.certificate))
    with dashboard(tables, conf=access.conf(), defaults={"headers": access.bearer(), "verify": verify}) as running:
        added = new_token()

        def code(token: str) -> int:
            return running.get("/v3/kafka", headers=access.bearer(token)).status_code

        assert (code(added), code(access.token)) == (401, 200)
        access.write_credentials(f"added all {TokenHash.of(added)}")
        eventually("the new token", lambda: code(added), lambda found: found == 200)
        access.file.write_text(f"added all {TokenHash.of(added)}\n")
        eventually("the old token is refused", lambda: code(access.token), lambda found: found == 401)
        access.file.write_text("added nothing here\n")
        eventually("the reason", lambda: (code(added), running.errors()), lambda found: "previous ones are used" in found[1])
        assert code(added) == 200


def test_no_secret_in_logs_and_a_bounded_number_of_lines(tmp_path: Path, tables: str) -> None:
    access = Access(tmp_path)
    verify = ssl.create_default_context(cafile=str(access.certificate))
    wrong = "Wr0ng-" + new_token()
    with dashboard(tables, conf=access.conf(), defaults={"headers": access.bearer(), "verify": verify}) as running:
        with httpx.Client(base_url=running.url, verify=verify, timeout=PATIENCE_SECONDS) as client:
            assert client.get("/metrics", headers=access.bearer()).status_code == 200
            for _ in range(30):
                assert client.get(f"/metrics?token={wrong}", headers=access.bearer(wrong)).status_code == 401
            for name in (wrong, "anna"):
                assert client.get("/metrics", auth=(name, wrong)).status_code == 401
            assert client.get("/metrics", auth=("anna", PASSWORD)).status_code == 200
        lines = running.errors().splitlines()
        failed = [line for line in lines if line.startswith("login failed")]
        assert failed == ["login failed: unknown token, client 127.0.0.1"] * 10
        secrets = [wrong, access.token, access.team_token, PASSWORD, *access.file.read_text().split()]
        shown = "\n".join(lines) + running.get("/ready").text + running.get("/openapi.json").text
        assert not [secret for secret in secrets if len(secret) > 16 and secret in shown]
