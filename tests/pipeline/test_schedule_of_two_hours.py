"""A schedule of 15 minutes through two hours, with the rules of `deploy`: no gap in lag, no false alert, one once it stops.

The job writes its tables at the times of the schedule. Every minute the dashboard is scraped, for Debian's promtool, and
`grouplake alerts` evaluates its rules and notifies Debian's Alertmanager.
"""

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from alert_receivers import Evaluators, webhook_server
from alertmanager import alertmanager
from debian_packages import promtool
from deployment_tools import DEPLOY
from metrics_text import Labels, series
from patience import PATIENCE_SECONDS
from shop_pages import ShopPages
from status_story import Story
from transaction_logs import TransactionLog
from transaction_tables import MemorySource, memory_reader

from coordinator_core.state.transaction_state import COMPLETE_COMMIT, ONGOING, PREPARE_COMMIT
from pipelines.runtime.timestamps import at_ms, now_ms

pytestmark = [pytest.mark.long, pytest.mark.debian]

MINUTE_MS = 60_000
SCHEDULE_MINUTES, LAST_RUN_MINUTE, END_MINUTE = 15, 120, 150
#: A run begins this long after its time, as pods and workers do, and a scrape follows in the last seconds of each minute.
START_SECONDS = (5, 20, 40, 8, 31, 5, 12, 44, 5)
SCRAPE_SECONDS = 50
RULES = ("grouplake-alerts.yml", "grouplake-recording.yml")


@dataclass
class TwoHours:
    """The scrapes, by minute, and what the pages and the alerts showed meanwhile."""

    start_ms: int
    scrapes: list[dict[tuple[str, Labels], float]] = field(default_factory=list)
    ages: list[str] = field(default_factory=list)
    ready: list[int] = field(default_factory=list)
    alerts: list[list[str]] = field(default_factory=list)

    def scrape(self, pages: ShopPages) -> None:
        """Add a scrape; times are rebased to the first one, since promtool's clock begins at 0."""
        base = (self.start_ms + SCRAPE_SECONDS * 1000) / 1000
        found = series(pages.at("/metrics").content)
        self.scrapes.append(
            {
                (name, labels): round(value - base, 3) if name.endswith("_timestamp_seconds") else value
                for name, values in found.items()
                for labels, value in values.items()
            }
        )
        self.ages.append(pages.json("index")["age"]["state"])
        self.ready.append(pages.at("/ready").status_code)

    def input_series(self) -> Iterator[dict[str, str]]:
        """The scrapes as promtool's input: a series that a scrape lacks becomes stale, as in Prometheus."""
        for name, labels in sorted({key for scrape in self.scrapes for key in scrape}):
            values, before = [], False
            for scrape in self.scrapes:
                value = scrape.get((name, labels))
                values.append(str(value) if value is not None else "stale" if before else "_")
                before = value is not None
            shown = ",".join(f"{label}={json.dumps(value)}" for label, value in (*labels, ("job", "grouplake")))
            yield {"series": f"{name}{{{shown}}}", "values": " ".join(values)}


class ScheduledJob(Story):
    """Runs at an interval of 15 minutes, of a busy group, an idle one, and a writer in transactions of half a minute."""

    def __init__(self, root: str, start_ms: int) -> None:
        self._start_ms = start_ms
        super().__init__(root, interval_seconds=SCHEDULE_MINUTES * 60)
        self._transactions = TransactionLog()
        self.reads(memory_reader(MemorySource([self._transactions]), print))

    def at_minute(self, minute: int, seconds: float = 0) -> None:
        self.log.now_ms = self._start_ms + minute * MINUTE_MS + round(seconds * 1000)

    def traffic(self, minute: int) -> None:
        """A minute of records; the busy group reads them and commits once a minute."""
        self.end(100 * minute + 40).commit(100 * minute + 37)
        self.end(12, 1)
        if minute == 0:
            self.commit(12, 1, group="reports")

    def run(self) -> None:
        """One run of the schedule, in a process of its own, while a transaction is open."""
        at = self.log.now_ms
        topics = {"orders": (0,)}
        self._transactions.state("ledger", ONGOING, topics=topics, start_ms=at - 20_000, at=at - 20_000)
        self.restart()
        self.sample()
        for state in (PREPARE_COMMIT, COMPLETE_COMMIT):
            self._transactions.state("ledger", state, topics=topics, start_ms=at - 20_000, at=at + 10_000)


