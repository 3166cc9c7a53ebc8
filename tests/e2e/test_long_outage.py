"""A job that follows a cluster outlasts an outage that is longer than `retry_seconds`, with two lines about it."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from broker_answers import differences
from eventually import equal_to, eventually
from first_use import without_recording
from following import Committers, Job
from scenario_full import answers

from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.examples.private.kafka.clients import Clients
from pipelines.query.check import check
from pipelines.query.engine import Snapshot

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.long]

RETRY_SECONDS = 3
AWAY_SECONDS = 20
#: Lines of a job that are not about batches: retention of offsets, start of Spark, ready.
BEFORE_THE_LOAD = ("offset retention: ", "starting Spark", "ready: following ")


@pytest.fixture
def broker() -> Iterator[PrivateBroker]:
    """A broker of this test alone."""
    with PrivateBroker(offsets_partitions=4) as running:
        yield running


def about_brokers(lines: list[str]) -> list[str]:
    """The lines that are not about batches."""
    return [line for line in without_recording(lines) if not line.startswith("batch ")]


def expect_a_stop_in_an_outage(job: Job, broker: PrivateBroker) -> None:
    """Kill the broker; SIGTERM ends the job while it is away."""
    try:
        broker.kill()
        job.wait_for("waiting for the brokers: ")
        job.signal(signal.SIGTERM)
        assert job.ended() == 0, job.text
    finally:
        # consumers do not close without their coordinator
        broker.start()


def test_two_lines_and_no_end(broker: PrivateBroker, tmp_path: Path) -> None:
    conf = tmp_path / "impatient.toml"
    conf.write_text(f"[kafka]\nretry_seconds = {RETRY_SECONDS}\n[lag]\ninterval_seconds = 5\n")
    source = f"kafka://{broker.bootstrap}/__consumer_offsets"
    with Clients(broker.bootstrap) as clients:
        clients.create_topics(["orders"], 2)
    with Committers(broker.bootstrap, 4, "orders") as committers:
        committers.wait_for_more(1)
        with Job(source, tmp_path / "tables", "--conf", str(conf), "--transactions") as job:
            job.wait_until_logged("ready: following ")
            job.wait_for("records read", 3)
            before = len(job.lines)
            broker.kill()
            time.sleep(AWAY_SECONDS)
            assert job.running, job.text
            broker.start()
            job.wait_for("records read", 2)
            first, last = about_brokers(job.lines[before:])
            assert first.startswith("waiting for the brokers: ")
            assert last.startswith("the brokers answer again, after ")
            expect_a_stop_in_an_outage(job, broker)
    assert job.tracebacks == []
    assert check(str(tmp_path / "tables")) == []


@pytest.mark.slow
def test_two_lines_of_spark_kafka(broker: PrivateBroker, tmp_path: Path) -> None:
    """Spark's Kafka source waits without a line, and a request of its cannot be interrupted."""
    with Clients(broker.bootstrap) as clients:
        clients.create_topics(["orders"], 2)
    with Committers(broker.bootstrap, 4, "orders") as committers:
        committers.wait_for_more(1)
        with Job(f"spark-kafka://{broker.bootstrap}/__consumer_offsets", tmp_path / "tables") as job:
            job.wait_until_logged("ready: following ")
            job.wait_for("records read", 3)
            before = len(job.lines)
            broker.kill()
            # no offsets for the next batch; or no records, when the broker has gone in the middle of one
            job.wait_for("waiting for the brokers: ")
            broker.start()
            job.wait_for("the brokers answer again, after ")
            job.wait_for("records read", 2)
            assert len(about_brokers(job.lines[before:])) == 2
            expect_a_stop_in_an_outage(job, broker)
    assert job.tracebacks == []
    assert check(str(tmp_path / "tables")) == []


@pytest.mark.slow
def test_an_outage_in_the_middle_of_a_first_load(broker: PrivateBroker, tmp_path: Path) -> None:
    conf = tmp_path / "impatient.toml"
    conf.write_text(
        f"[kafka]\nretry_seconds = {RETRY_SECONDS}\n[lag]\ninterval_seconds = 5\n[job]\nmax_records_per_batch = 400\n"
    )
    source = f"kafka://{broker.bootstrap}/__consumer_offsets"
    with Clients(broker.bootstrap) as clients:
        clients.create_topics(["orders"], 2)
    with Committers(broker.bootstrap, 40, "orders") as committers:
        committers.wait_for_more(4_000)
    with Job(source, tmp_path / "tables", "--conf", str(conf)) as job:
        job.wait_for("records read", 2)
        broker.kill()
        time.sleep(AWAY_SECONDS)
        assert job.running, job.text
        assert records_behind(tmp_path / "tables") > 0, "the load is over"
        broker.start()
        job.wait_until_logged("the brokers answer again, after ")
        eventually("all is read", lambda: records_behind(tmp_path / "tables"), equal_to(0), unless=job.failure)
        assert len(about_brokers(job.lines)) == len(BEFORE_THE_LOAD) + 2, job.text
        job.signal(signal.SIGTERM)
        assert job.ended() == 0, job.text
    assert job.tracebacks == []
    assert check(str(tmp_path / "tables")) == []
    with Clients(broker.bootstrap) as clients:
        assert differences(str(tmp_path / "tables"), answers(clients, broker.bootstrap, committers.groups)) == []


def records_behind(tables: Path) -> int:
    """Records that the newest batch has left in the log."""
    rows = Snapshot.open(str(tables)).query("SELECT records_behind FROM batches ORDER BY batch_id DESC LIMIT 1").to_pylist()
    return int(rows[0]["records_behind"] or 0)
