"""`grouplake alerts`: the evaluation as a service or once, a test of the rules, a test of a receiver."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pyarrow as pa

from coordinator_core.health.durations import duration_text
from coordinator_core.service.net.addresses import ListenAddress
from pipelines.alerts.alert_store import AlertStore
from pipelines.alerts.delivery import Deliverer
from pipelines.alerts.evaluation_log import EvaluationLog
from pipelines.alerts.evaluator import AlertEvaluator, receivers_of
from pipelines.alerts.observations import observe
from pipelines.alerts.receivers.receiver import Context
from pipelines.alerts.rules_file import AlertRule, AlertRules
from pipelines.alerts.states import (
    ALERT_NAME,
    Alert,
    AlertKey,
    Delivery,
    Notification,
    Observation,
    State,
    labels_of,
    owner_of,
)
from pipelines.alerts.tables import RuleTables
from pipelines.query.engine import Snapshot
from pipelines.runtime.errors import GrouplakeError, TablesError, UsageError
from pipelines.runtime.probe_server import ProbeServer, health
from pipelines.runtime.progress import Progress
from pipelines.runtime.stop_request import StopRequest
from pipelines.runtime.watchdog import Watchdog, end_process
from pipelines.tables.store import TableStore
from pipelines.tables.writer_lock import writer_lock

LOCK = "_alerts.lock"

#: Pause between looks for tables that do not exist yet.
_LOOK_SECONDS = 1

#: Time without an evaluation after which the process ends: the longer of both. Receivers have time-outs of their own.
_HUNG_SECONDS = 600
_HUNG_INTERVALS = 10

_REPORT = pa.schema(
    {"rule": pa.string(), "labels": pa.string(), "value": pa.string(), "condition": pa.string(), "action": pa.string()}
)
_CONDITIONS = {True: "true", False: "false", None: "unknown"}


@contextmanager
def alert_evaluator(
    root: str, state_root: str, rules: AlertRules, clock_ms: Callable[[], int], progress: Progress
) -> Iterator[AlertEvaluator]:
    """The only evaluator of alerts that are stored under `state_root`.

    Raises:
        UsageError: there are no tables under `root`, or `state_root` cannot be written.
        AnotherWriter: another process evaluates alerts.
    """
    TableStore(root).table("batches")
    with writer_lock(state_root, "grouplake alerts", LOCK, "alerts"):
        yield AlertEvaluator(root, rules, AlertStore(state_root), clock_ms, EvaluationLog(progress))


@contextmanager
def alerts_health(listen: ListenAddress | None, every_ms: int, progress: Progress) -> Iterator[Watchdog]:
    """Serve `/health` meanwhile, if there is an address, and end this process if no evaluation ends any more.

    Raises:
        TablesError: the address cannot be used.
    """
    limit = max(_HUNG_SECONDS, _HUNG_INTERVALS * every_ms // 1000)

    def end(_last: str) -> None:
        progress(f"no evaluation for {limit:,} s: the process hangs and ends")
        end_process()

    with ExitStack() as opened:
        if listen is not None:
            try:
                server = ProbeServer(listen, {"/health": health(lambda: None)})
            except OSError as error:
                raise TablesError(f"alerts cannot listen on {listen}: {error.strerror or error}") from error
            server.start()
            opened.callback(server.close)
            progress(f"health: http://{server.address}/health")
        yield opened.enter_context(Watchdog(limit, end))


def wait_for_tables(root: str, stop: StopRequest, progress: Progress, alive: Callable[[], None]) -> bool:
    """Wait until the first run of the job has made the tables; False after a stop request."""
    store = TableStore(root)
    if not store.exists():
        progress(f"waiting for the tables under {root}, which the first run makes")
        while not store.exists():
            alive()
            if stop.wait(_LOOK_SECONDS):
                return False
    return True


def evaluate_until_stopped(
    evaluator: AlertEvaluator, every_ms: int, stop: StopRequest, alive: Callable[[], None] = lambda: None
) -> None:
    """Evaluate at an interval until a stop is requested; `alive` is called after each evaluation.

    Raises:
        AnotherWriter: another process has stored alerts.
    """
    while not stop.is_requested:
        evaluator.evaluate()
        alive()
        stop.wait(every_ms / 1000)


def check_rules(root: str, rules: AlertRules, now_ms: int) -> tuple[pa.Table, bool]:
    """Return what each rule would do now, and whether all rules could be evaluated.

    Raises:
        UsageError: there are no tables.
    """
    tables = RuleTables(Snapshot.open(root), now_ms, rules.stale_after_ms)
    rows = []
    is_complete = True
    for rule in rules.rules:
        name = rule.rule.name
        try:
            found = observe(rule, tables, None)
        except GrouplakeError as error:
            rows.append({"rule": name, "condition": "unknown", "action": f"not evaluated: {error}"})
            is_complete = False
            continue
        if found is None:
            rows.append({"rule": name, "condition": "unknown", "action": "none: the tables have no recent values"})
            continue
        shown = [_report_row(rule, rules, each) for each in found.values() if each.holds is not False]
        rows += shown or [{"rule": name, "condition": "false", "action": "none"}]
    return pa.Table.from_pylist(rows, _REPORT), is_complete


def _report_row(rule: AlertRule, rules: AlertRules, observation: Observation) -> dict[str, str]:
    named = dict(observation.labels)
    receivers = receivers_of(rule, owner_of(named.get("group"), rules.owners), rules)
    action = "none: the value is unknown"
    if observation.holds:
        wait = f"after {duration_text(rule.rule.for_ms / 1000)} " if rule.rule.for_ms else ""
        action = f"fires {wait}to {', '.join(receivers)}"
    return {
        "rule": rule.rule.name,
        "labels": " ".join(f"{name}={value}" for name, value in observation.labels),
        "value": observation.details.get("value", ""),
        "condition": _CONDITIONS[observation.holds],
        "action": action,
    }


def send_test(rules: AlertRules, receiver: str, now_ms: int) -> None:
    """Send a notification of an invented alert.

    Raises:
        UsageError: no such receiver.
        TablesError: the receiver did not accept it.
    """
    if receiver not in rules.receivers:
        raise UsageError(f"no receiver {receiver!r} in the file: it has {', '.join(rules.receivers) or 'none'}")
    key = AlertKey("GrouplakeTest", ())
    labels = labels_of({ALERT_NAME: key.rule, "severity": "none"})
    annotations = (("summary", "a test of this receiver by grouplake alerts --test"),)
    alert = Alert(key, State.FIRING, labels, annotations, (Delivery(receiver),), now_ms, 1.0, now_ms)
    grouping = rules.receivers[receiver].grouping
    notification = Notification(receiver, grouping.labels_of(alert), (alert,), (), 1)
    (result,) = Deliverer(rules.receivers).deliver([notification], Context(rules.external_url, now_ms))
    if result.error is not None:
        raise TablesError(f"receiver {receiver}: {result.error}")
