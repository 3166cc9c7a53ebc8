"""A real systemd runs the units of `deploy/systemd`: readiness, credentials, filters, restarts, schedules."""

import os
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest
from eventually import equal_to, eventually
from kafka import KafkaConsumer, OffsetAndMetadata, TopicPartition
from patience import LIMIT_SECONDS, PATIENCE_SECONDS
from systemd_machine import ALERTS, COMMAND, COORDINATOR, DASHBOARD, JOB, RUN, TABLES, TIMER, Machine

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

#: Several times what the start of Spark takes here on a busy machine.
_RULES = """
[alerts]
every = "1s"
receivers = ["log"]
[receivers.log]
kind = "command"
command = ["/bin/cat"]
[[rules]]
name = "NoBatch"
on = "batch_age"
above = "1h"
"""


def commit(machine: Machine, offset: int) -> None:
    """Commit an offset at the coordinator, as a client."""
    consumer = KafkaConsumer(bootstrap_servers=machine.coordinator, group_id="billing", enable_auto_commit=False)
    consumer.commit({TopicPartition("orders", 0): OffsetAndMetadata(offset, "", -1)})
    consumer.close()


def wait_for_offset(machine: Machine, offset: int) -> None:
    """Wait until the tables have the offset."""
    query = "SELECT committed_offset FROM offsets"
    eventually(f"offset {offset}", lambda: machine.query(query), equal_to([str(offset)]), patience_seconds=LIMIT_SECONDS)


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    machine = Machine(tmp_path_factory.mktemp("machine"), _RULES)
    try:
        machine.prepare()
        machine.start(COORDINATOR)
        commit(machine, 1)
        yield machine
    finally:
        machine.close()


@pytest.fixture(scope="module")
def job(machine: Machine) -> Machine:
    machine.start(JOB)
    return machine


def status(machine: Machine, unit: str) -> dict[str, str]:
    """`/proc/PID/status` of the main process of a unit."""
    pid = machine.systemd.property(unit, "MainPID")
    text = machine.systemd.run("cat", f"/proc/{pid}/status", check=True).stdout
    return {name: value.strip() for name, _, value in (line.partition(":") for line in text.splitlines())}


def test_a_started_job_has_read_the_log(job: Machine) -> None:
    """Without READY=1 the start would wait without end: the unit has no time limit."""
    assert job.systemd.property(JOB, "ActiveState") == "active"
    assert "batch 0: " in job.systemd.output(JOB)
    assert job.systemd.property(JOB, "StatusText").startswith(("ready: following segments:", "batch ", "sample "))
    commit(job, 2)
    wait_for_offset(job, 2)


@pytest.mark.parametrize("unit", [COORDINATOR, JOB])
def test_services_run_without_privileges_and_under_filters(unit: str, job: Machine) -> None:
    found = status(job, unit)
    user = job.systemd.run("id", "-u", "grouplake", check=True).stdout.strip()
    assert set(found["Uid"].split()) == {user}
    assert (found["NoNewPrivs"], found["Seccomp"]) == ("1", "2")
    assert {found[name] for name in ("CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}


def test_a_job_that_is_killed_starts_again(job: Machine) -> None:
    before = job.kill(JOB)
    job.systemd.until("the restart", lambda: job.systemd.property(JOB, "NRestarts") == "1")
    commit(job, 3)
    wait_for_offset(job, 3)
    job.systemd.until("the job is ready", lambda: job.systemd.property(JOB, "ActiveState") == "active")
    assert job.systemd.property(JOB, "MainPID") != before
    assert job.systemd.run(COMMAND, "check", "--tables", TABLES).returncode == 0


def test_alerts_are_evaluated_beside_the_job(job: Machine) -> None:
    job.start(ALERTS)
    assert "ready: 1 rules" in job.systemd.output(ALERTS)
    job.systemd.until("its tables", lambda: job.systemd.run("test", "-d", f"{TABLES}/alerts").returncode == 0)


def test_the_dashboard_reads_only_and_needs_a_token(job: Machine) -> None:
    job.start(DASHBOARD)
    trust = ssl.create_default_context(cafile=job.access.certificate)
    request = urllib.request.Request(f"{job.dashboard}/metrics", headers=job.access.bearer())
    with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS, context=trust) as response:
        assert 'grouplake_tables_up{cluster_name="east"} 1' in response.read().decode()
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(f"{job.dashboard}/metrics", timeout=PATIENCE_SECONDS, context=trust)
    assert status(job, DASHBOARD)["Uid"].split()[0] not in {"0", job.systemd.run("id", "-u", "grouplake").stdout.strip()}


def test_a_stop_ends_the_job_after_its_batch(job: Machine) -> None:
    job.systemd.run("systemctl", "stop", JOB, check=True)
    assert job.systemd.property(JOB, "Result") == "success"
    assert job.systemd.property(JOB, "ExecMainStatus") == "0"
    assert "\nstopping\n" in job.systemd.output(JOB)


def test_the_timer_starts_a_run_after_the_end_of_the_last_one(job: Machine) -> None:
    """After the tests of the job, whose tables the runs continue."""
    commit(job, 4)
    job.start(TIMER)
    wait_for_offset(job, 4)
    job.systemd.until("the end of the run", lambda: job.systemd.property(RUN, "ActiveState") == "inactive")
    assert job.systemd.property(RUN, "Result") == "success"
    job.systemd.until(
        "the next run is planned", lambda: job.systemd.property(TIMER, "NextElapseUSecMonotonic") not in {"", "infinity"}
    )
    assert job.systemd.run(COMMAND, "check", "--tables", TABLES).returncode == 0


def test_a_job_ends_the_timer(job: Machine) -> None:
    """Both write the same tables."""
    job.systemd.run("systemctl", "start", "--no-block", JOB, check=True)
    job.systemd.until("the timer ends", lambda: job.systemd.property(TIMER, "ActiveState") == "inactive")
    job.systemd.run("systemctl", "stop", JOB, check=True)


def test_a_start_without_its_credentials_fails(machine: Machine) -> None:
    machine.systemd.run("mv", "/etc/grouplake/secrets/dashboard/tls.key", "/run", check=True)
    machine.systemd.run("systemctl", "stop", DASHBOARD, check=True)
    try:
        assert machine.systemd.run("systemctl", "start", DASHBOARD).returncode != 0
        assert "cannot read credential" in machine.systemd.output(DASHBOARD)
        assert machine.systemd.property(DASHBOARD, "NRestarts") == "0"
    finally:
        machine.systemd.run("mv", "/run/tls.key", "/etc/grouplake/secrets/dashboard", check=True)


def test_the_machine_itself_is_not_changed(machine: Machine) -> None:
    """The namespace has a root of its own, so that systemd cannot reach files of the machine."""
    found = machine.systemd.run("findmnt", "-rno", "TARGET,FSTYPE,OPTIONS", check=True).stdout.splitlines()
    machine_owned = [line.split() for line in found if line.split()[1] not in {"tmpfs", "proc", "devpts", "ramfs", "devtmpfs"}]
    assert [line for line in machine_owned if not line[2].startswith("ro") and line[0] != "/sys/fs/cgroup"] == []
    assert not os.path.exists("/var/lib/grouplake-coordinator")
