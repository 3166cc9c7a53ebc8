"""Private brokers, and the stories run on them."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import genuine
import pytest
from eventually import equal_to, eventually
from live_kafka import QUIET, create_topic, produce, read_all
from patience import PATIENCE_SECONDS
from scenario_full import PARTITIONS, TOPICS, played

from coordinator_core.codec import Record, decode
from coordinator_core.sources.kafka import KafkaSource
from coordinator_core.sources.segments import SegmentSource
from pipelines.examples.private.kafka import scenario
from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.examples.private.kafka.clients import Clients
from pipelines.examples.private.kafka.distribution import PrivateKafkaError, broker_jars
from pipelines.examples.private.kafka.probe import listens
from pipelines.runtime.cache.ivy import JarsError
from pipelines.runtime.cache.java import JavaError

pytestmark = [pytest.mark.broker, pytest.mark.long]

SEGMENT = "00000000000000000000.log"


@pytest.fixture(scope="module")
def own_broker() -> Iterator[PrivateBroker]:
    with PrivateBroker("4.1.1", offsets_partitions=3) as running:
        yield running


def offsets_records(broker: PrivateBroker) -> list[Record]:
    with KafkaSource(f"kafka://{broker.bootstrap}/__consumer_offsets") as log:
        records = [decode(record.key, record.value) for record in read_all(log) if not record.is_control]
    assert all(isinstance(record, Record) for record in records)
    return [record for record in records if isinstance(record, Record)]


def test_the_demo_is_printed_step_by_step(own_broker: PrivateBroker) -> None:
    progress: list[str] = []
    with Clients(own_broker.bootstrap) as clients:
        groups = scenario.play(clients, own_broker.version, progress.append)
        named = {record.key.group for record in offsets_records(own_broker) if hasattr(record.key, "group")}
    assert groups == ("billing", "nightly-report", "fraud-check", "backfill-tool", "ledger", "search-index")
    assert [line.split(":")[0] for line in progress[1:]] == list(groups)
    assert named >= set(groups)


def test_old_brokers_get_only_stories_that_they_support() -> None:
    assert [step.group for step in scenario.steps("0.10.2.2")][-1] == "backfill-tool"
    assert [step.group for step in scenario.steps("3.9.1")][-1] == "ledger"


@pytest.mark.long
def test_the_full_story_is_answered_in_the_form_of_the_recorded_ones() -> None:
    with PrivateBroker("4.1.1", offsets_partitions=3) as broker, played(broker.bootstrap, broker.version) as answers:
        committed, described = answers["committed"], answers["described"]
        assert set(committed) == set(described)
        assert [entry[:3] for entry in committed["txn-mixed"]] == [["payments", p, 55 + p] for p in range(4)]
        assert [entry[:3] for entry in committed["txn-open"]] == [["payments", p, 77 + p] for p in range(4)]
        assert committed["txn-aborted"] == committed["to-be-deleted"] == []
        assert committed["admin-reset"][0][:3] == ["payments", 0, 1]
        assert described["billing-workers"]["state"] == described["next-gen"]["state"] == "STABLE"
        assert [member[1] for member in described["static-cooperative"]["members"]] == ["inst-0", "inst-1"]
        assert described["nightly-report"]["state"] == described["next-gen-left"]["state"] == "EMPTY"
        assert sum(answers["high_watermarks"].values()) > 100


@pytest.mark.long
def test_replaced_segments_are_loaded_and_everything_is_removed_at_the_end(tmp_path: Path, topic: str) -> None:
    with PrivateBroker("4.1.1") as broker:
        folder = broker.data.parent
        create_topic(broker.bootstrap, topic, 1)
        produce(broker.bootstrap, topic, [(0, b"k", b"old")])
        backup = (broker.data / f"{topic}-0" / SEGMENT).read_bytes()
        produce(broker.bootstrap, topic, [(0, b"k", b"lost"), (0, b"k", b"lost too")])
        with pytest.raises(PrivateKafkaError, match="stop it before its segments are replaced"):
            broker.place_segments(tmp_path, topic)
        broker.stop()
        with pytest.raises(PrivateKafkaError, match=f"no {topic}-N folder"):
            broker.place_segments(tmp_path, topic)
        source = tmp_path / f"{topic}-0"
        source.mkdir()
        (source / SEGMENT).write_bytes(backup)
        assert broker.place_segments(tmp_path, topic) == [0]
        broker.start()
        with KafkaSource(f"kafka://{broker.bootstrap}/{topic}") as log:
            assert [record.value for record in read_all(log)] == [b"old"]
        produce(broker.bootstrap, topic, [(0, b"k", b"new")])
        assert SegmentSource(broker.data, topic).end_offsets() == {0: 2}
    assert not folder.exists()
    assert not broker.running


@pytest.mark.long
@pytest.mark.parametrize(
    "version", ["4.1.1", pytest.param("2.8.2", marks=pytest.mark.slow), pytest.param("0.10.2.2", marks=pytest.mark.slow)]
)
def test_a_broker_loads_a_recorded_log_and_answers_as_the_one_that_wrote_it(version: str, tmp_path: Path) -> None:
    recorded = genuine.expected(version)
    log_folder = next(genuine.segments_dir(version, tmp_path).rglob("__consumer_offsets-*")).parent
    properties = {"offsets.retention.minutes": str(genuine.RETENTION_MINUTES)}
    with PrivateBroker(version, offsets_partitions=len(recorded["high_watermarks"]), properties=properties) as broker:
        with Clients(broker.bootstrap) as clients:
            clients.create_topics(TOPICS, PARTITIONS)
            clients.commit(clients.consumer("makes-the-offsets-topic"), [("orders", 0, 1)])
        broker.stop()
        broker.place_segments(log_folder)
        broker.start()
        with Clients(broker.bootstrap) as clients:
            answered = {group: clients.committed(group, TOPICS, PARTITIONS) for group in recorded["committed"]}
    assert answered == {group: sorted(tuple(each[:4]) for each in each_of) for group, each_of in recorded["committed"].items()}


def test_a_broker_ends_with_the_process_that_started_it() -> None:
    script = """
