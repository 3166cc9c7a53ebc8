"""`grouplake dashboard` as a process: start, snapshots of new batches, addresses, errors, and its end."""

import ast
import gzip
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from dashboards import Dashboard, configuration_file, dashboard
from eventually import eventually
from lag_tables import group_row, lag_row, write_tables
from metrics_text import values
from patience import PATIENCE_SECONDS

from pipelines.cli import main
from pipelines.dashboard.options import dashboard_options
from pipelines.runtime.configuration import load_configuration
from pipelines.runtime.errors import UsageError

CONFIGURATION = load_configuration(None)


def write(folder: str, end: int) -> None:
    at = datetime.now(UTC)
    write_tables(folder, at, groups=[group_row("billing", 1)], lag=[lag_row("billing", "orders", 0, 0, end, sampled_at=at)])


@pytest.fixture
def tables(tmp_path: Path) -> str:
    folder = str(tmp_path / "east")
    write(folder, 5)
    return folder


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    folder = str(tmp_path_factory.mktemp("server") / "east")
    write(folder, 5)
    with dashboard(folder) as running:
        yield running


def test_new_batches_are_served(tables: str, tmp_path: Path) -> None:
    with dashboard(tables, conf=configuration_file(tmp_path, {"dashboard": "poll_ms = 50"})) as running:

        def lag() -> dict[tuple[str, ...], float]:
            return values(running.get("/metrics").content, "kafka_consumergroup_lag", "consumergroup")

        assert lag() == {("billing",): 5}
        write(tables, 9)
        eventually("the new batch", lag, lambda found: found == {("billing",): 9})
        assert running.get("/ready").json()["clusters"]["east"]["batch_id"] == 1
        assert running.errors() == ""


def test_tables_that_do_not_exist_yet(tmp_path: Path) -> None:
    folder = str(tmp_path / "later")
    running = Dashboard(folder, conf=configuration_file(tmp_path, {"dashboard": "poll_ms = 50"}))
    try:
        assert running.get("/health").status_code == 200
        waiting = eventually("why it waits", lambda: running.get("/ready"), lambda found: "no complete batch" in found.text)
        assert (waiting.status_code, running.get("/burrow/admin/ready").status_code) == (503, 503)
        assert waiting.json()["clusters"]["later"] == {
            "batch_id": None,
            "finished_at": None,
            "sampled_at": None,
            "age": None,
            "error": "no complete batch yet",
        }
        write(folder, 5)
        running.wait_until_ready()
        assert running.errors().splitlines() == [
            "cluster later: no complete batch yet",
            "cluster later: batch 0 is loaded",
        ]
    finally:
        running.close()


def test_several_clusters(tables: str, tmp_path: Path) -> None:
    west = str(tmp_path / "other")
    write(west, 7)
    with dashboard(tables, f"west={west}") as running:
        assert running.get("/v3/kafka").json()["clusters"] == ["east", "west"]
        found = values(running.get("/metrics").content, "kafka_consumergroup_lag", "cluster_name", "consumergroup")
        assert found == {("east", "billing"): 5, ("west", "billing"): 7}


def test_sigterm_ends_it(tables: str) -> None:
    with dashboard(tables) as running:
        assert running.end() == 0
        assert running.errors() == ""


def test_compression_and_entity_tags(server: Dashboard) -> None:
    with httpx.Client(base_url=server.url, timeout=PATIENCE_SECONDS) as client:
        plain = client.get("/metrics", headers={"Accept-Encoding": "identity"})
        compressed = client.get("/metrics", headers={"Accept-Encoding": "gzip"})
        assert plain.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert compressed.headers["content-encoding"] == "gzip"
        assert compressed.content == plain.content
        assert int(compressed.headers["content-length"]) < len(plain.content)
        refused = client.get("/metrics", headers={"Accept-Encoding": "gzip;q=0, br"})
        assert "content-encoding" not in refused.headers
        unchanged = client.get("/metrics", headers={"If-None-Match": plain.headers["etag"]})
        assert (unchanged.status_code, unchanged.content) == (304, b"")
        assert gzip.compress(plain.content)
        head = client.head("/metrics")
        assert (head.status_code, head.content) == (200, b"")


def test_errors_are_json(server: Dashboard) -> None:
    for method, path, code in (("GET", "/nothing", 404), ("POST", "/metrics", 405), ("PUT", "/v3/kafka", 405)):
        response = httpx.request(method, f"{server.url}{path}", timeout=PATIENCE_SECONDS)
        assert response.status_code == code
        found = response.json()
        assert found["error"] is True
        assert found["request"]["url"] == path


