"""A real `grouplake dashboard` and clients that misuse HTTP: slow requests, many streams, odd hosts, ids and paths."""

import contextlib
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from dashboards import Dashboard, configuration_file, dashboard
from event_streams import EventStream
from eventually import eventually
from patience import PATIENCE_SECONDS
from secured_dashboards import Access, two_teams

from pipelines.dashboard.server.connection import REQUEST_SECONDS

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> str:
    return two_teams(str(tmp_path_factory.mktemp("tables") / "east"))


@pytest.fixture(scope="module")
def server(tables: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    with dashboard(tables, conf=configuration_file(tmp_path_factory.mktemp("conf"), {"dashboard": "poll_ms = 50"})) as running:
        yield running


def connect(server: Dashboard) -> socket.socket:
    address = urlsplit(server.url)
    assert address.hostname is not None
    assert address.port is not None
    return socket.create_connection((address.hostname, address.port), timeout=PATIENCE_SECONDS)


def is_closed(connection: socket.socket, drip: bytes) -> bool:
    """Send a part of a request; True once the server has closed the connection."""
    try:
        if drip:
            connection.sendall(drip)
        connection.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            return connection.recv(100) == b""
        return False
    except OSError:
        return True
    finally:
        connection.setblocking(True)


@pytest.mark.long
def test_a_request_that_does_not_arrive_is_cut_off(server: Dashboard) -> None:
    """Three clients: no byte at all, a header without an end, a body that was announced. A stream of events goes on."""
    started = time.monotonic()
    slow = {
        "silent": (b"", b""),
        "header": (b"GET / HTTP/1.1\r\nHost: localhost\r\n", b"X: y\r\n"),
        "body": (b"GET /nope HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n", b"x"),
    }
    with ExitStack() as stack:
        stream = stack.enter_context(EventStream(server.url)).wait_until_open()
        clients = {name: stack.enter_context(connect(server)) for name in slow}
        for name, (begin, _) in slow.items():
            clients[name].sendall(begin)
        # the body is refused before it has arrived, and the rest of the connection is limited as well
        assert b"404" in clients["body"].recv(10_000)
        closed: dict[str, float] = {}

        def all_closed() -> dict[str, float]:
            for name, (_, drip) in slow.items():
                if name not in closed and is_closed(clients[name], drip):
                    closed[name] = time.monotonic() - started
            return closed

        eventually("the server closes all connections", all_closed, lambda found: len(found) == len(slow))
        assert all(seconds >= REQUEST_SECONDS - 0.5 for seconds in closed.values()), closed
        assert not stream.is_ended
        assert server.get("/health").status_code == 200


def test_a_request_in_parts_is_answered(server: Dashboard) -> None:
    with connect(server) as connection:
        for part in (
            b"GET /health HTT",
            b"P/1.1\r\nHost: localhost\r\n",
            b"\r\nGET /health HTTP/1.1\r\nHo",
            b"st: localhost\r\n\r\n",
        ):
            connection.sendall(part)
        received = b""

        def answers() -> int:
            nonlocal received
            received += connection.recv(10_000)
            return received.count(b"HTTP/1.1 200")

        eventually("both answers", answers, lambda count: count == 2)


@pytest.mark.parametrize(
    "host",
    [
        "localhost%25.attacker.example",
        "127.0.0.1%attacker.example",
        "localhost:80@attacker.example",
        "127.0.0.1@x",
        "user@localhost",
        "[::1%25lo]",
        "[::1]@x",
        "localhost:80:80",
        "localhost:x",
        "local host",
        "localhost/x",
        "[127.0.0.1",
        "localhost,x",
    ],
)
def test_an_odd_host_is_refused(server: Dashboard, host: str) -> None:
    answer = server.get("/metrics", headers={"Host": host})
    assert answer.status_code == 400
    assert answer.json()["message"] == f"invalid Host {host!r}: use a name or an address, and a port"


def test_two_hosts_or_none_are_refused(server: Dashboard) -> None:
    for lines in (b"Host: localhost\r\nHost: attacker.example\r\n", b""):
        with connect(server) as connection:
            connection.sendall(b"GET /metrics HTTP/1.1\r\n" + lines + b"\r\n")
            assert connection.recv(10_000).startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize("text", ["1" * 5_000, "1" * 19, "-1", "1.0", "x", "１"])
def test_an_id_that_is_no_batch_is_refused(server: Dashboard, text: str) -> None:
    requests: list[tuple[str, dict[str, Any]]] = [
        ("Last-Event-ID", {"headers": {"Last-Event-ID": text.encode()}}),
        ("after", {"params": {"after": text}}),
    ]
    for name, request in requests:
        answer = server.get("/c/east/events", **request)
        assert answer.status_code == 400, answer.text
        assert answer.json()["message"].startswith(f"invalid {name} '")
        assert len(answer.text) < 500
    assert "Traceback" not in server.errors()


def test_unknown_paths_are_pages_in_a_browser(server: Dashboard) -> None:
    for path in ("/nope", "/static/nope.js", "/c/east/nope", "/c/east/groups/a/b", "/%3Cscript%3E"):
        page = server.get(path, headers=BROWSER)
        assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8"), path
        assert '<a href="/">All clusters</a>' in page.text
        assert "<script>" not in page.text
        assert "content-security-policy" in page.headers
        assert server.get(path).json()["error"] is True, "programs get JSON"
    for path in ("/nope.json", "/c/east/nope.csv"):
        assert server.get(path, headers=BROWSER).json()["error"] is True


@pytest.fixture(scope="module")
def access(tmp_path_factory: pytest.TempPathFactory) -> Access:
    return Access(tmp_path_factory.mktemp("access"))


@pytest.fixture(scope="module")
def secured(access: Access, tables: str) -> Iterator[Dashboard]:
    verify = ssl.create_default_context(cafile=str(access.certificate))
    conf = access.conf("max_streams = 5\nmax_user_streams = 2")
    with dashboard(tables, conf=conf, defaults={"headers": access.bearer(), "verify": verify}) as running:
        yield running


def test_streams_of_one_user_leave_some_for_others(secured: Dashboard, access: Access) -> None:
    team = access.bearer(access.team_token)
    with ExitStack() as stack:
        client = stack.enter_context(
            httpx.Client(base_url=secured.url, verify=secured.defaults["verify"], timeout=PATIENCE_SECONDS)
        )

        def opened(headers: dict[str, str]) -> httpx.Response:
            return stack.enter_context(client.stream("GET", "/c/east/events", headers=headers))

        assert [opened(team).status_code for _ in range(2)] == [200, 200]
        refused = opened(team)
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "10")
        refused.read()
        assert "2 streams of events of this user are open (dashboard.max_user_streams)" in refused.json()["message"]
        assert [opened(access.bearer()).status_code for _ in range(2)] == [200, 200]

    def code() -> int:
        with httpx.stream("GET", f"{secured.url}/c/east/events", **{**secured.defaults, "headers": team}) as answer:
            return answer.status_code

    eventually("the streams are free again", code, lambda found: found == 200)


def test_an_odd_host_is_refused_with_authentication(secured: Dashboard, access: Access) -> None:
    answer = secured.get("/metrics", headers={**access.bearer(), "Host": "groups.example.com@attacker.example"})
    assert answer.status_code == 400
    assert secured.get("/metrics", headers={**access.bearer(), "Host": "groups.example.com:8443"}).status_code == 200


def test_answers_before_authentication_name_no_host(secured: Dashboard, access: Access, tmp_path: Path) -> None:
    hidden = (socket.gethostname(), str(tmp_path.parent))
    for path in ("/health", "/metrics", "/nope", "/c/east/groups"):
        for headers in ({}, {"Authorization": "Bearer x"}, access.bearer(access.team_token)):
            assert not [text for text in hidden if text in secured.get(path, headers=headers).text], path
    assert secured.get("/v3/kafka").json()["request"]["host"] == socket.gethostname()
