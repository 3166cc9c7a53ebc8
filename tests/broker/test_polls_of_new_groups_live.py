"""Polls of a 4.3.0 broker beside its logs: groups of every type, share and streams groups among them, and transactions."""

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, ShareConsumer, TopicPartition
from eventually import equal_to, eventually
from following import Job
from group_offsets import commit_offsets
from live_kafka import QUIET
from live_lag import LiveLag
from patience import PATIENCE_SECONDS
from poll_comparison import UNKNOWN_TO_A_POLL, difference, known_to_both, now_ms, polled, rows
from streams_member import StreamsMember

from coordinator_core.log.partitioner import partition_for
from coordinator_core.sources.kafka import KafkaSource
from coordinator_core.sources.kafka_connection import close_idle_connections
from pipelines.cli import main
from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.examples.private.kafka.clients import Clients
from pipelines.runtime.timestamps import to_ms
from pipelines.source.address import parse_address

pytestmark = [pytest.mark.broker, pytest.mark.long]

TOPIC, PARTITIONS = "orders", 2
GROUPS = {
    "classic-app": "classic",
    "modern-app": "consumer",
    "share-app": "share",
    "simple-app": "simple",
    "streams-app": "streams",
}


@pytest.fixture(scope="module")
def newest() -> Iterator[PrivateBroker]:
    """Not the session's: all its groups are compared."""
    with PrivateBroker("4.3.0", offsets_partitions=2) as running:
        with Clients(running.bootstrap) as made:
            made.create_topics([TOPIC], PARTITIONS)
            made.produce(TOPIC, PARTITIONS, 10)
        yield running
        close_idle_connections()


@pytest.fixture
def clients(newest: PrivateBroker) -> Iterator[Clients]:
    with Clients(newest.bootstrap) as made:
        yield made


def read_as_share_group(clients: Clients, consumer: ShareConsumer) -> Callable[[], bool]:
    """A probe: true when the share group has read records of each partition that were produced after it joined."""
    read: set[int | None] = set()

    def probe() -> bool:
        clients.produce(TOPIC, PARTITIONS, PARTITIONS)
        read.update(message.partition() for message in consumer.poll(0.2) if message.error() is None)
        return len(read) == PARTITIONS

    return probe


def test_groups_of_every_type_are_those_of_the_log(newest: PrivateBroker, clients: Clients, tmp_path: Path) -> None:
    classic = [clients.consumer("classic-app", [TOPIC], client_id=f"worker-{number}") for number in range(2)]
    clients.settle(classic, PARTITIONS)
    modern = clients.consumer("modern-app", [TOPIC], group_protocol="consumer")
    clients.settle([modern], PARTITIONS)
    clients.commit_everywhere(classic, 5, "note")
    clients.commit_everywhere([modern], 3)
    commit_offsets(newest.bootstrap, "simple-app", {(TOPIC, 1): 3})
    commit_offsets(newest.bootstrap, "streams-app", {(TOPIC, 0): 2, (TOPIC, 1): 4})
    share = ShareConsumer({"bootstrap.servers": newest.bootstrap, "group.id": "share-app", **QUIET})
    share.subscribe([TOPIC])
    with StreamsMember(newest.bootstrap, "streams-app", TOPIC) as streams:
        eventually("the share group reads", read_as_share_group(clients, share))
        eventually("the streams member has its tasks", lambda: (streams.heartbeat(), streams.tasks)[1], equal_to([0, 1]))
        with KafkaSource(f"kafka://{newest.bootstrap}/{TOPIC}") as source:
            names = {topic_id: (name, "cluster") for topic_id, name in source.topic_ids().items()}
        log, polls = LiveLag(newest.bootstrap, tmp_path / "log", names=lambda: names), tmp_path / "polls"

        def differences() -> dict[str, list[str]]:
            for member in (*classic, modern):
                member.poll(0)
            # what was read is acknowledged by the next poll
            share.poll(0.1)
            assert streams.heartbeat() == 0
            log.sample()
            polled(newest.bootstrap, polls)
            return {
                table: one_sided
                for table in UNKNOWN_TO_A_POLL
                if (one_sided := difference(*(known_to_both(root, table, GROUPS) for root in (log.root, polls))))
            }

        eventually("both sources make the same tables", differences, equal_to({}))
        assert {table: len(known_to_both(polls, table, GROUPS)) for table in UNKNOWN_TO_A_POLL} == {
            "offsets": 7,
            "groups": 5,
            "members": 5,
            "assignments": 8,
            # with two of the share group, which commits nothing
            "lag": 9,
            "group_status": 5,
        }
        states = rows(polls, "SELECT group_id, state FROM groups ORDER BY group_id")
        assert {row["group_id"]: row["state"] for row in states} == {
            name: "Empty" if kind == "simple" else "Stable" for name, kind in GROUPS.items()
        }

        def share_lags() -> dict[int, int | None]:
            polled(newest.bootstrap, polls)
            found = rows(polls, "SELECT partition, lag FROM share_offsets WHERE group_id = 'share-app'")
            return {row["partition"]: row["lag"] for row in found}

        # what was read is acknowledged by the next poll
        eventually("the share group has no lag", lambda: (share.poll(0.1), share_lags())[1], equal_to({0: 0, 1: 0}))
        share.close()
        clients.produce(TOPIC, PARTITIONS, 7 * PARTITIONS)
        eventually("its lag is what was produced since", share_lags, equal_to({0: 7, 1: 7}))
    # both have left: the groups stay
    polled(newest.bootstrap, polls)
    left = rows(
        polls, "SELECT group_id, state, member_count FROM groups WHERE group_id IN ('share-app', 'streams-app') ORDER BY 1"
    )
    assert [tuple(row.values()) for row in left] == [("share-app", "Empty", 0), ("streams-app", "Empty", 0)]
    history = rows(polls, "SELECT DISTINCT group_id FROM group_history WHERE change = 'member_left' ORDER BY group_id")
    assert history == [{"group_id": "share-app"}, {"group_id": "streams-app"}]
    assert main(["check", "--tables", str(polls)]) == 0