def simulated(folder: Path, receiver: str) -> TwoHours:
    """Two hours of the schedule, and half an hour after it was stopped; it ends now."""
    found = TwoHours(now_ms() - END_MINUTE * MINUTE_MS - SCRAPE_SECONDS * 1000)
    job = ScheduledJob(str(folder / "east"), found.start_ms)
    rules = folder / "alerts.toml"
    shipped = (DEPLOY / "kubernetes" / "base" / "alerts.toml").read_text()
    rules.write_text(shipped.replace('receivers = ["log"]', 'receivers = ["alertmanager"]') + receiver)
    evaluators = Evaluators(job.root, rules, found.start_ms)
    pages = evaluator = None
    for minute in range(END_MINUTE + 1):
        run, is_late = divmod(minute, SCHEDULE_MINUTES)
        job.at_minute(minute)
        job.traffic(minute)
        if not is_late and minute <= LAST_RUN_MINUTE:
            job.at_minute(minute, START_SECONDS[run])
            job.run()
        job.at_minute(minute, SCRAPE_SECONDS)
        pages = pages or ShopPages(job.root, clock=job.clock)
        pages.site.refresh()
        found.scrape(pages)
        evaluators.now_ms = job.log.now_ms
        evaluator = evaluator or evaluators.started()
        evaluator.evaluate()
        found.alerts.append(sorted(alert.key.rule for alert in evaluator.alerts.values() if alert.state.value == "firing"))
    return found


@pytest.fixture(scope="module")
def two_hours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TwoHours, list[dict[str, Any]]]]:
    """The simulation, and the alerts that Alertmanager has at its end."""
    folder = tmp_path_factory.mktemp("schedule")
    with webhook_server() as hook, alertmanager(folder, hook.url) as running:
        found = simulated(folder, f'\n[receivers.alertmanager]\nkind = "alertmanager"\nurl = "{running.url}"\n')
        yield found, running.alerts()


def firing_by_minute(found: TwoHours, folder: Path) -> subprocess.CompletedProcess[str]:
    """A run of promtool over the rules, which expects one alert at the end and none while the schedule is kept."""
    quiet = range(LAST_RUN_MINUTE + SCHEDULE_MINUTES + 1)
    firing = 'sum by (alertname, cluster_name) (ALERTS{alertstate="firing"})'
    expected: list[dict[str, Any]] = [{"expr": firing, "eval_time": f"{minute}m", "exp_samples": []} for minute in quiet]
    stopped = [{"labels": '{alertname="GrouplakeJobStopped",cluster_name="east"}', "value": 1}]
    expected.append({"expr": firing, "eval_time": f"{END_MINUTE}m", "exp_samples": stopped})
    up = {"series": 'up{job="grouplake",instance="dashboard"}', "values": f"1x{END_MINUTE}"}
    test = {
        "rule_files": [str(DEPLOY / "prometheus" / name) for name in RULES],
        "evaluation_interval": "1m",
        "tests": [{"interval": "1m", "input_series": [up, *found.input_series()], "promql_expr_test": expected}],
    }
    file = folder / "schedule.test.yml"
    # JSON is YAML
    file.write_text(json.dumps(test))
    command = [str(promtool()), "test", "rules", str(file)]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)


def test_lag_has_no_gap_until_the_schedule_is_stopped(two_hours: tuple[TwoHours, Any]) -> None:
    found, _ = two_hours
    kept = LAST_RUN_MINUTE + SCHEDULE_MINUTES
    lags = [{value for (name, _), value in scrape.items() if name == "kafka_consumergroup_lag"} for scrape in found.scrapes]
    assert lags[: kept + 1] == [{0.0, 3.0}] * (kept + 1)
    assert set(found.ages[: kept + 1]) == {"fresh"}
    assert set(found.ready[: kept + 1]) == {200}
    assert (lags[-1], found.ages[-1], found.ready[-1]) == (set(), "old", 503)


def test_the_rules_of_prometheus_report_the_stop_and_nothing_else(two_hours: tuple[TwoHours, Any], tmp_path: Path) -> None:
    found, _ = two_hours
    done = firing_by_minute(found, tmp_path)
    assert done.returncode == 0, (done.stdout + done.stderr)[:3_000]
    # at each run a transaction is open: the rule about it sees its age at the time of the run
    opened = [key for scrape in found.scrapes for key in scrape if key[0].startswith("grouplake_oldest_transaction")]
    assert len(opened) == END_MINUTE + 1


def test_alertmanager_has_one_alert(two_hours: tuple[TwoHours, list[dict[str, Any]]]) -> None:
    found, alerts = two_hours
    assert found.alerts[: LAST_RUN_MINUTE + SCHEDULE_MINUTES + 1] == [[]] * (LAST_RUN_MINUTE + SCHEDULE_MINUTES + 1)
    assert found.alerts[-1] == ["JobStopped"]
    (alert,) = alerts
    assert (alert["labels"]["alertname"], alert["labels"]["severity"]) == ("JobStopped", "critical")
    stopped_at = at_ms(found.start_ms + LAST_RUN_MINUTE * MINUTE_MS)
    started = datetime.fromisoformat(alert["startsAt"].replace("Z", "+00:00")).astimezone(UTC)
    assert 22 <= (started - stopped_at).total_seconds() / 60 <= 26