def test_other_hosts_are_refused(server: Dashboard) -> None:
    response = server.get("/metrics", headers={"Host": "attacker.example"})
    assert response.status_code == 421
    assert "dashboard.credentials_file" in response.json()["message"]
    for host in ("localhost:8080", "127.0.0.1", "[::1]:80"):
        assert server.get("/health", headers={"Host": host}).status_code == 200


def test_the_first_page_is_the_overview_with_links_to_what_there_is(server: Dashboard) -> None:
    first = server.get("/")
    assert (first.status_code, first.headers["location"]) == (307, "/c/east/")
    page = server.get("/c/east/")
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'self'" in page.headers["content-security-policy"]
    for path in ("/metrics", "/v3/kafka", "/openapi.json", "/c/east/index.json"):
        assert f'href="{path}"' in page.text
        assert server.get(path).status_code == 200
    assert "1 group" in page.text


def test_an_address_in_use(server: Dashboard, tables: str, capsys: pytest.CaptureFixture[str]) -> None:
    address = server.url.removeprefix("http://")
    assert main(["dashboard", "--tables", tables, "--listen", address]) == 1
    assert capsys.readouterr().err == f"grouplake: cannot listen on {address}: Address already in use\n"


@pytest.mark.parametrize(
    ("tables", "listen", "changes", "message"),
    [
        (["t"], "0.0.0.0:8080", {}, "0.0.0.0:8080 is not a loopback address: set dashboard.credentials_file or"),
        (["t"], "groups.example:80", {}, "groups.example:80 is not a loopback address"),
        (["t"], "8080", {}, "--listen: invalid address '8080': use HOST:PORT"),
        (["t"], None, {"listen": "x"}, "dashboard.listen: invalid address 'x'"),
        (["/a/t", "/b/t"], None, {}, "two folders for cluster 't', /a/t and /b/t: name them with --tables NAME=DIR"),
        (["a.b=t"], None, {}, "invalid cluster name 'a.b': use 1–100 letters, digits, '_' or '-'"),
        (["t"], None, {"poll_ms": 0}, "dashboard.poll_ms is 0: must be 1 or more"),
    ],
)
def test_invalid_options(tables: list[str], listen: str | None, changes: dict[str, object], message: str) -> None:
    section = {**CONFIGURATION.dashboard, **changes}
    with pytest.raises(UsageError) as error:
        dashboard_options(tables, listen, section, CONFIGURATION.metrics, CONFIGURATION.lag)
    assert str(error.value).startswith(message)


def test_another_address_is_refused_with_one_line(tables: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dashboard", "--tables", tables, "--listen", "0.0.0.0:0"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == (
        "grouplake: 0.0.0.0:0 is not a loopback address: set dashboard.credentials_file or dashboard.oidc_issuer, "
        "or use 127.0.0.1 without a proxy\n"
    )


def test_names_of_clusters() -> None:
    options = dashboard_options(["a=x", "/b/t/"], None, CONFIGURATION.dashboard, CONFIGURATION.metrics, CONFIGURATION.lag)
    assert options.roots == {"a": "x", "t": "/b/t/"}
    assert str(options.listen) == "127.0.0.1:8080"


def test_without_the_extra(tables: str) -> None:
    program = (
        "import sys\n"
        "sys.modules['fastapi'] = None\n"
        "from pipelines.cli import main\n"
        f"sys.exit(main(['dashboard', '--tables', {tables!r}, '--listen', '127.0.0.1:0']))"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    assert found.returncode == 2
    assert found.stderr == "grouplake: grouplake dashboard needs the package fastapi: pip install 'grouplake[dashboard]'\n"


def test_what_the_server_loads() -> None:
    program = "import pipelines.dashboard.server.server, sys; print({name.partition('.')[0] for name in sys.modules})"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True)
    loaded = ast.literal_eval(found.stdout)
    assert "fastapi" in loaded
    assert not {"pyspark", "delta", "sqlglot", "numba", "kafka", "pandas"} & loaded


def test_a_stale_snapshot_has_no_lag(tmp_path: Path) -> None:
    folder = str(tmp_path / "east")
    old = datetime.now(UTC) - timedelta(minutes=6)
    write_tables(folder, old, groups=[group_row("g", 1)], lag=[lag_row("g", "orders", 0, 1, 2, sampled_at=old)])
    with dashboard(folder) as running:
        text = running.get("/metrics").text
        assert "grouplake_snapshot_timestamp_seconds" in text
        assert "consumergroup_lag" not in text
