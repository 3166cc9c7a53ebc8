"""`__consumer_offsets` and `__transaction_state` of a live broker get more partitions: tables are what the broker answers.

A broker uses the new number after its restart. At each moment a job that follows the log, a scheduled run, and a first run are
compared with it, for groups of every type.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions
from eventually import equal_to, eventually
from group_heartbeats import GroupHeartbeats
from group_offsets import commit_offsets, committed
from java_clients import JavaClients, java_clients
from live_kafka import QUIET, create_topic, wait_for_topic
from patience import PATIENCE_SECONDS

from coordinator_core.log.partitioner import partition_for
from coordinator_core.protocol.internal_topics import OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from coordinator_core.sources import kafka
from coordinator_core.state.era import Era
from pipelines.batch.apply import BatchApplier
from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.query.check import check
from pipelines.query.engine import Snapshot
from pipelines.source.address import parse_address
from pipelines.source.changes import SCHEMA
from pipelines.source.log_reading import SourceOptions, read_ranges
from pipelines.source.log_stream import LogStream
from pipelines.source.position import Position
from pipelines.source.ranges import ranges
from pipelines.source.transaction_log import TransactionLogReader
from pipelines.tables.store import TableStore

pytestmark = pytest.mark.broker

OLD, NEW = 3, 7
TOPIC = "orders"
GROUPS = tuple(map("group-{}".format, range(10)))
MOVED = tuple(group for group in GROUPS if partition_for(group, OLD) != partition_for(group, NEW))


def moved(kind: str) -> str:
    """A name whose partition is another one after the growth."""
    return next(name for name in map((kind + "-{}").format, range(99)) if partition_for(name, OLD) != partition_for(name, NEW))


#: Groups with members, one of each protocol, and a transactional id.
CLASSIC, CONSUMER, SHARE, STREAMS = map(moved, ("classic", "consumer", "share", "streams"))
WRITER = moved("writer")
ERA = Era.named("4")


class Tables:
    """Tables that follow the broker without Spark."""

    def __init__(self, root: Path, bootstrap: str) -> None:
        self.lines: list[str] = []
        store = TableStore(str(root))
        store.create()
        self._store, self.root = store, str(root)
        self._options = SourceOptions(parse_address(f"kafka://{bootstrap}/{OFFSETS_TOPIC}"), "4", ERA.default_retention_ms, {})
        ids = SourceOptions(parse_address(f"kafka://{bootstrap}/{TRANSACTION_STATE_TOPIC}"), "4", ERA.default_retention_ms, {})
        self._reader = TransactionLogReader(ids, self.lines.append)
        self._stream = LogStream(self._options)
        self._applier = BatchApplier(
            store,
            ERA,
            ERA.default_retention_ms,
            dict,
            bulk_rows=1_000_000,
            transactions=self._reader,
            progress=self.lines.append,
        )

    def follow(self) -> None:
        last = self._store.last_batch()
        begin = Position({**self._stream.start().offsets, **(last.next_offsets if last else {})})
        end = self._stream.end_after(begin)
        todo = ranges(begin.offsets, end.offsets, self._stream.ends)
        if todo:
            self._applier.apply_rows(pa.Table.from_batches(read_ranges(self._options, todo), SCHEMA))
        self._applier.apply_transactions()

    def offsets(self) -> dict[str, dict[tuple[str, int], int]]:
        found: dict[str, dict[tuple[str, int], int]] = {group: {} for group in (*GROUPS, CLASSIC, CONSUMER)}
        for row in Snapshot.open(self.root).query("SELECT group_id, topic, partition, committed_offset FROM offsets").to_pylist():
            found.setdefault(row["group_id"], {})[row["topic"], row["partition"]] = row["committed_offset"]
        return found

    def groups(self) -> dict[str, tuple[str, str]]:
        """Group → type and state, in the words of a broker, for which simple groups are classic ones."""
        rows = Snapshot.open(self.root).query("SELECT group_id, group_type, state FROM groups").to_pylist()
        return {
            row["group_id"]: ("Classic" if row["group_type"] == "simple" else row["group_type"].capitalize(), row["state"])
            for row in rows
        }

    def ids(self) -> list[int]:
        rows = Snapshot.open(self.root).query(f"SELECT log_partition FROM transactions WHERE transactional_id = '{WRITER}'")
        found: list[int] = rows["log_partition"].to_pylist()
        return found

    def close(self) -> None:
        self._stream.close()
        self._reader.close()


@pytest.fixture
def broker() -> Iterator[PrivateBroker]:
    with PrivateBroker("4.3.0", offsets_partitions=OLD, properties={"transaction.state.log.num.partitions": str(OLD)}) as started:
        yield started


@pytest.fixture(scope="module")
def java() -> Iterator[JavaClients]:
    with java_clients("4.1.1") as running:
        yield running


def test_the_tables_are_what_the_broker_answers(
    broker: PrivateBroker, java: JavaClients, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka, "_METADATA_AGE_SECONDS", 0.0)
    create_topic(broker.bootstrap, TOPIC, 2)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, **QUIET})
    commit(broker, 10, GROUPS)
    join(broker, java, 1)
    transact(broker)
    tables = Tables(tmp_path / "following", broker.bootstrap)

    def expect(first: str) -> None:
        answers = {group: committed(admin, group) for group in (*GROUPS, CLASSIC, CONSUMER)}
        expect_answers(broker, answers, java.groups(broker.bootstrap), tables, tmp_path, first)

    expect("first-0")
    assert {kind for kind, _ in tables.groups().values()} == {"Classic", "Consumer", "Share", "Streams"}
    assert tables.ids() == [partition_for(WRITER, OLD)]

    grow(admin)
    commit(broker, 20, GROUPS[::2])
    expect("first-1")
    assert any(f"{OFFSETS_TOPIC} has {NEW} partitions now, and the brokers use {OLD}" in line for line in tables.lines)

    broker.stop()
    broker.start()
    # of half of the moved groups nothing is written any more
    commit(broker, 5, MOVED[::2])
    expect("first-2")
    assert any(committed(admin, group) == {} for group in MOVED), "the broker does not know moved groups"
    assert any(f"{OFFSETS_TOPIC} has {NEW} partitions, {OLD} before" in line for line in tables.lines)

    commit(broker, 30, GROUPS)
    join(broker, java, 1)
    transact(broker)
    expect("first-3")
    assert tables.ids() == [partition_for(WRITER, NEW)]
    tables.close()


def expect_answers(
    broker: PrivateBroker,
    offsets: dict[str, dict[tuple[str, int], int]],
    groups: dict[str, tuple[str, str]],
    following: Tables,
    root: Path,
    first: str,
) -> None:
    """The following job, a scheduled run that continues its last one, and a first run have what the broker answers."""

    def differences() -> set[tuple[str, object]]:
        following.follow()
        return set(following.groups().items()) ^ set(groups.items()) | {
            (group, str(found)) for group, found in following.offsets().items() if found != offsets.get(group, {})
        }

    eventually("the tables have the broker's answers", differences, equal_to(set()))
    for name in ("scheduled", first):
        run = Tables(root / name, broker.bootstrap)
        run.follow()
        run.close()
        assert (run.offsets(), run.groups()) == (offsets, groups), name
        assert check(run.root) == []
    assert check(following.root) == []


def grow(admin: AdminClient) -> None:
    wanted = [NewPartitions(name, NEW) for name in (OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC)]
    for future in admin.create_partitions(wanted).values():
        future.result(PATIENCE_SECONDS)
    for name in (OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC):
        wait_for_topic(admin, name)


def commit(broker: PrivateBroker, offset: int, groups: tuple[str, ...]) -> None:
    for group in groups:
        commit_offsets(broker.bootstrap, group, {(TOPIC, 0): offset})


def _has_partitions(member: Consumer) -> bool:
    return bool(member.poll(0.2) or member.assignment())


def join(broker: PrivateBroker, java: JavaClients, offset: int) -> None:
    """A member of each protocol joins and leaves; those of consumers commit."""
    for group, protocol in ((CLASSIC, "classic"), (CONSUMER, "consumer")):
        member = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group, "group.protocol": protocol, **QUIET})
        try:
            member.subscribe([TOPIC])
            eventually(f"{group} has partitions", partial(_has_partitions, member))
            member.commit(offsets=[TopicPartition(TOPIC, 1, offset)], asynchronous=False)
        finally:
            member.close()
    heartbeats = GroupHeartbeats(java, broker.bootstrap)
    heartbeats.join_and_leave("share", SHARE, TOPIC)
    heartbeats.join_and_leave("streams", STREAMS, TOPIC)


def transact(broker: PrivateBroker) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": WRITER, **QUIET})
    producer.init_transactions(PATIENCE_SECONDS)
    producer.begin_transaction()
    producer.produce(TOPIC, b"one")
    producer.commit_transaction(PATIENCE_SECONDS)
