"""`grouplake run --transactions` beside librdkafka's transactional producers, on a coordinator and on a broker."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import java_tools
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from eventually import eventually
from jobs import run_job
from patience import PATIENCE_SECONDS
from transaction_tables import tables_without_records

from pipelines.cli import main
from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.examples.private.private_coordinator import PrivateCoordinator
from pipelines.query.check import check
from pipelines.query.engine import Snapshot
from pipelines.runtime.timestamps import now_ms
from pipelines.source.address import parse_address
from pipelines.source.transaction_log import transaction_address

pytestmark = [pytest.mark.broker, pytest.mark.long]


class Cluster(NamedTuple):
    """Addresses of the brokers, and of the log that a job reads."""

    bootstrap: str
    source: str


@pytest.fixture(scope="module", params=["coordinator", "broker"])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    if request.param == "broker":
        broker: PrivateBroker = request.getfixturevalue("broker")
        yield Cluster(broker.bootstrap, f"kafka://{broker.bootstrap}/__consumer_offsets")
        return
    log = tmp_path_factory.mktemp("coordinator") / "log"
    settings: dict[str, Any] = {"offsets_topic_num_partitions": 4, "transaction_state_log_num_partitions": 4}
    with PrivateCoordinator(log, topics={"unused": 1}, **settings) as running:
        yield Cluster(running.bootstrap, f"segments:{log}")


class Member:
    """A producer with a member of the group of the same name."""

    def __init__(self, bootstrap: str, name: str) -> None:
        settings = {"bootstrap.servers": bootstrap, "log_level": 0}
        self.name = name
        self._producer = Producer({**settings, "transactional.id": name, "transaction.timeout.ms": 600_000})
        self._consumer = Consumer({**settings, "group.id": name, "enable.auto.commit": False})
        self._producer.init_transactions(PATIENCE_SECONDS)

    def begin(self, topic: str, offset: int) -> None:
        self._producer.begin_transaction()
        offsets = [TopicPartition(topic, 0, offset)]
        self._producer.send_offsets_to_transaction(offsets, self._consumer.consumer_group_metadata(), PATIENCE_SECONDS)

    def end(self, *, aborts: bool = False) -> None:
        (self._producer.abort_transaction if aborts else self._producer.commit_transaction)(PATIENCE_SECONDS)

    def close(self) -> None:
        self._consumer.close()


def created(bootstrap: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    for future in admin.create_topics([NewTopic(topic, 2, 1)]).values():
        future.result(PATIENCE_SECONDS)
    eventually("the topic is there", lambda: topic in admin.list_topics(timeout=PATIENCE_SECONDS).topics)


def read(source: str, tables: Path) -> Snapshot:
    address = transaction_address(parse_address(source), "source", "4")
    lines = run_job(source, tables, driver_records=1_000_000, transactions=address, clock_ms=now_ms)
    assert "starting Spark" not in lines
    return Snapshot.open(str(tables))


def transactions(snapshot: Snapshot) -> dict[str, dict[str, Any]]:
    return {row["transactional_id"]: row for row in snapshot.query("SELECT * FROM transactions").to_pylist()}


def test_the_tables_are_what_the_coordinator_answers(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topic, names = f"topic-{uuid4().hex[:8]}", [f"name-{number}-{uuid4().hex[:8]}" for number in range(3)]
    created(cluster.bootstrap, topic)
    members = [Member(cluster.bootstrap, name) for name in names]
    committing, aborting, _ = members
    tables = tables_without_records(tmp_path / "tables")
    try:
        for offset in (1, 2):
            committing.begin(topic, offset)
            committing.end()
        aborting.begin(topic, 7)

        def is_complete(name: str, state: str) -> bool:
            return bool(transactions(read(cluster.source, tables))[name]["state"] == state)

        eventually("the commit is complete", partial(is_complete, committing.name, "CompleteCommit"))
        snapshot = read(cluster.source, tables)
        rows = transactions(snapshot)
        listed = {row["TransactionalId"]: row for row in java_tools.transactions(cluster.bootstrap, "list")}
        answered = {name: (row["ProducerId"], row["TransactionState"]) for name, row in listed.items()}
        assert {name: (str(row["producer_id"]), row["state"]) for name, row in rows.items()} == answered
        (described,) = java_tools.transactions(cluster.bootstrap, "describe", "--transactional-id", aborting.name)
        row = rows[aborting.name]
        assert (str(row["producer_epoch"]), row["timeout_ms"]) == (described["ProducerEpoch"], 600_000)
        partitions = [f"{each['topic']}-{number}" for each in row["partitions"] for number in each["partitions"]]
        assert partitions == [described["TopicPartitions"]]
        groups = snapshot.query("SELECT * FROM transactional_groups").to_pylist()
        found = {row["group_id"]: (row["transactional_id"], row["offsets"], row["pending_offsets"]) for row in groups}
        assert found[committing.name] == (committing.name, 1, 0)
        assert found[aborting.name] == (aborting.name, 0, 1)
        assert main(["show", "--source", cluster.source, "--transactions", "--format", "list"]) == 0
        printed = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
        assert {name: (producer, state) for name, _, producer, state in printed} == answered
        aborting.end(aborts=True)
        eventually("the abort is complete", partial(is_complete, aborting.name, "CompleteAbort"))
        snapshot = read(cluster.source, tables)
        assert snapshot.query("SELECT * FROM pending_offsets").num_rows == 0
        sums = ", ".join(f"sum({name}) AS {name}" for name in ("initializations", "commits", "aborts"))
        history = snapshot.query(f"SELECT transactional_id, {sums} FROM transaction_history GROUP BY transactional_id")
        counts = {row.pop("transactional_id"): tuple(row.values()) for row in history.to_pylist()}
        assert [counts[name] for name in names] == [(1, 2, 0), (1, 0, 1), (1, 0, 0)]
        assert check(str(tables)) == []
    finally:
        for member in members:
            member.close()
