"""Job, scheduled runs, alerts and dashboard, run by systemd for a while, beside a broker under load, kills and a full disk.

`SCHEDULE_MINUTES` is the length of the load (`make schedule MINUTES=60`); every disturbance happens at least once.
"""

import os
import random
import shutil
import ssl
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from broker_answers import differences
from eventually import eventually
from following import Committers
from live_kafka import produce
from patience import LIMIT_SECONDS, PATIENCE_SECONDS
from scenario_full import answers
from systemd_machine import ALERTS, COMMAND, DASHBOARD, JOB, RUN, TABLES, TIMER, Machine

from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.examples.private.kafka.clients import Clients
from pipelines.query.engine import Snapshot
from pipelines.tables.store import TableStore

MINUTES = float(os.environ.get("SCHEDULE_MINUTES", "5"))
SEED = int(os.environ.get("SEED", "1"))
pytestmark = [pytest.mark.slow, pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(int(MINUTES * 60) + 3_000)]

TOPIC, GROUPS = "orders", 40
#: Several times what a restart of the job with Spark takes here on a busy machine.
_OUTAGE_SECONDS = 25
_DISK = "512m"
_RULES = """
[alerts]
every = "2s"
receivers = ["log"]
[receivers.log]
kind = "command"
command = ["/bin/cat"]
[[rules]]
name = "OldBatch"
on = "batch_age"
above = "20s"
"""
#: As an operator would shorten the interval, with `systemctl edit`: an empty value removes both values of the unit.
_OFTEN = "[Timer]\nOnActiveSec=\nOnActiveSec=1s\nOnUnitInactiveSec=15s\n"


class Schedule:
    """The machine and the broker, and what may happen to them."""

    def __init__(self, machine: Machine, broker: PrivateBroker, chance: random.Random) -> None:
        self.machine, self.broker, self.chance = machine, broker, chance
        self.is_timer = False
        self.disturbances: Mapping[str, Callable[[], None]] = {
            "job killed": lambda: self.kill(self.running_job()),
            "job restarted": lambda: self.systemctl("restart", self.writer),
            "process of the job killed": self.kill_part_of_job,
            "disk full": self.fill_disk,
            "broker killed": self.kill_broker,
            "broker restarted": self.broker.restart,
            "dashboard killed": lambda: self.kill(DASHBOARD),
            "dashboard restarted": lambda: self.systemctl("restart", DASHBOARD),
            "alerts killed": lambda: self.kill(ALERTS),
            "maintenance beside the job": self.maintain,
            "maintenance killed": self.kill_maintenance,
            "job and timer exchanged": self.exchange,
        }

    @property
    def writer(self) -> str:
        """The unit that starts what writes the tables."""
        return TIMER if self.is_timer else JOB

    def systemctl(self, verb: str, unit: str) -> None:
        """Without waiting: a job is ready only when it has read the log, which a disturbance may prevent for a while."""
        self.machine.systemd.run("systemctl", "--no-block", verb, unit, check=True)

    def kill(self, unit: str) -> None:
        """Kill the main process of a unit, unless it has just ended."""
        pid = self.machine.systemd.property(unit, "MainPID")
        if pid != "0":
            self.machine.systemd.run("kill", "-9", pid)

    def running_job(self) -> str:
        """The unit of the process that writes the tables, once it runs."""
        unit = RUN if self.is_timer else JOB
        systemd = self.machine.systemd
        systemd.until(f"{unit} runs", lambda: systemd.property(unit, "MainPID") != "0")
        return unit

    def kill_part_of_job(self) -> None:
        """Kill a process that the job has started, the JVM or a Python worker, if it has any."""
        unit, systemd = self.running_job(), self.machine.systemd
        group, main = systemd.property(unit, "ControlGroup"), systemd.property(unit, "MainPID")
        listed = systemd.run("cat", f"/sys/fs/cgroup{group}/cgroup.procs").stdout.split()
        others = [pid for pid in listed if pid != main]
        if others:
            systemd.run("kill", "-9", self.chance.choice(others))

    def fill_disk(self) -> None:
        """Leave no byte on the file system of the tables for a while."""
        filler = f"{Path(TABLES).parent}/filler"
        self.machine.systemd.run("dd", "if=/dev/zero", f"of={filler}", "bs=64k")
        time.sleep(_OUTAGE_SECONDS)
        self.machine.systemd.run("rm", filler, check=True)

    def kill_broker(self) -> None:
        """Kill the broker, and start it again after a while."""
        self.broker.kill()
        time.sleep(_OUTAGE_SECONDS)
        self.broker.start()

    def maintain(self) -> None:
        """`grouplake maintain`, done by the job if one runs."""
        as_user = ("setpriv", "--reuid=grouplake", "--regid=grouplake", "--clear-groups")
        self.machine.systemd.run(*as_user, COMMAND, "maintain", "--tables", TABLES)

    def kill_maintenance(self) -> None:
        """Kill the writer while it may be in the middle of maintenance."""
        maintenance = threading.Thread(target=self.maintain)
        maintenance.start()
        time.sleep(self.chance.uniform(1, 5))
        self.kill(self.running_job())
        maintenance.join()

    def exchange(self) -> None:
        """Replace the continuous job by scheduled runs, or the other way round."""
        self.systemctl("stop", self.writer)
        self.is_timer = not self.is_timer
        self.systemctl("start", self.writer)

    def newest_batch(self) -> int:
        """Number of the newest batch, -1 if the tables cannot be read."""
        return int((self.machine.query("SELECT max(batch_id) FROM batches") or ["-1"])[0])

    def copied_tables(self, folder: Path) -> str:
        """A copy of the tables outside of the namespace."""
        shutil.copytree(self.machine.systemd.path(TABLES), folder)
        return str(folder)

    def expect_progress(self) -> float:
        """Wait until a batch is written; return how long that took, in seconds."""
        begun, before = time.monotonic(), self.newest_batch()
        eventually(
            "a batch after the disturbance",
            self.newest_batch,
            lambda found: found > before,
            patience_seconds=LIMIT_SECONDS,
            pause_seconds=1,
        )
        return time.monotonic() - begun


