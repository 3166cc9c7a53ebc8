"""SQL from the network: off by default, reading statements only, and limits on time, memory and rows."""

import os
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from dashboards import Dashboard, configuration_file, dashboard
from eventually import eventually
from log_builder import Log
from patience import PATIENCE_SECONDS
from processes import family
from secured_dashboards import two_teams
from table_logs import applied

from coordinator_core.state.era import Era

ENDLESS = "SELECT count(*) FROM generate_series(1, 1000000000000)"


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> str:
    return two_teams(str(tmp_path_factory.mktemp("tables") / "east"))


@pytest.fixture(scope="module")
def server(tables: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    section = "sql = true\nsql_seconds = 120\nsql_memory_mb = 300\nsql_rows = 5"
    conf = configuration_file(tmp_path_factory.mktemp("conf"), {"dashboard": section})
    with dashboard(tables, conf=conf) as running:
        yield running


def query(server: Dashboard, sql: str, **parameters: str) -> httpx.Response:
    return server.get("/c/east/sql", params={"q": sql, **parameters}, timeout=PATIENCE_SECONDS)


def test_it_is_off_by_default(tables: str) -> None:
    with dashboard(tables) as running:
        answer = query(running, "SELECT 1")
        assert (answer.status_code, answer.json()["message"]) == (
            403,
            "queries are switched off: dashboard.sql = true switches them on",
        )


def test_rows_columns_and_batch(server: Dashboard) -> None:
    found = query(server, "SELECT group_id, member_count FROM groups ORDER BY group_id").json()
    assert found["columns"] == [
        {"name": "group_id", "type": "STRING"},
        {"name": "member_count", "type": "INT"},
    ]
    assert found["rows"] == [["billing-eu", 1], ["billing-us\nline", 1], ["fraud", 1]]
    assert (found["batch_id"], found["note"], found["error"]) == (0, None, False)
    assert query(server, "SELECT 1", as_of="0").json()["rows"] == [[1]]
    assert query(server, "SELECT sum(lag) AS lag FROM lag").json()["rows"] == [[12]]


def test_a_browser_gets_a_page(server: Dashboard, tables: str) -> None:
    headers = {"Accept": "text/html"}

    def page(of: Dashboard, sql: str = "") -> httpx.Response:
        return of.get("/c/east/sql", params={"q": sql}, headers=headers, timeout=PATIENCE_SECONDS)

    found = page(server, "SELECT group_id, member_count FROM groups ORDER BY group_id")
    assert (found.status_code, found.headers["vary"]) == (200, "Accept, Accept-Encoding")
    assert '<td>billing-us\\u000aline</td><td class="identifier">1</td>' in found.text
    assert "<caption>3 rows, batch 0</caption>" in found.text
    assert 'href="/c/east/sql" data-page="sql" aria-current="page"' in found.text
    refused = page(server, "DELETE FROM groups")
    assert (refused.status_code, "only queries are allowed here" in refused.text) == (400, True)
    assert ">DELETE FROM groups</textarea>" in refused.text.replace("\n", "")
    assert "SELECT+%2A+FROM+rebalances+LIMIT+100" in page(server).text
    # the JSON of the page, for browsers too
    assert server.get("/c/east/sql.json", params={"q": "SELECT 1"}, headers=headers).json()["rows"] == [[1]]
    with dashboard(tables) as closed:
        off = page(closed, "SELECT 1")
        assert (off.status_code, "dashboard.sql = true switches them on" in off.text) == (403, True)
        assert 'data-page="sql"' not in off.text


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("DELETE FROM groups", "only queries are allowed here"),
        ("COPY groups TO '/tmp/x'", "only queries are allowed here"),
        ("CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '/etc/passwd'", "only queries are allowed here"),
        ("SELECT * FROM '/etc/passwd'", "no table or view '/etc/passwd'"),
        ("SELECT nothing FROM groups", "query failed"),
        ("SELECT 1 / (batch_id - batch_id) FROM batches", "query failed"),
        ("", "the parameter q has no query"),
        ("SELECT '" + "x" * 16_384 + "'", "the query has 16,393 characters: use 16,384 or fewer"),
    ],
)
def test_refused_queries(sql: str, message: str, server: Dashboard) -> None:
    answer = query(server, sql)
    assert answer.status_code == 400, answer.text
    assert message in answer.json()["message"]


