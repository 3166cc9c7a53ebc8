"""A Structured Streaming query whose offsets are commits of a group: seen by Kafka's own tool and by our tables."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from eventually import equal_to, eventually
from group_offsets import commit_offsets
from java_tools import consumer_groups, table
from jobs import run_job
from live_kafka import create_topic, produce
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import grouplake
from coordinator_core.log.partitioner import partition_for
from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.examples.private.kafka.clients import Clients
from pipelines.group_commits.commit_rules import StoredCommit
from pipelines.group_commits.kafka_group import CommitFailed, KafkaGroup
from pipelines.query.engine import Snapshot

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.long]

TOPIC, GROUP = "orders", "spark-shop"


@pytest.fixture
def broker() -> Iterator[PrivateBroker]:
    with PrivateBroker("4.3.0", offsets_partitions=2) as started:
        create_topic(started.bootstrap, TOPIC, 2)
        yield started


def query_of(spark: SparkSession, broker: PrivateBroker, checkpoint: Path) -> StreamingQuery:
    read = spark.readStream.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap).option("subscribe", TOPIC)
    written = read.option("startingOffsets", "earliest").load().writeStream.format("noop").queryName("shop")
    return written.option("checkpointLocation", str(checkpoint)).start()


def send(broker: PrivateBroker, first: int, second: int) -> None:
    """Records of both partitions."""
    counts = enumerate((first, second))
    produce(broker.bootstrap, TOPIC, [(partition, b"k", b"v") for partition, count in counts for _ in range(count)])


def test_a_restarted_query_as_a_group(spark: SparkSession, broker: PrivateBroker, tmp_path: Path) -> None:
    kafka = {"bootstrap.servers": broker.bootstrap}

    def failure() -> str | None:
        refusals = [state.refusal for state in commits.states.values() if state.refusal]
        error = query.exception()
        return "; ".join(refusals if error is None else [str(error), *refusals]) or None

    def expect(first: int, second: int) -> None:
        wanted = equal_to([(TOPIC, 0, first), (TOPIC, 1, second)])
        with Clients(broker.bootstrap) as clients:
            eventually(
                "the offsets of the query",
                lambda: [row[:3] for row in clients.committed(GROUP, [TOPIC], 2)],
                wanted,
                unless=failure,
            )

    send(broker, 2, 4)
    # the active session is another one from here on
    spark.newSession().createDataFrame([(1,)], "number int")
    query = query_of(spark, broker, tmp_path / "checkpoint")
    commits = grouplake.commit_offsets(query, group_id="spark-{name}", kafka=kafka)
    try:
        send(broker, 1, 0)
        expect(3, 4)
        assert commits.stop()
    finally:
        query.stop()
    send(broker, 2, 1)
    described = table(consumer_groups(broker.bootstrap, "--describe", "--group", GROUP))
    columns = ("PARTITION", "CURRENT-OFFSET", "LAG")
    assert sorted(tuple(map(row.get, columns)) for row in described) == [("0", "3", "2"), ("1", "4", "1")]

    # a session takes queries that start later, and a restarted one continues from its checkpoint
    commits = grouplake.commit_offsets(spark, group_id="spark-{name}", kafka=kafka)
    query = query_of(spark, broker, tmp_path / "checkpoint")
    try:
        expect(5, 5)
        run_job(f"kafka-groups://{broker.bootstrap}", tmp_path / "tables")
        found = Snapshot.open(str(tmp_path / "tables")).query("SELECT group_id, partition, committed_offset FROM offsets")
        assert sorted(map(tuple, (row.values() for row in found.to_pylist()))) == [(GROUP, 0, 5), (GROUP, 1, 5)]

        commit_offsets(broker.bootstrap, GROUP, {(TOPIC, 0): 1})
        send(broker, 1, 0)
        eventually("the reset is noticed", lambda: commits.states[GROUP].refusal)
        with Clients(broker.bootstrap) as clients:
            assert [row[:3] for row in clients.committed(GROUP, [TOPIC], 2)] == [(TOPIC, 0, 1), (TOPIC, 1, 5)]
        assert query.isActive
        assert query.exception() is None
    finally:
        commits.stop()
        query.stop()


@pytest.mark.usefixtures("spark")
def test_the_job_as_a_group(broker: PrivateBroker, tmp_path: Path) -> None:
    def lag() -> dict[str, str | None]:
        described = table(consumer_groups(broker.bootstrap, "--describe", "--group", job_group))
        assert {row["TOPIC"] for row in described} == {"__consumer_offsets"}
        return {str(row["PARTITION"]): row["LAG"] for row in described}

    job_group, source = "grouplake-job", f"kafka://{broker.bootstrap}/__consumer_offsets"
    home = partition_for(job_group, 2)
    # one group in each log partition
    groups = sorted(next(name for name in map("group-{}".format, count()) if partition_for(name, 2) == at) for at in range(2))
    for group in groups:
        commit_offsets(broker.bootstrap, group, {(TOPIC, 0): 1})
    run_job(source, tmp_path / "tables", group_id=job_group)
    # the commit of two partitions is two records of the log that was read
    assert lag() == {str(home): "2", str(1 - home): "0"}
    # the second run reads them, and commits the log partition that has advanced
    run_job(source, tmp_path / "tables", group_id=job_group)
    assert lag() == {str(home): "1", str(1 - home): "0"}
    rows = "SELECT group_id, topic FROM offsets ORDER BY group_id, partition"
    found = Snapshot.open(str(tmp_path / "tables")).query(rows).to_pylist()
    own = [(job_group, "__consumer_offsets")] * 2
    assert [tuple(row.values()) for row in found] == [*((group, TOPIC) for group in groups), *own]


def test_a_broker_that_is_away_is_said_and_waited_for() -> None:
    with PrivateBroker("4.3.0", offsets_partitions=2) as broker:
        create_topic(broker.bootstrap, TOPIC, 1)
        group = KafkaGroup(GROUP, {"bootstrap.servers": broker.bootstrap})

        def commit(offset: int) -> str:
            try:
                group.commit({(TOPIC, 0): offset}, "by a test")
            except CommitFailed as error:
                return str(error)
            return ""

        eventually("a commit", lambda: commit(3), equal_to(""))
        broker.kill()
        assert commit(4) != ""
        broker.start()
        eventually("a commit after the outage", lambda: commit(5), equal_to(""))
        assert group.stored([(TOPIC, 0)]) == {(TOPIC, 0): StoredCommit(5, "by a test")}
