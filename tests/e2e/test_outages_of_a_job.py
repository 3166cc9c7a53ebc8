"""A job that follows a cluster while brokers fail, leaders move, records get lost and topics are recreated."""

import contextlib
import os
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import genuine
import pytest
from broker_answers import differences
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from eventually import equal_to, eventually
from first_use import without_recording
from following import Committers, Job
from jobs import run_job
from live_kafka import QUIET, create_topic, delete_topic, produce
from lost_records import cut_log
from offsets_leaders import OFFSETS, move_leaders, wait_for_replicas
from patience import LIMIT_SECONDS, PATIENCE_SECONDS
from private_cluster import PrivateCluster
from processes import family
from scenario_full import answers

from coordinator_core.sources.kafka import KafkaSource
from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.examples.private.kafka.clients import Clients
from pipelines.query.check import check
from pipelines.query.engine import Snapshot
from pipelines.runtime.errors import GrouplakeError, UsageError
from pipelines.tables.store import TableStore

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.slow]

PARTITIONS = 4
AWAY_SECONDS = 30

_CLEANS_OFTEN = {"log.cleaner.backoff.ms": "200", "log.cleaner.min.cleanable.ratio": "0.01"}


@pytest.fixture
def broker() -> Iterator[PrivateBroker]:
    """A broker of this test alone."""
    with PrivateBroker(offsets_partitions=PARTITIONS) as running:
        yield running


def source(bootstrap: str, topic: str = OFFSETS) -> str:
    return f"kafka://{bootstrap}/{topic}"


