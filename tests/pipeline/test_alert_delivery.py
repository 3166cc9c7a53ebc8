"""Alerts from tables to real receivers: once, again after `repeat_interval`, and the resolve, with a restart at every step."""

import json
import sys
import threading
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import pytest
from alert_receivers import Evaluators, Mails, Webhooks, server_tls, smtp_server, states, webhook_server
from alertmanager import alertmanager
from eventually import eventually
from log_builder import Log
from sampled_topics import START_MS, SampledTopics, TopicSampler
from table_logs import applied

from coordinator_core.state.era import Era
from pipelines.alerts.receivers.message import rfc3339
from pipelines.query.engine import Snapshot
from pipelines.runtime.errors import AnotherWriter
from pipelines.runtime.timestamps import now_ms
from pipelines.tables.store import TableStore

pytestmark = pytest.mark.long

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
    """Tables of a group at offset 5 of `orders`, a job that samples them, and evaluators at the time of the last sample."""

    def __init__(self, folder: Path, receiver: str, rules: str = RULE, start_ms: int = START_MS) -> None:
        log = Log()
        log.commit(4, 5, group="billing", topic="orders")
        applied(log, Era.named("4"), [], str(folder / "tables"))
        self.topics = SampledTopics(orders=5)
        self.topics.now_ms = start_ms
        rules_file = folder / "alerts.toml"
        rules_file.write_text(rules + receiver)
        self.evaluators = Evaluators(str(folder / "tables"), rules_file, start_ms)

    @cached_property
    def _sampler(self) -> TopicSampler:
        return TopicSampler(self.evaluators.root, self.topics)

    def sample(self) -> None:
        """Take a sample at the time of the evaluators."""
        self.topics.now_ms = self.evaluators.now_ms
        self._sampler.sample()

    def passes(self, seconds: int, end: int | str) -> None:
        """Time passes; then a sample is taken, and a new process evaluates the rules."""
        self.evaluators.now_ms += seconds * 1000
        self.topics.ends["orders"] = end
        self.sample()
        self.evaluator = self.evaluators.started()
        self.evaluator.evaluate()

    def all_history(self) -> list[dict[str, object]]:
        found = Snapshot.open(self.evaluators.root).query("SELECT * FROM alert_history ORDER BY at")
        rows: list[dict[str, object]] = found.to_pylist()
        return rows

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


@pytest.mark.long
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
    assert alert["startsAt"] == rfc3339(START_MS + 90_000)
    assert webhooks.headers[0]["Authorization"] == "Bearer hunter2"
    assert watched.evaluator.alerts == {}


@pytest.mark.long
def test_mails_are_sent_once(tmp_path: Path, mails: Mails) -> None:
    receiver = f"""
        [receivers.ops]
        kind = "smtp"
        host = "127.0.0.1"
        port = {mails.port}
        tls = "none"
        from = "grouplake@example.org"
        to = ["ops@example.org", "gone@example.org"]
    """
    mails.refused.add("gone@example.org")
    watched = Watched(tmp_path, receiver)
    assert life_of_an_alert(watched) == _COUNTS
    firing = "[FIRING:1] Behind group=billing severity=warning"
    assert [mail["Subject"] for mail in mails.received] == [firing, firing, "[RESOLVED:1] Behind group=billing severity=warning"]
    text = mails.received[0].get_content()
    assert "summary: billing has 4" in text
    assert "group = billing" in text
    assert watched.history("delivered")[0]["reason"] == "refused for gone@example.org"


@pytest.mark.long
def test_a_command_gets_each_notification_once(tmp_path: Path) -> None:
    program = tmp_path / "receive.py"
    written = tmp_path / "received.jsonl"
    program.write_text("import sys; open(sys.argv[1], 'a').write(sys.stdin.read() + '\\n')")
    command = json.dumps([sys.executable, str(program), str(written)])
    watched = Watched(tmp_path, f'[receivers.ops]\nkind = "command"\ncommand = {command}\n')
    assert life_of_an_alert(watched) == _COUNTS
    bodies = [json.loads(line) for line in written.read_text().splitlines()]
    assert [body["status"] for body in bodies] == ["firing", "firing", "resolved"]