#: Columns of `transactions` that a poll knows; docs/sources.md names the others.
_KNOWN_OF_A_TRANSACTION = "transactional_id, state, producer_id, producer_epoch, timeout_ms, partitions, start_timestamp"
_TRANSACTIONS = f"SELECT {_KNOWN_OF_A_TRANSACTION} FROM transactions ORDER BY transactional_id"


class TransactionalProducer:
    """A producer with an open transaction, which it began between the two times (ms)."""

    def __init__(self, bootstrap: str, name: str) -> None:
        settings = {"bootstrap.servers": bootstrap, "transactional.id": name, "transaction.timeout.ms": 600_000, **QUIET}
        self.producer = Producer(settings)
        self.producer.init_transactions(PATIENCE_SECONDS)
        self.begun_after = now_ms()
        self.producer.begin_transaction()

    def produce(self, partition: int) -> None:
        """Write a record, so that the coordinator knows of the transaction."""
        self.producer.produce(TOPIC, b"record", partition=partition)
        assert self.producer.flush(PATIENCE_SECONDS) == 0

    def commit_offset(self, clients: Clients, group: str, offset: int) -> None:
        """Commit an offset of a group, pending until the transaction ends."""
        member = clients.consumer(group)
        offsets = [TopicPartition(TOPIC, 0, offset)]
        self.producer.send_offsets_to_transaction(offsets, member.consumer_group_metadata(), PATIENCE_SECONDS)