def roll_segments_often(bootstrap: str) -> None:
    """Roll segments often: the cleaner never compacts active segments."""
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in (("segment.ms", "1000"), ("min.cleanable.dirty.ratio", "0.01"))
    ]
    resource = ConfigResource(ResourceType.TOPIC, OFFSETS, incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    admin.incremental_alter_configs([resource])[resource].result(PATIENCE_SECONDS)


def catch_up(job: Job, tables: Path, bootstrap: str) -> None:
    """Wait until the tables have reached the end of the log."""
    with KafkaSource(source(bootstrap)) as log:
        ends = log.end_offsets()

    def reached() -> Mapping[int, int]:
        last = TableStore(str(tables)).last_batch()
        return last.next_offsets if last else {}

    eventually(
        f"the tables have reached {ends}",
        reached,
        equal_to(ends),
        unless=job.failure,
        patience_seconds=LIMIT_SECONDS,
        pause_seconds=0.5,
    )


def test_two_brokers_do_everything_that_brokers_do(tmp_path: Path) -> None:
    tables = tmp_path / "tables"
    with PrivateCluster(2, offsets_partitions=PARTITIONS, properties=_CLEANS_OFTEN) as cluster:
        bootstrap = cluster.bootstrap
        with Clients(bootstrap) as clients:
            clients.create_topics(["orders"], 2)
        with contextlib.ExitStack() as job_lasts:
            with Committers(bootstrap, 12, "orders") as committers:
                committers.wait_for_more(1)
                job = job_lasts.enter_context(Job(source(bootstrap), tables))

                def go_on() -> None:
                    committers.wait_for_more(100)
                    job.wait_for("records read", 2)

                go_on()
                roll_segments_often(bootstrap)
                for replicas in ([2, 1], [1, 2]):
                    move_leaders(bootstrap, replicas)
                    go_on()
                for broker in cluster.brokers:
                    broker.kill()
                    go_on()
                    broker.start()
                    go_on()
                    wait_for_replicas(bootstrap, len(cluster.brokers))
                for broker in cluster.brokers:
                    broker.kill()
                time.sleep(AWAY_SECONDS)
                assert job.running, job.text
                assert len(job.lines_with("waiting for the brokers: ")) >= 1
                for broker in cluster.brokers:
                    broker.start()
                job.wait_for("records read")
                go_on()
            with Clients(bootstrap) as clients:
                brokers_answers = answers(clients, bootstrap, committers.groups)
            catch_up(job, tables, bootstrap)
            job.signal(signal.SIGTERM)
            assert job.ended() == 0, job.text
        with KafkaSource(source(bootstrap)) as log:
            written = sum(log.end_offsets().values())
            left = sum(len(columns) for _, columns in log.read_many({p: (0, end) for p, end in log.end_offsets().items()}))
    assert all(brokers_answers["committed"].values())
    assert differences(str(tables), brokers_answers) == []
    assert check(str(tables)) == []
    assert Snapshot.open(str(tables)).query("SELECT * FROM quarantine").num_rows == 0
    assert len(job.lines_with("the brokers answer again, after ")) >= 1
    assert job.tracebacks == []
    # the cleaner has run meanwhile
    assert left < written / 2


def test_a_job_that_waits_can_be_stopped(broker: PrivateBroker, tmp_path: Path) -> None:
    with Clients(broker.bootstrap) as clients:
        clients.create_topics(["orders"], 2)
    log = source(broker.bootstrap)
    with Committers(broker.bootstrap, 4, "orders") as committers, contextlib.ExitStack() as jobs:
        # the offsets topic exists from the first commit on
        committers.wait_for_more(1)
        patient, group, typed = (jobs.enter_context(Job(log, tmp_path / name)) for name in ("patient", "group", "typed"))
        for job in (patient, group, typed):
            job.wait_for("records read", 3)
        group.signal(signal.SIGTERM, whole_group=True)
        assert group.ended() == 0, group.text
        broker.kill()
        try:
            patient.wait_for("waiting for the brokers: ")
            patient.signal(signal.SIGTERM)
            assert patient.ended() == 0, patient.text
            # Ctrl-C reaches every process of the terminal's foreground
            typed.wait_until_logged("waiting for the brokers: ")
            typed.signal(signal.SIGINT, whole_group=True)
            assert typed.ended() == 0, typed.text
        finally:
            # consumers do not close without their coordinator
            broker.start()
    assert patient.lines_with("waiting for the brokers")
    for job in (patient, group, typed):
        assert job.tracebacks == []
    assert without_recording(patient.lines)[-1] == "stopping"
    for name in ("patient", "group", "typed"):
        assert check(str(tmp_path / name)) == []


def records(first: int, behind: int) -> list[tuple[int, bytes | None, bytes | None]]:
    return [(0, b"no key of a group", b"%d" % number) for number in range(first, behind)]


@pytest.mark.usefixtures("spark")
def test_a_topic_that_was_recreated_between_two_runs(broker: PrivateBroker, tmp_path: Path) -> None:
    create_topic(broker.bootstrap, "log")
    produce(broker.bootstrap, "log", records(0, 5))
    run_job(source(broker.bootstrap, "log"), tmp_path)
    delete_topic(broker.bootstrap, "log")
    create_topic(broker.bootstrap, "log")
    produce(broker.bootstrap, "log", records(0, 50))
    with pytest.raises(UsageError, match=r"topic log was deleted and created again: its id was .*start with new tables"):
        run_job(source(broker.bootstrap, "log"), tmp_path)
    assert Snapshot.open(str(tmp_path)).query("SELECT * FROM quarantine").num_rows == 5


def test_a_topic_that_is_recreated_while_a_job_follows_it(broker: PrivateBroker, tmp_path: Path) -> None:
    create_topic(broker.bootstrap, "log")
    produce(broker.bootstrap, "log", records(0, 5))
    with Job(source(broker.bootstrap, "log"), tmp_path / "tables") as job:
        job.wait_for("records read")
        delete_topic(broker.bootstrap, "log")
        create_topic(broker.bootstrap, "log")
        produce(broker.bootstrap, "log", records(0, 50))
        assert job.ended() == 1, job.text
    (reason,) = job.lines_with("grouplake: ")
    assert reason.startswith("grouplake: topic log was deleted and created again")
    assert job.tracebacks == []
    assert Snapshot.open(str(tmp_path / "tables")).query("SELECT * FROM quarantine").num_rows == 5


@pytest.mark.usefixtures("spark")
def test_records_that_got_lost_between_two_runs(broker: PrivateBroker, tmp_path: Path) -> None:
    create_topic(broker.bootstrap, "log")
    produce(broker.bootstrap, "log", records(0, 20), batch_num_messages=1)
    run_job(source(broker.bootstrap, "log"), tmp_path)
    broker.kill()
    cut_log(broker.data / "log-0", 12)
    broker.start()
    with pytest.raises(UsageError, match="the log ends at offset 12, before offset 20 where the tables continue"):
        run_job(source(broker.bootstrap, "log"), tmp_path)
    produce(broker.bootstrap, "log", records(100, 130))
    with pytest.raises(
        GrouplakeError, match="was truncated to offset 12, before offset 20 where the tables continue, and has grown"
    ):
        run_job(source(broker.bootstrap, "log"), tmp_path)
    assert Snapshot.open(str(tmp_path)).query("SELECT * FROM quarantine").num_rows == 20


def test_a_jvm_that_is_killed(tmp_path: Path) -> None:
    with Job(f"segments:{genuine.segments_dir('4.1.1', tmp_path / 'log')}", tmp_path / "tables") as job:
        job.wait_until_logged("ready: following")
        (jvm,) = (pid for pid in family(job.pid) if Path(f"/proc/{pid}/comm").read_text() == "java\n")
        os.kill(jvm, signal.SIGKILL)
        assert job.ended() == 1
    assert job.lines[-1].startswith("grouplake: Spark's JVM was killed by signal 9; the next run continues after the last batch")
    assert job.tracebacks == []