@pytest.mark.long
@pytest.mark.debian
def test_an_alertmanager_shows_the_alert_and_its_resolve(tmp_path: Path, webhooks: Webhooks) -> None:
    """It notifies a webhook of its own: once, and of the resolve. Its document has the shape of ours."""
    with alertmanager(tmp_path, webhooks.url) as running:
        receiver = f'[receivers.ops]\nkind = "alertmanager"\nurl = "{running.url}"\nrepeat_interval = "1m"\n'
        # Alertmanager compares the end of an alert with its own clock
        watched = Watched(tmp_path, receiver, RULE.replace('repeat_interval = "1h"', ""), now_ms() - 200_000)
        for seconds in (0, 30, 60):
            watched.passes(seconds, 9)
        (shown,) = running.alerts()
        assert shown["labels"] == {"alertname": "Behind", "group": "billing", "severity": "warning"}
        assert shown["annotations"]["summary"] == "billing has 4"
        assert shown["annotations"]["description"].startswith(
            "No commits on orders-4 since 14 Nov 2023, 22:13 UTC; 4 records wait."
        )
        (stored,) = watched.evaluator.alerts.values()
        assert shown["fingerprint"] == stored.fingerprint
        eventually("Alertmanager has notified", lambda: len(webhooks.bodies) == 1)

        watched.passes(30, 9)
        assert running.alerts()[0]["updatedAt"] == shown["updatedAt"]
        watched.passes(30, 9)
        assert len(watched.history("delivered")) == 2
        (again,) = running.alerts()
        assert again["updatedAt"] > shown["updatedAt"]
        assert again["startsAt"] == shown["startsAt"]

        watched.passes(30, 5)
        eventually("Alertmanager has notified of the resolve", lambda: len(webhooks.bodies) == 2)
        assert running.alerts() == []
    theirs = webhooks.bodies[0]
    assert [body["status"] for body in webhooks.bodies] == ["firing", "resolved"]
    (alert,) = watched.history("firing")
    assert theirs["alerts"][0]["fingerprint"] == alert["fingerprint"]
    (tmp_path / "other").mkdir()
    ours = Watched(tmp_path / "other", f'[receivers.ops]\nkind = "webhook"\nurl = "{webhooks.url}"\n')
    for seconds in (0, 30, 60):
        ours.passes(seconds, 9)
    assert shape(webhooks.bodies[2]) == shape(theirs)
    assert webhooks.bodies[2]["groupKey"] == theirs["groupKey"]


def shape(value: object) -> object:
    """Keys and types of a document."""
    if isinstance(value, dict):
        return {key: shape(each) for key, each in value.items()}
    return [shape(each) for each in value] if isinstance(value, list) else type(value)


def webhook(name: str, url: str, extra: str = "", timeout: str = "30s") -> str:
    return f'[receivers.{name}]\nkind = "webhook"\nurl = "{url}"\ntimeout = "{timeout}"\n{extra}\n'


def test_an_unknown_lag_does_not_page_and_does_not_resolve(tmp_path: Path, webhooks: Webhooks) -> None:
    watched = Watched(tmp_path, webhook("ops", webhooks.url), RULE.replace('"1h"', '"1w"'))
    for seconds in (0, 60, 600):
        watched.passes(seconds, "topic_authorization_failed")
        assert watched.evaluator.alerts == {}
    for seconds in (30, 60):
        watched.passes(seconds, 9)
    assert len(webhooks.bodies) == 1
    for seconds in (30, 3_600, 80_000):
        watched.passes(seconds, "topic_authorization_failed")
        assert states(watched.evaluator) == [("Behind", "firing")]
    assert len(webhooks.bodies) == 1
    # after a day without a value
    watched.passes(3_000, "topic_authorization_failed")
    (resolved,) = webhooks.bodies[1]["alerts"]
    assert resolved["status"] == "resolved"
    assert resolved["annotations"]["resolved_reason"] == "unknown"
    assert watched.history("resolved")[0]["reason"] == "unknown"


