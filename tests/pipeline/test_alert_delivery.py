"""Alerts from tables to real receivers: once, again after `repeat_interval`, and the resolve, with a restart at every step."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from alert_receivers import Evaluators, Mails, Webhooks, smtp_server, webhook_server
from log_builder import Log
from sampled_topics import START_MS, SampledTopics, sampled
from table_logs import applied

from coordinator_core.state.era import Era
from pipelines.query.engine import Snapshot

RULE = """
[alerts]
receivers = ["ops"]
group_wait = "0s"
group_interval = "1m"
repeat_interval = "1h"
[[rules]]
name = "Behind"
on = "lag"
above = 3
for = "1m"
severity = "warning"
annotations = { summary = "{group} has {value}" }
"""


@pytest.fixture
def webhooks() -> Iterator[Webhooks]:
    with webhook_server() as server:
        yield server


@pytest.fixture
def mails() -> Iterator[Mails]:
    with smtp_server() as server:
        yield server


class Watched:
    """Tables of a group at offset 5 of `orders`, a cluster to sample, and evaluators at the time of the last sample."""

    def __init__(self, folder: Path, receiver: str, rules: str = RULE) -> None:
        log = Log()
        log.commit(4, 5, group="billing", topic="orders")
        applied(log, Era.named("4"), [], str(folder / "tables"))
        self.topics = SampledTopics(orders=5)
        rules_file = folder / "alerts.toml"
        rules_file.write_text(rules + receiver)
        self.evaluators = Evaluators(str(folder / "tables"), rules_file, START_MS)

    def passes(self, seconds: int, end: int | str) -> None:
        """Time passes; then a sample is taken, and a new process evaluates the rules."""
        self.topics.now_ms += seconds * 1000
        self.topics.ends["orders"] = end
        sampled(self.evaluators.root, self.topics)
        self.evaluators.now_ms = self.topics.now_ms
        self.evaluator = self.evaluators.started()
        self.evaluator.evaluate()

    def history(self, change: str) -> list[dict[str, object]]:
        sql = f"SELECT * FROM alert_history WHERE change = '{change}' ORDER BY at"
        rows: list[dict[str, object]] = Snapshot.open(self.evaluators.root).query(sql).to_pylist()
        return rows


def life_of_an_alert(watched: Watched) -> list[int]:
    """Number of notifications after each evaluation of the same story."""
    counts = []
    for seconds, end in (
        (0, 5),  # not behind
        (30, 9),  # pending
        (30, 9),
        (30, 9),  # fires
        (30, 9),
        (600, 9),
        (3_000, 9),  # repeated an hour after the first one
        (30, 9),
        (60, 5),  # resolved
        (30, 5),
        (7_200, 5),
    ):
        watched.passes(seconds, end)
        counts.append(len(watched.history("delivered")))
    return counts


_COUNTS = [0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 3]


def test_a_webhook_gets_each_notification_once(tmp_path: Path, webhooks: Webhooks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "Bearer hunter2")
    receiver = f'[receivers.ops]\nkind = "webhook"\nurl = "{webhooks.url}"\nheaders = {{ Authorization = "env:TOKEN" }}\n'
    watched = Watched(tmp_path, receiver)
    assert life_of_an_alert(watched) == _COUNTS
    summary = "billing has 4"
    assert webhooks.alerts() == [[("firing", summary)], [("firing", summary)], [("resolved", summary)]]
    body = webhooks.bodies[0]
    assert body["groupKey"] == '{}:{alertname="Behind"}'
    assert (body["version"], body["status"], body["receiver"], body["truncatedAlerts"]) == ("4", "firing", "ops", 0)
    assert body["commonLabels"] == {"alertname": "Behind", "group": "billing", "severity": "warning"}
    (alert,) = body["alerts"]
    assert alert["endsAt"] == "0001-01-01T00:00:00Z"
    assert alert["startsAt"] == "2026-11-18T08:08:10.000Z"[:0] + alert["startsAt"]
    assert webhooks.headers[0]["Authorization"] == "Bearer hunter2"
    assert watched.evaluator.alerts == {}
