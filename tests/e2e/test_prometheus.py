"""A real Prometheus scrapes `grouplake dashboard` and answers what boards and rules ask; promtool checks the files."""

import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from dashboards import Dashboard, configuration_file, dashboard
from debian_packages import promtool
from eventually import equal_to, eventually
from grafana_boards import FOLDER, boards, expressions, variables
from lag_tables import group_row, lag_row, write_tables
from metrics_text import values
from prometheus_server import PrometheusServer
from public_boards import (
    BOARD_A,
    BOARD_B,
    BOARD_S,
    NOT_OURS,
    TARGET_LABELS,
    VARIABLES_B,
    VARIABLES_S,
    with_values,
)

pytestmark = [pytest.mark.long, pytest.mark.debian]

RULES = FOLDER.parent / "prometheus"
#: Names that compatibility forces on us.
ALLOWED = {
    'kafka_consumergroup_current_offset_sum non-histogram and non-summary metrics should not have "_sum" suffix',
    'kafka_consumergroup_lag_sum non-histogram and non-summary metrics should not have "_sum" suffix',
    "kafka_consumergroup_poll_time_ms metric names should not contain abbreviated units",
}
HOSTILE = 'a"b\\c\nd{}é'


@dataclass(frozen=True)
class Scraped:
    dashboard: Dashboard
    prometheus: PrometheusServer
    instance: str


def write_batch(folder: str, number: int) -> None:
    """Tables in which every value that boards ask for is known; offsets move with `number`."""
    owner = {"consumer_id": f"m{number % 2}", "member_host": "/10.0.0.1", "client_id": "w1"}
    behind = {
        "lag_seconds": 75.0,
        "lag_seconds_low": 60.0,
        "stuck_seconds": 5.0,
        "retention_margin_seconds": 900.0,
        "messages_lost": 3,
    }
    at = datetime.now(UTC) - timedelta(seconds=1)
    replicas = {"leader": 1, "replicas": [2, 1], "in_sync_replicas": [1]}
    open_one = {"transactional_id": "t", "state": "Ongoing", "producer_id": 1, "producer_epoch": 0, "start_timestamp": at}
    write_tables(
        folder,
        at,
        transaction_offsets={0: number + 1},
        transactions=[{**open_one, "timeout_ms": 60_000, "partitions": [], "client_transaction_version": 2}],
        groups=[group_row("billing", 1 + number % 2), group_row(HOSTILE)],
        lag=[
            lag_row("billing", "orders", 0, 10 * number, 5000 + 20 * number, sampled_at=at, **behind, **owner),
            lag_row("billing", "quiet", 0, 7, 8, sampled_at=at, **behind),
            lag_row(HOSTILE, "orders", 0, 3, None, sampled_at=at, lag_method="none", lag_reason="leader_not_available"),
        ],
        brokers=[{"node_id": 1, "host": "one", "port": 9092, "is_controller": True}],
        topic_partitions=[{"topic": topic, "partition": 0, **replicas} for topic in ("orders", "quiet")],
        group_status=[
            {
                "group_id": "billing",
                "status": "STOP",
                "rule": "burrow_2",
                "detail": "commits have stopped",
                "findings": [],
                "burrow_status": "ERR",
                "partitions": 2,
                "unknown_partitions": 0,
                "complete": 1.0,
                "evaluated_at": at,
            }
        ],
    )


@pytest.fixture(scope="module")
def scraped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scraped]:
    """Prometheus after several scrapes of several batches."""
    folder = tmp_path_factory.mktemp("scraped")
    tables = str(folder / "east")
    write_batch(tables, 0)
    conf = configuration_file(folder, {"dashboard": "poll_ms = 100"})
    with ExitStack() as opened:
        server = opened.enter_context(dashboard(tables, conf=conf))
        target = server.url.removeprefix("http://")
        rules = (RULES / "grouplake-alerts.yml", RULES / "grouplake-recording.yml")
        running = opened.enter_context(PrometheusServer(folder, target, TARGET_LABELS, rules))
        for number in range(1, 4):
            write_batch(tables, number)
            eventually(
                f"batch {number} is scraped",
                lambda: running.value("grouplake_batch_id"),
                equal_to(number),
                unless=server.failure,
            )
        yield Scraped(server, running, target)


@pytest.mark.parametrize("expression", [*BOARD_A, *BOARD_B, *BOARD_S])
def test_expressions_of_public_boards(expression: str, scraped: Scraped) -> None:
    assert scraped.prometheus.query(with_values(expression, {"INSTANCE": scraped.instance})), expression


@pytest.mark.parametrize("expression", NOT_OURS)
def test_expressions_about_other_processes_are_empty(expression: str, scraped: Scraped) -> None:
    assert scraped.prometheus.query(expression) == []