def test_a_dead_job_alerts_although_nothing_else_is_known(tmp_path: Path, webhooks: Webhooks) -> None:
    rules = RULE + '[[rules]]\nname = "JobStopped"\non = "batch_age"\nabove = "5m"\n'
    watched = Watched(tmp_path, webhook("ops", webhooks.url), rules)
    watched.passes(0, 9)
    watched.passes(60, 9)
    assert webhooks.alerts() == [[("firing", "billing has 4")]]
    # no batch follows
    for seconds in (200, 200, 2_000):
        watched.evaluators.after(seconds).evaluate()
    assert webhooks.alerts()[1:] == [[("firing", "the last batch of the tables is 6m40s old")]]
    assert webhooks.bodies[1]["commonLabels"] == {"alertname": "JobStopped"}
    watched.passes(60, 9)
    assert webhooks.alerts()[2][0][0] == "resolved"


def test_the_age_of_the_last_batch_grows_while_the_tables_cannot_be_read(tmp_path: Path, webhooks: Webhooks) -> None:
    rules = RULE + '[[rules]]\nname = "JobStopped"\non = "batch_age"\nabove = "5m"\n'
    watched = Watched(tmp_path, webhook("ops", webhooks.url), rules)
    watched.passes(0, 9)
    batches = tmp_path / "tables" / "batches"
    batches.rename(tmp_path / "unmounted")
    evaluator = watched.evaluator
    watched.evaluators.now_ms += 301_000
    evaluation = evaluator.evaluate()
    assert list(evaluation.failed_rules) == ["all rules"]
    assert [alert["labels"] for alert in webhooks.bodies[0]["alerts"]] == [{"alertname": "JobStopped"}]
    evaluator.evaluate()
    assert len([line for line in watched.evaluators.lines if line.startswith("not evaluated: all rules: no table")]) == 1


def test_an_unreachable_receiver_delays_no_other_one(tmp_path: Path, webhooks: Webhooks) -> None:
    rules = RULE.replace('receivers = ["ops"]', 'receivers = ["gone", "ops", "stalled"]')
    with webhook_server() as stalled:
        stalled.released = threading.Event()
        receivers = webhook("ops", webhooks.url) + webhook("gone", "http://127.0.0.1:1/")
        receivers += webhook("stalled", stalled.url, timeout="300ms")
        watched = Watched(tmp_path, receivers, rules)
        watched.passes(0, 9)
        watched.passes(60, 9)
        assert len(webhooks.bodies) == 1
        failed = watched.history("failed")
        assert sorted(str(row["receiver"]) for row in failed) == ["gone", "stalled"]
        assert {row["receiver"]: row["reason"] for row in failed}["gone"] == "[Errno 111] Connection refused"
        # the receiver may have got it, so it will get the resolve
        stalled.released.set()
        eventually("the stalled request ended", lambda: len(stalled.bodies) == 1)
        watched.passes(60, 5)
        eventually("the resolve has arrived", lambda: stalled.bodies[-1]["status"] == "resolved")


@pytest.mark.long
def test_retries_double_their_pause_and_survive_restarts(tmp_path: Path, webhooks: Webhooks) -> None:
    webhooks.status = 503
    watched = Watched(tmp_path, webhook("ops", webhooks.url))
    watched.passes(0, 9)
    watched.passes(60, 9)
    begun = watched.evaluators.now_ms
    attempts: dict[int, int] = {}
    # at each attempt, and a second before and after it
    for second in (1, 4, 5, 6, 14, 15, 16, 34, 35, 36, 74, 75, 76):
        watched.evaluators.now_ms = begun + second * 1000
        before = len(webhooks.bodies)
        watched.evaluators.started().evaluate()
        attempts[second] = len(webhooks.bodies) - before
    assert [second for second, made in attempts.items() if made] == [5, 15, 35, 75]
    webhooks.status = 200
    for _ in range(3):
        watched.evaluators.after(80).evaluate()
    assert [row["attempt"] for row in watched.history("failed")] == [1, 2, 3, 4, 5]
    assert [row["attempt"] for row in watched.history("delivered")] == [6]
    assert len(webhooks.bodies) == 6


