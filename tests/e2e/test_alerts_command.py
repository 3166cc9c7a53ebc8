"""`grouplake alerts` as a process: exit codes, a dead job, a stop by signal, one evaluator at a time."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from alert_receivers import Webhooks, smtp_server, webhook_server
from eventually import eventually
from log_builder import Log
from patience import PATIENCE_SECONDS
from table_logs import applied

from coordinator_core.state.era import Era
from pipelines.alerts.rules_file import EXAMPLE
from pipelines.alerts.run import LOCK
from pipelines.cli import main
from pipelines.query.engine import Snapshot

PROGRAM = str(Path(sys.executable).with_name("grouplake"))
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def webhooks() -> Iterator[Webhooks]:
    with webhook_server() as server:
        yield server


@pytest.fixture
def tables(tmp_path: Path) -> str:
    log = Log()
    log.commit(0, 5, group="billing")
    root = str(tmp_path / "tables")
    applied(log, Era.named("4"), [], root)
    return root


@pytest.fixture
def rules(tmp_path: Path, webhooks: Webhooks) -> Path:
    """A rule about the job, and one about a group."""
    path = tmp_path / "alerts.toml"
    path.write_text(
        f"""
        [alerts]
        receivers = ["ops"]
        every = "100ms"
        group_wait = "0s"
        group_interval = "0s"
        [[rules]]
        name = "JobStopped"
        on = "batch_age"
        above = "1s"
        [[rules]]
        name = "Commits"
        on = "sql"
        sql = "SELECT group_id AS \\"group\\", committed_offset AS value FROM offsets"
        above = 5
        [receivers.ops]
        kind = "webhook"
        url = "{webhooks.url}"
        timeout = "30s"
        """
    )
    return path


@contextmanager
def running(*arguments: str | Path) -> "Iterator[subprocess.Popen[str]]":
    with subprocess.Popen([PROGRAM, "alerts", *map(str, arguments)], stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def read_lines(process: "subprocess.Popen[str]", *kinds: str) -> list[str]:
    """Read a line of each kind, the text before the colon or the first space."""
    assert process.stderr is not None
    lines = [process.stderr.readline() for _ in kinds]
    assert [line.partition(" ")[0].rstrip(":") for line in lines] == list(kinds), lines
    return lines


def stopped(process: "subprocess.Popen[str]") -> list[str]:
    """The remaining lines of a process that ends after SIGTERM without an error."""
    assert process.stderr is not None
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_SECONDS) == 0
    return process.stderr.readlines()


def test_a_dead_job_alerts_from_outside_and_a_restart_does_not_page_again(tables: str, rules: Path, webhooks: Webhooks) -> None:
    """The tables got their last batch long ago, and no job runs."""
    lock = Path(tables) / LOCK
    for lines in (["ready", "pending", "firing", "delivered"], ["ready"]):
        with running("--tables", tables, "--rules", rules) as process:
            read_lines(process, *lines)
            eventually("the lock", lambda: lock.exists() and f"pid {process.pid} " in lock.read_text())
            refused = subprocess.run(
                [PROGRAM, "alerts", "--tables", tables, "--rules", rules, "--once"], capture_output=True, text=True, check=False
            )
            assert stopped(process) == []
        assert refused.returncode == 1
        assert "the alerts under" in refused.stderr
        assert "are being written by `grouplake alerts` (pid" in refused.stderr
    (body,) = webhooks.bodies
    assert body["commonLabels"] == {"alertname": "JobStopped"}


def test_a_start_before_the_first_run_waits_for_the_tables(tmp_path: Path, rules: Path, webhooks: Webhooks) -> None:
    """As at the first start of a machine, where a service manager starts job and alerts together."""
    root = tmp_path / "tables"
    with running("--tables", root, "--rules", rules) as process:
        lines = read_lines(process, "ready", "waiting")
        assert lines == ["ready: 2 rules every 0.1 s\n", f"waiting for the tables under {root}, which the first run makes\n"]
        log = Log()
        log.commit(0, 6, group="billing")
        applied(log, Era.named("4"), [], str(root))
        eventually("a notification", lambda: len(webhooks.bodies), unless=lambda: None if process.poll() is None else "ended")
        stopped(process)


def test_once_ends_with_1_if_a_receiver_does_not_accept(tables: str, rules: Path, webhooks: Webhooks, capsys: Captured) -> None:
    finished_at = Snapshot.open(tables).batch.finished_at
    eventually("the batch is a second old", lambda: datetime.now(UTC) - finished_at > timedelta(seconds=1))
    webhooks.status = 500
    arguments = ["alerts", "--tables", tables, "--rules", str(rules), "--once"]
    assert main(arguments) == 1
    assert "not delivered: 1 firing, 0 resolved to receiver ops (attempt 1): HTTP 500" in capsys.readouterr().err
    assert main(["sql", "--tables", tables, "SELECT rule, state FROM alerts", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"rule": "JobStopped", "state": "firing"}
    # the next attempt is due in five seconds
    assert main(arguments) == 0


def test_check_prints_what_the_rules_would_do(tables: str, rules: Path, webhooks: Webhooks, capsys: Captured) -> None:
    text = rules.read_text().replace('above = "1s"', 'above = "1h"').replace("above = 5", "above = 4\n for = '5m'")
    rules.write_text(text + '\n[[rules]]\nname = "Behind"\non = "lag"\nabove = 1\n')
    assert main(["alerts", "--tables", tables, "--rules", str(rules), "--check", "--format", "json"]) == 0
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert printed == [
        {"rule": "JobStopped", "labels": None, "value": None, "condition": "false", "action": "none"},
        {"rule": "Commits", "labels": "group=billing", "value": "5", "condition": "true", "action": "fires after 5m to ops"},
        {
            "rule": "Behind",
            "labels": None,
            "value": None,
            "condition": "unknown",
            "action": "none: the tables have no recent values",
        },
    ]
    assert webhooks.bodies == []
    assert not (Path(tables) / "alerts").exists()
    rules.write_text(text.replace("FROM offsets", "FROM offset"))
    assert main(["alerts", "--tables", tables, "--rules", str(rules), "--check"]) == 1
    assert "not evaluated: no table or view 'offset': did you mean" in capsys.readouterr().out
    assert main(["alerts", "--rules", str(rules), "--check"]) == 0
    assert capsys.readouterr().out == f"{rules}: 2 rules, 1 receivers, no mistakes\n"


def test_a_test_notification(tmp_path: Path, rules: Path, webhooks: Webhooks, capsys: Captured) -> None:
    assert main(["alerts", "--rules", str(rules), "--test", "ops"]) == 0
    assert webhooks.bodies[0]["commonLabels"] == {"alertname": "GrouplakeTest", "severity": "none"}
    assert capsys.readouterr().out == "receiver ops accepted a test notification\n"
    webhooks.status = 401
    assert main(["alerts", "--rules", str(rules), "--test", "ops"]) == 1
    assert capsys.readouterr().err == "grouplake: receiver ops: HTTP 401 Unauthorized: path ***, token None\n"
    with smtp_server() as mails:
        path = tmp_path / "mail.toml"
        path.write_text(
            rules.read_text()
            + f'[receivers.mail]\nkind = "smtp"\nhost = "127.0.0.1"\nport = {mails.port}\ntls = "none"\n'
            + 'from = "a@example.org"\nto = ["b@example.org"]\n'
        )
        assert main(["alerts", "--rules", str(path), "--test", "mail"]) == 0
        assert mails.received[0]["Subject"] == "[FIRING:1] GrouplakeTest severity=none"
        # a server without TLS, although the file asks for it
        path.write_text(path.read_text().replace('tls = "none"', 'tls = "starttls"'))
        assert main(["alerts", "--rules", str(path), "--test", "mail"]) == 1
        assert "STARTTLS" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name the file of rules with --rules"),
        (["--rules", "{rules}"], "name the folder of the tables with --tables"),
        (["--rules", "{rules}", "--tables", "{tmp}", "--once"], "no table batches under"),
        (["--rules", "{rules}", "--test", "nobody"], "no receiver 'nobody' in the file: it has ops"),
        (["--rules", "{rules}", "--tables", "{tmp}", "--every", "soon"], "--every is 'soon'"),
        (["--rules", "nowhere.toml", "--check"], "cannot read rules nowhere.toml"),
    ],
)
def test_bad_usage(arguments: list[str], message: str, rules: Path, tmp_path: Path, capsys: Captured) -> None:
    given = [argument.format(rules=rules, tmp=tmp_path) for argument in arguments]
    assert main(["alerts", *given]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "alerts").exists()


def test_the_example_is_printed(capsys: Captured) -> None:
    assert main(["alerts", "--example"]) == 0
    assert capsys.readouterr().out == EXAMPLE.read_text(encoding="utf-8")


def test_alerts_before_the_first_evaluation(tables: str, capsys: Captured) -> None:
    assert main(["sql", "--tables", tables, "SELECT * FROM alerts"]) == 2
    assert f"no table alerts under {tables}: `grouplake alerts` creates it" in capsys.readouterr().err