class Viewer:
    """Requests metrics from the dashboard all the time; counts responses by result."""

    def __init__(self, machine: Machine) -> None:
        self._trust = ssl.create_default_context(cafile=machine.access.certificate)
        self._request = urllib.request.Request(f"{machine.dashboard}/metrics", headers=machine.access.bearer())
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._view)
        self.responses: Counter[str] = Counter()

    def __enter__(self) -> "Viewer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _view(self) -> None:
        while not self._ended.wait(1):
            self.responses[self._answer()] += 1

    def _answer(self) -> str:
        try:
            with urllib.request.urlopen(self._request, timeout=PATIENCE_SECONDS, context=self._trust) as response:
                is_up = 'grouplake_tables_up{cluster_name="east"} 1' in response.read().decode()
                return "tables" if is_up else "no tables"
        except OSError as error:
            return f"{getattr(error, 'code', None) or 'no connection'}"


@pytest.fixture
def broker() -> Iterator[PrivateBroker]:
    with PrivateBroker() as running:
        yield running


@pytest.fixture
def machine(tmp_path: Path, broker: PrivateBroker) -> Iterator[Machine]:
    drop_in = {"grouplake-run@.timer.d/often.conf": _OFTEN}
    made = Machine(tmp_path, _RULES, bootstrap=broker.bootstrap, units=drop_in)
    try:
        made.prepare()
        made.systemd.run("mkdir", "-p", str(Path(TABLES).parent), check=True)
        made.systemd.run("mount", "-t", "tmpfs", "-o", f"mode=755,size={_DISK}", "tmpfs", str(Path(TABLES).parent), check=True)
        yield made
    finally:
        made.close()


def disturb(schedule: Schedule) -> int:
    """Cause every disturbance in random order, in whole rounds until the time is over; return their number."""
    count, end = 0, time.monotonic() + MINUTES * 60
    while count == 0 or time.monotonic() < end:
        for name in schedule.chance.sample([*schedule.disturbances], len(schedule.disturbances)):
            schedule.disturbances[name]()
            seconds = schedule.expect_progress()
            print(f"{time.strftime('%H:%M:%S')} {name}: the next batch after {seconds:.1f} s", flush=True)
            count += 1
    return count


def test_nothing_is_lost(machine: Machine, broker: PrivateBroker, tmp_path: Path) -> None:
    systemd, bootstrap = machine.systemd, broker.bootstrap
    with Clients(bootstrap) as clients:
        clients.create_topics([TOPIC], 2)
    produce(bootstrap, TOPIC, [(number % 2, None, b"x") for number in range(1_000)])
    schedule = Schedule(machine, broker, random.Random(SEED))
    with Committers(bootstrap, GROUPS, TOPIC) as committers:
        committers.wait_for_more(GROUPS)
        for unit in (JOB, ALERTS, DASHBOARD):
            machine.start(unit)
        with Viewer(machine) as viewer:
            count = disturb(schedule)
    # the log ends with the members that have left; a run that finds nothing new has read it
    systemd.run("systemctl", "stop", schedule.writer, RUN, check=True)
    machine.start(RUN)
    print(f"seed {SEED}: {count} disturbances, {committers.commits:,} commits, {schedule.newest_batch() + 1} batches", flush=True)
    print(f"responses of the dashboard: {dict(viewer.responses)}", flush=True)

    checked = systemd.run(COMMAND, "check", "--tables", TABLES)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    tables = schedule.copied_tables(tmp_path / "tables")
    with Clients(bootstrap) as clients:
        expected = answers(clients, bootstrap, committers.groups)
    assert differences(tables, expected) == []
    last = TableStore(tables).last_batch()
    assert last is not None
    assert {str(partition): offset for partition, offset in last.next_offsets.items()} == expected["high_watermarks"]
    found = Snapshot.open(tables)
    assert found.query("SELECT count(*) = max(batch_id) + 1 AS has_all FROM batches")["has_all"].to_pylist() == [True]
    assert found.query("SELECT * FROM quarantine").num_rows == 0
    assert {"firing", "resolved"} <= set(found.query("SELECT change FROM alert_history")["change"].to_pylist())
    assert {systemd.property(unit, "ActiveState") for unit in (ALERTS, DASHBOARD)} == {"active"}
    # the dashboard does not answer only while it starts again
    assert set(viewer.responses) <= {"tables", "no connection"}
    assert viewer.responses["tables"] > viewer.responses["no connection"]