def test_transactions_are_those_of_the_log(newest: PrivateBroker, clients: Clients, tmp_path: Path) -> None:
    """One is complete, one is open with a record, and one blocks the partition of a group with a pending commit."""
    done, open_, blocking = (TransactionalProducer(newest.bootstrap, name) for name in ("done", "open", "pending"))
    done.commit_offset(clients, "done-app", 3)
    done.producer.commit_transaction(PATIENCE_SECONDS)
    open_.produce(1)
    commit_offsets(newest.bootstrap, "pending-app", {(TOPIC, 0): 2})
    blocking.commit_offset(clients, "pending-app", 4)
    begun_before = now_ms()
    log, polls = LiveLag(newest.bootstrap, tmp_path / "log", transactions=True), tmp_path / "polls"
    options = {"transactions": parse_address(f"kafka-groups://{newest.bootstrap}")}

    def states() -> dict[str, Any]:
        polled(newest.bootstrap, polls, **options)
        return {row["transactional_id"]: row["state"] for row in rows(polls, _TRANSACTIONS)}

    try:
        wanted = {"done": "CompleteCommit", "open": "Ongoing", "pending": "Ongoing"}
        eventually("the commit is complete", states, equal_to(wanted))
        log.sample()
        found = rows(polls, _TRANSACTIONS)
        assert found == rows(log.root, _TRANSACTIONS)
        by_name = {row["transactional_id"]: row for row in found}
        for producer, name in ((open_, "open"), (blocking, "pending")):
            assert producer.begun_after <= to_ms(by_name[name]["start_timestamp"]) <= begun_before
        assert by_name["open"]["partitions"] == [{"topic": TOPIC, "partitions": [1]}]
        log_partition = partition_for("pending-app", 2)
        assert by_name["pending"]["partitions"] == [{"topic": "__consumer_offsets", "partitions": [log_partition]}]
        # the poll has the offset before the pending one, and no more
        assert rows(polls, "SELECT committed_offset FROM offsets WHERE group_id = 'pending-app'") == [{"committed_offset": 2}]
        assert rows(polls, "SELECT * FROM pending_offsets") == []
        before = rows(polls, "SELECT * FROM transaction_history")
        polled(newest.bootstrap, polls, **options)
        assert rows(polls, "SELECT * FROM transaction_history") == before

        open_.producer.abort_transaction(PATIENCE_SECONDS)
        blocking.producer.commit_transaction(PATIENCE_SECONDS)
        wanted |= {"open": "CompleteAbort", "pending": "CompleteCommit"}
        eventually("both are complete", states, equal_to(wanted))
        log.sample()
        assert rows(polls, _TRANSACTIONS) == rows(log.root, _TRANSACTIONS)
        assert rows(polls, "SELECT committed_offset FROM offsets WHERE group_id = 'pending-app'") == [{"committed_offset": 4}]
        last = "SELECT state, aborts FROM transaction_history WHERE transactional_id = 'open' ORDER BY log_offset DESC LIMIT 1"
        assert rows(polls, last) == [{"state": "CompleteAbort", "aborts": 1}]
        assert main(["check", "--tables", str(polls)]) == 0
    finally:
        log.close()


@pytest.mark.slow
def test_a_job_follows_transactions_by_polls_across_restarts(newest: PrivateBroker, clients: Clients, tmp_path: Path) -> None:
    """Stopped with a transaction open, and killed with it complete: each run continues where the tables end."""
    states = "SELECT state FROM transaction_history WHERE transactional_id = 'followed' ORDER BY batch_id, log_offset"
    producer = TransactionalProducer(newest.bootstrap, "followed")

    def job() -> Job:
        return Job(f"kafka-groups://{newest.bootstrap}", tmp_path, "--transactions")

    def seen(running: Job, *wanted: str) -> None:
        def found() -> list[str]:
            return [row["state"] for row in rows(tmp_path, states)]

        running.wait_until_logged("ready: following kafka-groups://")
        eventually("the job has the states", found, equal_to(list(wanted)), unless=running.failure, pause_seconds=0.2)

    with job() as first:
        seen(first, "Empty")
        producer.commit_offset(clients, "followed-app", 3)
        seen(first, "Empty", "Ongoing")
        first.signal(signal.SIGTERM)
        assert (first.ended(), first.tracebacks) == (0, [])
    producer.producer.commit_transaction(PATIENCE_SECONDS)
    with job() as second:
        seen(second, "Empty", "Ongoing", "CompleteCommit")
        second.signal(signal.SIGKILL)
        second.ended()
    producer.producer.begin_transaction()
    producer.commit_offset(clients, "followed-app", 4)
    producer.producer.abort_transaction(PATIENCE_SECONDS)
    with job() as third:
        seen(third, "Empty", "Ongoing", "CompleteCommit", "CompleteAbort")
        third.signal(signal.SIGTERM)
        assert (third.ended(), third.tracebacks) == (0, [])
    assert rows(tmp_path, "SELECT committed_offset FROM offsets WHERE group_id = 'followed-app'") == [{"committed_offset": 3}]
    assert main(["check", "--tables", str(tmp_path)]) == 0