def test_variables_of_public_boards(scraped: Scraped) -> None:
    names = {"INSTANCE": scraped.instance}
    found = [scraped.prometheus.label_values(with_values(selector, names), label) for selector, label in VARIABLES_B.items()]
    assert found == [{"grouplake"}, {scraped.instance}, {"orders", "quiet"}]
    found = [scraped.prometheus.label_values(selector, label) for selector, label in VARIABLES_S]
    assert found == [{"billing", HOSTILE}, {"orders", "quiet"}, {"kafka"}, {"my-cluster"}]


def test_values_arrive_as_they_are(scraped: Scraped) -> None:
    (lag,) = scraped.prometheus.query('kafka_consumergroup_lag{topic="orders"}')
    assert (lag["metric"]["consumergroup"], lag["value"][1]) == ("billing", "5030")
    (unknown,) = scraped.prometheus.query("grouplake_group_unknown_partitions")
    assert (unknown["metric"]["group"], unknown["value"][1]) == (HOSTILE, "1")
    assert scraped.prometheus.value("scrape_samples_scraped") == sum(
        not line.startswith(b"#") for line in scraped.dashboard.get("/metrics").content.splitlines()
    )


@pytest.mark.parametrize(
    ("title", "expression"), [(title, expr) for board in boards().values() for title, expr in expressions(board)]
)
def test_expressions_of_our_boards(title: str, expression: str, scraped: Scraped) -> None:
    found = scraped.prometheus.query(with_values(expression, {"$cluster": "east", "$group": "billing"}))
    if "grouplake_log_behind_offsets" in expression or "grouplake_maintain_timestamp_seconds" in expression:
        # of a job with --metrics; after `grouplake maintain`
        assert found == []
    else:
        assert found, title


@pytest.mark.parametrize("name", boards())
def test_our_boards(name: str, scraped: Scraped) -> None:
    board = boards()[name]
    assert board["schemaVersion"] >= 39
    assert board["uid"] == f"grouplake-{name.removesuffix('.json')}"
    assert "id" not in board
    assert not [panel for panel in board["panels"] if "id" in panel]
    for panel in board["panels"]:
        for part in (panel, *panel["targets"]):
            assert part["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    for _, selector, label in variables(board):
        assert scraped.prometheus.label_values(with_values(selector, {"$cluster": "east"}), label)
    places = [panel["gridPos"] for panel in board["panels"]]
    cells = [(x, y) for at in places for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24


def test_rules_in_a_real_prometheus(scraped: Scraped) -> None:
    assert eventually("the recording rules", lambda: scraped.prometheus.value("cluster:kafka_consumergroup_group_sum_lag:sum"))
    alerts = eventually(
        "alerts",
        lambda: {(each["labels"]["alertname"], each["state"]) for each in scraped.prometheus.alerts()},
        lambda found: len(found) >= 4,
    )
    assert alerts == {
        ("GrouplakeMessagesLost", "firing"),
        ("GrouplakeRetentionNear", "pending"),
        ("GrouplakeGroupStatus", "pending"),
        ("GrouplakeLagUnknown", "pending"),
    }


def checked(*arguments: str, text: bytes = b"", folder: Path = RULES) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run([str(promtool()), *arguments], input=text, capture_output=True, cwd=folder, check=False)


def test_promtool_accepts_the_metrics_but_three_names(scraped: Scraped) -> None:
    found = checked("check", "metrics", text=scraped.dashboard.get("/metrics").content)
    assert set(found.stderr.decode().splitlines()) == ALLOWED


def test_promtool_accepts_rules_and_configuration() -> None:
    for name in ("grouplake-alerts.yml", "grouplake-recording.yml"):
        found = checked("check", "rules", name)
        assert found.returncode == 0, found.stderr
    found = checked("check", "config", "scrape.yml")
    assert found.returncode == 0, found.stderr
    found = checked("test", "rules", "grouplake-alerts.test.yml")
    assert found.returncode == 0, found.stderr + found.stdout


def test_rules_name_metrics_that_exist(scraped: Scraped) -> None:
    text = (RULES / "grouplake-alerts.yml").read_text()
    names = set(re.findall(r"\b(?:grouplake|kafka)_[a-z_]+\b", " ".join(re.findall(r"expr: (.*)", text))))
    body: Any = scraped.dashboard.get("/metrics").content
    # a unit test compares the names of the coordinator in the runbook with the code
    of_coordinator = {name for name in names if name.startswith("grouplake_coordinator_")}
    runbook = (RULES.parents[1] / "docs" / "runbook.md").read_text()
    assert of_coordinator
    assert [name for name in sorted(of_coordinator) if f"`{name}`" not in runbook] == []
    assert [name for name in sorted(names - of_coordinator) if not values(body, name)] == []