def test_other_refusals(server: Dashboard) -> None:
    assert query(server, "SELECT 1", as_of="77").status_code == 400
    assert server.get("/c/west/sql", params={"q": "SELECT 1"}).status_code == 404
    crossing = server.get("/c/east/sql", params={"q": "SELECT 1"}, headers={"Sec-Fetch-Site": "cross-site"})
    assert (crossing.status_code, crossing.json()["message"]) == (403, "queries from pages of other sites are refused")
    same = server.get("/c/east/sql", params={"q": "SELECT 1"}, headers={"Sec-Fetch-Site": "same-origin"})
    assert same.status_code == 200


def test_rows_are_cut_with_a_note(server: Dashboard) -> None:
    found = query(server, "SELECT value FROM generate_series(1, 100000000000)").json()
    assert found["rows"] == [[1], [2], [3], [4], [5]]
    assert found["note"] == "only the first 5 rows (dashboard.sql_rows)"
    large = query(server, "SELECT repeat('x', 5000000) FROM generate_series(1, 5)").json()
    assert (len(large["rows"]), large["note"]) == (3, "only the first 3 rows: the answer has at most 16 MiB")


@pytest.mark.parametrize(
    "sql", ["SELECT repeat('x', 2000000000)", "SELECT array_agg(a.value) FROM generate_series(1, 1000000000) a"]
)
def test_too_much_memory(sql: str, server: Dashboard) -> None:
    answer = query(server, sql)
    assert (answer.status_code, answer.json()["message"]) == (422, "the query needs more than 300 MiB (dashboard.sql_memory_mb)")
    assert query(server, "SELECT 1").json()["rows"] == [[1]]
    assert server.errors() == ""


def test_a_query_that_runs_too_long_is_killed(tables: str, tmp_path: Path) -> None:
    conf = configuration_file(tmp_path, {"dashboard": "sql = true\nsql_seconds = 3"})
    with dashboard(tables, conf=conf) as running:
        before = family(running.process.pid)
        answer = query(running, ENDLESS)
        assert (answer.status_code, answer.json()["message"]) == (422, "the query took more than 3 s (dashboard.sql_seconds)")
        assert family(running.process.pid) == before
        assert running.get("/health").status_code == 200


@pytest.mark.long
def test_queries_at_a_time_are_bounded(tables: str, tmp_path: Path) -> None:
    conf = configuration_file(tmp_path, {"dashboard": "sql = true\nsql_seconds = 4\nsql_processes = 1"})
    with dashboard(tables, conf=conf) as running, ThreadPoolExecutor(14) as pool:
        waiting = [pool.submit(query, running, ENDLESS) for _ in range(14)]
        refused = eventually("a refusal", lambda: [each.result() for each in waiting if each.done()], bool)[0]
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert refused.json()["message"] == "9 queries run or wait: try again (dashboard.sql_processes)"
        assert len(family(running.process.pid)) <= 2
        # requests that wait end with the server, and so do their processes
        children = family(running.process.pid) - {running.process.pid}
        assert running.end() == 0
        eventually(
            "the processes end", lambda: [pid for pid in children if Path(f"/proc/{pid}").exists()], lambda found: not found
        )


def test_a_query_survives_no_dead_server_for_long(tables: str, tmp_path: Path) -> None:
    conf = configuration_file(tmp_path, {"dashboard": "sql = true\nsql_seconds = 1"})
    running = dashboard(tables, conf=conf)
    with running as started, ThreadPoolExecutor(1) as pool:
        answer = pool.submit(query, started, ENDLESS)
        children = eventually("the process", lambda: family(started.process.pid) - {started.process.pid}, bool)
        os.kill(started.process.pid, signal.SIGKILL)
        assert isinstance(answer.exception(60), httpx.HTTPError)
        eventually("the process ends", lambda: [pid for pid in children if _runs(pid)], lambda found: not found)


def _runs(pid: int) -> bool:
    found = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(found.strip()) and not found.startswith("Z")


def test_hostile_names_are_values_of_json(tmp_path: Path) -> None:
    hostile = "</script><b>\u202e\x00\x1b[2J" + "x" * 32_000
    log = Log(partition=3)
    log.commit(0, 5, group=hostile, topic="orders")
    applied(log, Era.named("4"), [], str(tmp_path / "east"))
    conf = configuration_file(tmp_path, {"dashboard": "sql = true\nsql_seconds = 60"})
    with dashboard(str(tmp_path / "east"), conf=conf) as running:
        answer = query(running, "SELECT group_id FROM offsets")
        assert answer.headers["content-type"] == "application/json"
        assert answer.json()["rows"] == [[hostile]]
