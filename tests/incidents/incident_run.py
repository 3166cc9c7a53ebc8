"""One run: broker, clients, job, dashboard, alerts and observers, and a truth file with the observations beside it."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from alert_receivers import webhook_server
from dashboards import Dashboard, configuration_file
from java_clients import java_clients
from killed_jobs import LogJobs, PollJobs
from live_kafka import create_topic
from observers import Observation, Observers, alert_observations, write_observations
from patience import PATIENCE_SECONDS
from planting import Planting
from positions import Bounds
from recorder import Recorder
from scenario import READINGS, Scenario
from statements import seconds
from traffic import Traffic
from truth import Truth

from pipelines.examples.private.kafka.broker import PrivateBroker

#: Names of the files of a run.
TRUTH, OBSERVATIONS, JOB_LOG = "truth.json", "observations.jsonl", "job.log"

_PROGRAM = str(Path(sys.executable).with_name("grouplake"))
#: Name of the cluster, and of the folder of its tables.
CLUSTER = "planted"
#: Newest release of Kafka's client for Java that tests use.
_JAVA_CLIENT = "4.1.1"
#: Samples of a job that has read everything, before the first incident.
_SAMPLES_BEFORE = 3
#: Age of the last recorded position at the end of a run.
_FRESH_SECONDS = 15

#: Agents, and the series of klag, which has some of hot partitions.
_PAGE = {"dashboard": "mcp = true", "metrics": 'families = ["klag"]'}

_RULES = """
[alerts]
receivers = ["ops"]
every = "{every}s"
stale_after = "{stale}s"
group_by = ["alertname", "group"]
group_wait = "0s"
group_interval = "0s"
[receivers.ops]
kind = "webhook"
url = "{url}"
[[rules]]
name = "GroupUnhealthy"
on = "status"
in = ["WARN", "ERR", "STOP", "STALL", "REWIND"]
annotations = {{ status_rule = "{{status_rule}}" }}
[[rules]]
name = "HangingTransaction"
on = "status"
findings = ["hanging_transaction"]
[[rules]]
name = "RecordsLost"
on = "messages_lost"
above = 0
[[rules]]
name = "GroupBehind"
on = "lag_seconds_low"
above = "{behind}s"
per = "partition"
[[rules]]
name = "JobStopped"
on = "batch_age"
above = "{stale}s"
"""


class Arrivals(list[Any]):
    """Bodies of requests; `times` has the arrival of each."""

    def __init__(self) -> None:
        super().__init__()
        self.times: list[float] = []

    def append(self, body: Any) -> None:
        """Keep a body, and the time."""
        self.times.append(time.time())
        super().append(body)


def run_incidents(scenario: Scenario, version: str, folder: Path, *, by_polls: bool = False) -> tuple[Truth, list[Observation]]:
    """Run a scenario on a broker of a release, with a job that reads the log or polls; the files of the run are in `folder`."""
    truth = Truth(unseen=scenario.unseen)
    tables = folder / CLUSTER
    properties = {
        "offsets.retention.minutes": str(scenario.retention_minutes),
        "offsets.retention.check.interval.ms": "10000",
        "transaction.max.timeout.ms": "3600000",
    }
    with ExitStack() as stack:
        broker = stack.enter_context(PrivateBroker(version, offsets_partitions=4, properties=properties))
        for topic, partitions in scenario.topics().items():
            create_topic(broker.bootstrap, topic, partitions)
        java = stack.enter_context(java_clients(_JAVA_CLIENT))
        recorder = stack.enter_context(Recorder(broker.bootstrap, scenario.groups(), scenario.topics()))
        truth.positions = recorder.positions
        traffic = stack.enter_context(Traffic(broker.bootstrap, scenario.streams))
        kind = PollJobs if by_polls else LogJobs
        jobs = kind(broker.bootstrap, tables, _configuration(folder, scenario), scenario, folder / JOB_LOG)
        stack.callback(jobs.kill)
        planting = Planting(broker, java, traffic, scenario, truth, jobs)
        stack.enter_context(planting)
        planting.wait_until_committed()
        jobs.start()
        # readers exist from the first batch on
        jobs.wait_for("batch ")
        webhooks = stack.enter_context(webhook_server())
        arrivals = Arrivals()
        webhooks.bodies = arrivals
        dashboard = Dashboard(f"{CLUSTER}={tables}", conf=configuration_file(folder, _PAGE))
        stack.callback(dashboard.close)
        dashboard.wait_until_ready()
        stack.enter_context(_alerts(tables, folder, webhooks.url, scenario))
        poll = {"ready": 2.0, "overview": 4.0, "groups": 6.0, "group": 15.0, "topic": 10.0, "metrics": 10.0}
        poll |= {"lag": 8.0, "sql": 10.0, "agent": 20.0}
        observers = Observers(dashboard.url, CLUSTER, tables, list(scenario.groups()), READINGS, poll)
        with observers:
            jobs.wait_until_ready()
            jobs.wait_for("sample of end offsets", _SAMPLES_BEFORE)
            planting.run()
        failure = observers.failure() or recorder.failure()
        assert failure is None, failure
        observers.observe_all(truth.started)
        assert min(series.answered[-1] for series in truth.positions.ends.values()) > truth.ended - _FRESH_SECONDS, "no log ends"
        observations = [*observers.observations, *alert_observations(list(zip(arrivals.times, arrivals, strict=True)))]
    (batches,) = [each.body for each in observations if each.reader == "sql batches"]
    (history,) = [each.body for each in observations if each.reader == "sql lag_history"]
    truth.samples = sorted({seconds(row["sampled_at"]) for row in history})
    truth.batches = [Bounds(seconds(row["started_at"]), seconds(row["finished_at"])) for row in batches]
    truth.write(folder / TRUTH)
    write_observations(folder / OBSERVATIONS, observations)
    return truth, observations


def _configuration(folder: Path, scenario: Scenario) -> Path:
    path = folder / "job.toml"
    limits = "".join(f"{name} = {value}\n" for name, value in scenario.status.items())
    path.write_text(
        f"[lag]\ninterval_seconds = {scenario.sample_seconds}\n[status]\n{limits}"
        f'[spark]\nmaster = "local[2]"\ndriver_memory = "1g"\n'
    )
    return path


@contextmanager
def _alerts(tables: Path, folder: Path, url: str, scenario: Scenario) -> Iterator[None]:
    rules = folder / "alerts.toml"
    stale = round(scenario.limits.stale)
    rules.write_text(_RULES.format(every=max(2, scenario.sample_seconds), stale=stale, behind=stale, url=url))
    with (folder / "alerts.log").open("w") as log:
        process = subprocess.Popen(
            [_PROGRAM, "alerts", "--tables", str(tables), "--rules", str(rules)], stderr=log, start_new_session=True
        )
        try:
            yield
        finally:
            process.terminate()
            process.wait(PATIENCE_SECONDS)
