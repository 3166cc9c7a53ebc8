"""A dashboard behind a real reverse proxy: forwarded headers count only from the addresses that the configuration names."""

import ssl
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from dashboards import Dashboard, dashboard
from patience import PATIENCE_SECONDS
from reverse_proxy import reverse_proxy
from secured_dashboards import Access, two_teams

PROXY, OTHER = "127.0.0.9", "127.0.0.8"


@pytest.fixture(scope="module")
def access(tmp_path_factory: pytest.TempPathFactory) -> Access:
    return Access(tmp_path_factory.mktemp("access"))


@pytest.fixture(scope="module")
def server(access: Access, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    tables = two_teams(str(tmp_path_factory.mktemp("tables") / "east"))
    conf = access.conf(f'trusted_proxies = ["{PROXY}/32"]', tls=False)
    with dashboard(tables, conf=conf, defaults={"headers": access.bearer()}) as running:
        yield running


def get(url: str, access: Access, **headers: str) -> httpx.Response:
    verify = ssl.create_default_context(cafile=str(access.certificate))
    return httpx.get(f"{url}/metrics", headers={**access.bearer(), **headers}, verify=verify, timeout=PATIENCE_SECONDS)


def test_through_the_proxy(server: Dashboard, access: Access) -> None:
    with reverse_proxy(server.url, access.context, address=PROXY) as url:
        answer = get(url, access)
        assert answer.status_code == 200
        assert answer.headers["strict-transport-security"] == "max-age=31536000"
        assert get(url, access, Authorization="Bearer x").status_code == 401
    assert server.errors().endswith("login failed: unknown token, client 203.0.113.5\n")


def test_a_client_cannot_choose_its_address(server: Dashboard, access: Access) -> None:
    with reverse_proxy(server.url, access.context, address=PROXY, client="203.0.113.6") as url:
        assert get(url, access, Authorization="Bearer x", **{"X-Forwarded-For": "10.1.1.1"}).status_code == 401
    assert server.errors().endswith("login failed: unknown token, client 203.0.113.6\n")


def test_a_proxy_that_takes_clear_text(server: Dashboard, access: Access) -> None:
    with reverse_proxy(server.url, None, address=PROXY) as url:
        answer = get(url, access)
        assert answer.status_code == 403
        assert answer.json()["message"].startswith("use https: this request came without TLS")
        assert httpx.get(f"{url}/health").status_code == 200


def test_an_unknown_proxy(server: Dashboard, access: Access) -> None:
    with reverse_proxy(server.url, access.context, address=OTHER) as url:
        # a client of this machine, whose headers are ignored
        answer = get(url, access, Authorization="Bearer x")
        assert "strict-transport-security" not in answer.headers
    assert server.errors().endswith(f"login failed: unknown token, client {OTHER}\n")


def test_the_environment_trusts_no_proxy(access: Access, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")
    tables = two_teams(str(tmp_path / "east"))
    with dashboard(tables, conf=access.conf(tls=False), defaults={"headers": access.bearer()}) as running:
        answer = running.get("/metrics", headers={"Authorization": "Bearer x", "X-Forwarded-For": "203.0.113.7"})
        assert answer.status_code == 401
        assert running.errors().endswith("client 127.0.0.1\n")
