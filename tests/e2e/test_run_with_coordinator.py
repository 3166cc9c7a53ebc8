"""`grouplake run --with-coordinator`: TCP commits appear in the tables, one signal ends both parts, and both resume later."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from broker_queries import BrokerQueries
from confluent_kafka import Producer
from eventually import equal_to, eventually, eventually_awaited
from first_use import without_recording
from generations import GENERATIONS
from log_builder import Log
from patience import LIMIT_SECONDS, PATIENCE_SECONDS
from processes import family
from table_logs import applied
from wire_connection import Wire

from coordinator_core.client import Crowd, CrowdSettings
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.state.era import Era
from pipelines.cli import main
from pipelines.query.check import check
from pipelines.query.engine import Snapshot
from pipelines.runtime.errors import UsageError

pytestmark = pytest.mark.long

GROUPLAKE = (sys.executable, "-c", "import sys; from pipelines.cli import main; sys.exit(main())")
CROWD = CrowdSettings(groups=2, members=6, topics=("orders",), partitions=4, duration_ms=2_000, ramp_ms=200, absence_ms=300)
Captured = pytest.CaptureFixture[str]


class Driver:
    """The command as a process in a process group of its own, after it has reported that it is ready."""

    def __init__(self, folder: Path, conf: Path) -> None:
        self.tables = folder / "tables"
        self.command = [*GROUPLAKE, "run", "--source", f"segments:{folder / 'log'}", "--tables", str(self.tables)]
        self.command += ["--with-coordinator", "127.0.0.1:0", "--conf", str(conf)]
        self.process = subprocess.Popen(
            self.command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        assert self.process.stdout is not None
        ready = re.match(r"listening on 127.0.0.1:(\d+)$", self.process.stdout.readline())
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        assert ready, self.lines
        self.port = int(ready[1])

    def _read(self) -> None:
        assert self.process.stderr is not None
        self.lines += (line.rstrip() for line in iter(self.process.stderr.readline, ""))

    @property
    def events(self) -> list[str]:
        """The events of the coordinator and of the job, in the order of their lines."""
        return [json.loads(line)["event"] if line.startswith("{") else line for line in tuple(self.lines)]

    def wait_for_rows(self, query: str, wanted: object) -> None:
        """Wait until the tables answer this."""
        eventually(
            "the tables have the rows",
            lambda: self._rows(query),
            equal_to(wanted),
            unless=self.failure,
            patience_seconds=LIMIT_SECONDS,
            pause_seconds=0.1,
        )

    def failure(self) -> str | None:
        """The reason why nothing more will happen, once the process has ended."""
        return None if self.process.poll() is None else "\n".join(["the command has ended", *self.lines])

    def _rows(self, query: str) -> object:
        try:
            return {tuple(row.values()) for row in Snapshot.open(str(self.tables)).query(query).to_pylist()}
        except UsageError:
            return None

    def kill(self) -> None:
        """Kill the remaining processes."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._reader.join()
        for pipe in (self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()


@pytest.fixture(scope="module")
def conf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("conf") / "coordinator.toml"
    path.write_text(
        '[coordinator]\nadmin_listen = ""\ngroup_initial_rebalance_delay_ms = 50\noffsets_topic_num_partitions = 3\n'
        "[coordinator.topics]\norders = 4\n"
    )
    return path


async def churn(port: int) -> Crowd:
    crowd = Crowd([("127.0.0.1", port)], CROWD)
    await crowd.run()

    async def committed() -> bool:
        # on a busy machine the groups may have rebalanced until the end of the script
        if not crowd.acknowledged:
            await crowd.settle(1_000)
            await crowd.commit()
        return bool(crowd.acknowledged)

    await eventually_awaited("a commit is acknowledged", committed)
    await crowd.leave()
    await crowd.close()
    return crowd


def answered_offsets(port: int, crowd: Crowd) -> set[tuple[str, str, int, int]]:
    """The coordinator's committed offsets: at least the acknowledged ones, at most those sent before a member crashed."""
    assert crowd.acknowledged
    with BrokerQueries(f"127.0.0.1:{port}", GENERATIONS["4.3.0"]) as queries:
        offsets = queries.offsets(sorted({group for group, _ in crowd.acknowledged}))
    found = {
        (group, TopicPartition(*at)): offset for group, of_group in offsets.items() for at, (offset, _, _) in of_group.items()
    }
    assert all(found[key] >= offset for key, offset in crowd.acknowledged.items())
    assert all(offset <= crowd.sent[key] for key, offset in found.items())
    return {(group, *at, offset) for (group, at), offset in found.items()}


def commit(port: int, offset: int) -> ErrorCode:
    wire = Wire(port)
    try:
        return eventually(
            "the partition is loaded",
            lambda: ErrorCode(wire.commit(offset, "alone")),
            lambda error: error is not ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        )
    finally:
        wire.close()


@pytest.mark.long
@pytest.mark.spark
def test_transactions_are_followed(tmp_path: Path, conf: Path) -> None:
    """Transactions of a producer without offsets reach the tables, whatever the query of the offsets does."""
    with_transactions = tmp_path / "conf.toml"
    with_transactions.write_text(f'[job]\ntransactions = "source"\n[lag]\ninterval_seconds = 0\n{conf.read_text()}')
    driver = Driver(tmp_path, with_transactions)
    try:
        settings = {"bootstrap.servers": f"127.0.0.1:{driver.port}", "log_level": 0, "transactional.id": "writer"}
        producer = Producer(settings)
        producer.init_transactions(LIMIT_SECONDS)
        driver.wait_for_rows("SELECT transactional_id, state FROM transactions", {("writer", "Empty")})
        assert commit(driver.port, 7) is ErrorCode.NONE
        driver.wait_for_rows("SELECT group_id, committed_offset FROM committed_offsets", {("alone", 7)})
        Producer({**settings, "transactional.id": "other"}).init_transactions(LIMIT_SECONDS)
        driver.wait_for_rows("SELECT transactional_id, state FROM transactions", {("writer", "Empty"), ("other", "Empty")})
        driver.process.send_signal(signal.SIGTERM)
        assert driver.process.wait(LIMIT_SECONDS) == 0
        assert not [line for line in driver.lines if "Traceback" in line or "Exception" in line]
    finally:
        driver.kill()
    assert check(str(driver.tables)) == []


@pytest.mark.long
@pytest.mark.spark
def test_one_signal_ends_both_and_both_go_on_later(tmp_path: Path, conf: Path) -> None:
    first = Driver(tmp_path, conf)
    try:
        # long before Spark can have started
        assert commit(first.port, 7) is ErrorCode.NONE
        assert not first.tables.joinpath("_checkpoint").exists()
        crowd = asyncio.run(churn(first.port))
        answered = answered_offsets(first.port, crowd)
        committed = "SELECT group_id, topic, partition, committed_offset FROM committed_offsets"
        first.wait_for_rows(committed, {*answered, ("alone", "orders", 0, 7)})
        first.wait_for_rows(
            "SELECT group_id, state FROM groups", {(f"crowd-{n}", "Empty") for n in (0, 1)} | {("alone", "Empty")}
        )

        second = subprocess.run(first.command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
        assert (second.returncode, second.stdout) == (1, "")
        assert re.fullmatch(r"grouplake: .*log.*\n", second.stderr)

        first.process.send_signal(signal.SIGTERM)
        assert first.process.wait(LIMIT_SECONDS) == 0
        assert without_recording(first.events)[-3:] == ["stopping", "stopping", "stopped"]
        assert not [line for line in first.lines if "Traceback" in line or "Exception" in line]
    finally:
        first.kill()
    assert check(str(first.tables)) == []

    again = Driver(tmp_path, conf)
    try:
        assert commit(again.port, 8) is ErrorCode.NONE
        again.wait_for_rows(committed, {*answered, ("alone", "orders", 0, 8)})
        # Ctrl-C reaches every process of the group
        os.killpg(again.process.pid, signal.SIGINT)
        assert again.process.wait(LIMIT_SECONDS) == 0
        assert not [line for line in again.lines if "Traceback" in line or "Exception" in line]
    finally:
        again.kill()
    assert check(str(first.tables)) == []


@pytest.mark.spark
def test_a_signal_to_the_whole_group_while_spark_starts(tmp_path: Path, conf: Path) -> None:
    driver = Driver(tmp_path, conf)
    try:
        assert commit(driver.port, 7) is ErrorCode.NONE
        eventually(
            "Spark starts", lambda: "starting Spark" in driver.lines, unless=driver.failure, patience_seconds=LIMIT_SECONDS
        )
        eventually("the JVM starts", lambda: len(family(driver.process.pid)) > 1, unless=driver.failure)
        os.killpg(driver.process.pid, signal.SIGTERM)
        assert driver.process.wait(LIMIT_SECONDS) == 0, driver.lines
    finally:
        driver.kill()
    assert driver.events[-2:] == ["stopping", "stopped"]
    assert not [line for line in driver.lines if "Traceback" in line or "Exception" in line]


def test_a_job_that_cannot_begin_ends_the_coordinator(tmp_path: Path, conf: Path, capfd: Captured) -> None:
    log, tables = str(tmp_path / "log"), str(tmp_path / "tables")
    older = Log(partition=0)
    older.commit(0, 5, group="g")
    applied(older, Era.named("3"), [], tables)
    command = ["run", "--source", f"segments:{log}", "--tables", tables, "--with-coordinator", "127.0.0.1:0"]
    assert main([*command, "--conf", str(conf)]) == 2
    out, err = capfd.readouterr()
    assert out.startswith("listening on 127.0.0.1:")
    *events, line = err.splitlines()
    assert [json.loads(event)["event"] for event in events] == ["log opened", "log opened", "stopping", "stopped"]
    assert line.startswith("grouplake: ")
    assert "were made with era 3, not 4" in line
