"""`/mcp` of the page: off by default, behind its tokens, roles and TLS, no door for pages of other sites."""

import ssl
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from dashboards import Dashboard, dashboard
from patience import PATIENCE_SECONDS
from secured_dashboards import Access, two_teams

_HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


@pytest.fixture(scope="module")
def access(tmp_path_factory: pytest.TempPathFactory) -> Access:
    return Access(tmp_path_factory.mktemp("access"))


@pytest.fixture(scope="module")
def server(access: Access, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    tables = two_teams(str(tmp_path_factory.mktemp("tables") / "east"))
    verify = ssl.create_default_context(cafile=str(access.certificate))
    with dashboard(tables, conf=access.conf("mcp = true"), defaults={"headers": access.bearer(), "verify": verify}) as running:
        yield running


def post(server: Dashboard, tool: str, arguments: dict[str, Any], headers: dict[str, str], path: str = "/mcp") -> httpx.Response:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    verify = server.defaults.get("verify", True)
    return httpx.post(f"{server.url}{path}", json=body, headers={**_HEADERS, **headers}, verify=verify, timeout=PATIENCE_SECONDS)


def groups(answer: httpx.Response) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [row["group_id"] for row in answer.json()["result"]["structuredContent"]["groups"]]


def test_roles_and_tokens(server: Dashboard, access: Access) -> None:
    assert post(server, "groups", {}, {}).status_code == 401
    assert groups(post(server, "groups", {}, access.bearer())) == ["billing-eu", "billing-us\nline", "fraud"]
    team = access.bearer(access.team_token)
    assert groups(post(server, "groups", {}, team)) == ["billing-eu", "billing-us\nline"]
    hidden = post(server, "group", {"group": "fraud"}, team).json()["result"]
    assert hidden["isError"]
    # `dashboard.sql` is off
    assert post(server, "sql", {"query": "SELECT 1"}, access.bearer()).json()["result"]["isError"]


def test_browsers_and_other_methods_and_paths_are_refused(server: Dashboard, access: Access) -> None:
    assert post(server, "groups", {}, {**access.bearer(), "Origin": "https://evil.example"}).status_code == 403
    assert server.get("/mcp").status_code == 405
    assert post(server, "groups", {}, access.bearer(), path="/metrics").status_code == 405


def test_it_is_off_by_default(tmp_path_factory: pytest.TempPathFactory) -> None:
    with dashboard(two_teams(str(tmp_path_factory.mktemp("off") / "east"))) as running:
        assert post(running, "groups", {}, {}).status_code == 405
        assert running.get("/mcp").status_code == 404