def test_no_secret_is_logged(tmp_path: Path, webhooks: Webhooks, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server repeats path and token in its answer, and redirects to another server."""
    monkeypatch.setenv("TOKEN", "Bearer hunter2")
    extra = 'headers = { Authorization = "env:TOKEN" }'
    watched = Watched(tmp_path, webhook("ops", webhooks.url, extra))
    watched.passes(0, 9)
    for webhooks.status in (302, 400, 500):
        watched.passes(100, 9)
    assert len(webhooks.bodies) == 3
    logged = "\n".join(watched.evaluators.lines) + str(watched.history("failed"))
    assert "HTTP 302" in logged
    assert "HTTP 500 Internal Server Error: path ***, token ***" in logged
    for secret in ("hunter2", "SECRETPATH"):
        assert secret not in logged
        assert secret not in repr(watched.evaluator._rules)


class Killed(Exception):
    pass


#: The rule with a query that has the lag itself, so that no samples need to be written.
_QUERY = RULE.replace('on = "lag"', 'on = "sql"\nsql = "SELECT group_id AS \\"group\\", LAG AS value FROM offsets"')


@pytest.mark.parametrize("step", ["alerts:history", "alerts:stored", "alerts:sent"])
@pytest.mark.parametrize("at", [2, 5])
def test_a_kill_loses_no_page_and_no_resolve(
    step: str, at: int, tmp_path: Path, webhooks: Webhooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Evaluation 2 pages, evaluation 5 resolves. A notification that was sent and not stored as sent is repeated, once."""
    watched = Watched(tmp_path, webhook("ops", webhooks.url), _QUERY)
    rules = watched.evaluators.rules.read_text()

    def die(reached: str) -> None:
        if reached == step:
            raise Killed

    for number, (seconds, lag) in enumerate(((0, 4), (30, 4), (30, 4), (30, 4), (30, 4), (60, 0), (60, 0), (60, 0))):
        watched.evaluators.rules.write_text(rules.replace("LAG", str(lag)))
        watched.evaluator = watched.evaluators.after(seconds)
        with monkeypatch.context() as patch:
            if number == at:
                for module in ("pipelines.alerts.alert_store", "pipelines.alerts.evaluator"):
                    patch.setattr(f"{module}.failpoint", die)
                with pytest.raises(Killed):
                    watched.evaluator.evaluate()
            else:
                watched.evaluator.evaluate()
    pages = [body["status"] for body in webhooks.bodies]
    repeated = step == "alerts:sent"
    assert pages == (["firing"] * (1 + (repeated and at == 2)) + ["resolved"] * (1 + (repeated and at == 5)))
    assert watched.evaluator.alerts == {}
    for change in ("pending", "firing", "resolved"):
        assert len(watched.history(change)) == 1


def test_one_evaluator_at_a_time(tmp_path: Path, webhooks: Webhooks) -> None:
    """Without a lock, as on object stores, the second one to store its alerts ends before it sends anything."""
    watched = Watched(tmp_path, webhook("ops", webhooks.url))
    watched.passes(0, 9)
    watched.evaluators.now_ms += 60_000
    first, second = watched.evaluators.started(), watched.evaluators.started()
    first.evaluate()
    with pytest.raises(AnotherWriter, match="another process evaluates alerts into"):
        second.evaluate()
    assert len(webhooks.bodies) == 1


def test_owners_route_alerts_of_their_groups(tmp_path: Path, webhooks: Webhooks) -> None:
    owners = """
        [[owners]]
        groups = "bill.*"
        team = "payments"
        receivers = ["pager"]
        [[owners]]
        groups = ".*"
        team = "others"
    """
    with webhook_server() as pager:
        watched = Watched(tmp_path, webhook("ops", webhooks.url) + webhook("pager", pager.url), RULE + owners)
        watched.passes(0, 9)
        watched.passes(60, 9)
        assert webhooks.bodies == []
        assert pager.bodies[0]["commonLabels"]["team"] == "payments"


def test_a_rule_that_is_removed_resolves_its_alerts(tmp_path: Path, webhooks: Webhooks) -> None:
    watched = Watched(tmp_path, webhook("ops", webhooks.url))
    watched.passes(0, 9)
    watched.passes(60, 9)
    file = watched.evaluators.rules
    file.write_text(file.read_text().replace("Behind", "FarBehind").replace("above = 3", "above = 30"))
    watched.passes(60, 9)
    assert webhooks.bodies[1]["status"] == "resolved"
    assert webhooks.bodies[1]["alerts"][0]["annotations"]["resolved_reason"] == "rule_removed"
    assert watched.evaluator.alerts == {}


def test_stored_alerts_are_compacted_and_old_history_is_deleted(
    tmp_path: Path, webhooks: Webhooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipelines.alerts.alert_store._TIDY_EVERY", 3)
    rules = RULE.replace("[alerts]", "[alerts]\nhistory_days = 1")
    watched = Watched(tmp_path, webhook("ops", webhooks.url), rules)
    for seconds in (0, 30, 30):
        watched.passes(seconds, 9)
    assert sorted(str(row["change"]) for row in watched.all_history()) == ["delivered", "firing", "pending"]
    # one process: a day later its history is old
    evaluator = watched.evaluator
    for _ in range(3):
        watched.evaluators.now_ms += 86_400_000
        watched.sample()
        evaluator.evaluate()
    assert {row["change"] for row in watched.all_history()} == {"delivered"}
    assert len(TableStore(watched.evaluators.root).table("alert_history").file_uris()) < 3
    # the state is as before, also for the next process
    watched.passes(60, 5)
    watched.passes(60, 5)
    assert webhooks.bodies[-1]["status"] == "resolved"
    assert watched.evaluator.alerts == {}


def test_labels_of_alerts_can_be_queried(tmp_path: Path, webhooks: Webhooks) -> None:
    watched = Watched(tmp_path, webhook("ops", webhooks.url))
    watched.passes(0, 9)
    watched.passes(60, 9)
    sql = "SELECT labels['severity'] AS severity, value, deliveries[1]['receiver'] AS receiver FROM alerts"
    (row,) = Snapshot.open(watched.evaluators.root).query(sql).to_pylist()
    assert row == {"severity": "warning", "value": 4.0, "receiver": "ops"}


def test_certificates_of_receivers_are_verified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A webhook over TLS, and a mail server with STARTTLS and a login."""
    monkeypatch.setenv("PASSWORD", "hunter2")
    certificate, context = server_tls(tmp_path)
    names = '["hook", "mail", "stranger", "other_mail"]'
    rules = RULE.replace('["ops"]', names).replace('for = "1m"', "")
    with webhook_server(context) as webhooks, smtp_server(context) as mails:
        mail = (
            f'kind = "smtp"\nhost = "127.0.0.1"\nport = {mails.port}\nfrom = "a@b"\nto = ["c@d"]\n'
            'username = "grouplake"\npassword = "env:PASSWORD"\n'
        )
        trust = f'cafile = "{certificate}"\n'
        receivers = (
            f'[receivers.hook]\nkind = "webhook"\nurl = "{webhooks.url}"\n{trust}'
            f'[receivers.stranger]\nkind = "webhook"\nurl = "{webhooks.url}"\n'
            f"[receivers.mail]\n{mail}{trust}[receivers.other_mail]\n{mail}"
        )
        watched = Watched(tmp_path, receivers, rules)
        watched.passes(0, 9)
        assert (len(webhooks.bodies), len(mails.received)) == (1, 1)
        assert mails.logins == [("grouplake", "hunter2")]
        failed = watched.history("failed")
        assert sorted(str(row["receiver"]) for row in failed) == ["other_mail", "stranger"]
        assert all("certificate verify failed" in str(row["reason"]) for row in failed)
        assert "hunter2" not in "".join(watched.evaluators.lines)