import os, signal
from pipelines.examples.private.kafka.broker import PrivateBroker
broker = PrivateBroker("4.1.1")
broker.start()
print(broker.bootstrap, broker.data.parent, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    bootstrap, folder = run.stdout.split()
    port = int(bootstrap.rpartition(":")[2])
    eventually("broker and folder are gone", lambda: (Path(folder).exists(), listens(port)), equal_to((False, False)))


def test_a_broker_that_cannot_start_reports_the_reason() -> None:
    with pytest.raises(PrivateKafkaError, match=r"StorageTool of Kafka 4.1.1 cannot format the storage: .*num.io.threads"):
        PrivateBroker("4.1.1", properties={"num.io.threads": "-1"}).__enter__()


@pytest.mark.network
def test_an_unpublished_version_is_reported(tmp_path: Path) -> None:
    with pytest.raises(JarsError, match=r"org.apache.kafka:kafka_2.13:4.99.99 does not resolve: .*"):
        broker_jars("4.99.99", cache=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_version_that_is_no_number_is_reported(tmp_path: Path) -> None:
    with pytest.raises(PrivateKafkaError, match="invalid Kafka version 'latest'"):
        broker_jars("latest", cache=tmp_path)


def test_missing_java_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(JavaError, match="no `java` in JAVA_HOME or PATH: install a Java runtime, version 17"):
        broker_jars("4.1.1", cache=tmp_path)


def test_clients_that_wait_in_vain_report_the_condition(own_broker: PrivateBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.examples.private.kafka.clients.LIMIT_SECONDS", 0.3)
    with Clients(own_broker.bootstrap, {**QUIET}) as clients:
        member = clients.consumer("no-assignment")
        with pytest.raises(PrivateKafkaError, match="waiting for 1 members to share 4 partitions"):
            clients.settle([member], 4)
