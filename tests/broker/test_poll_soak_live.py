"""One broker read by both sources for minutes: rebalances, commits, resets and deletions, compared at quiet moments.

POLL_SOAK_MINUTES is the length for each release, POLL_SOAK_SEED that of the events.
"""

import os
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType
from eventually import equal_to, eventually
from group_offsets import commit_offsets, committed
from live_lag import LiveLag
from patience import PATIENCE_SECONDS
from poll_comparison import UNKNOWN_TO_A_POLL, difference, known_to_both, polled, rows

from coordinator_core.codec import Record, decode
from coordinator_core.codec.messages.offsets import OffsetCommitKey, OffsetCommitValue
from coordinator_core.log.columns import to_log_records
from coordinator_core.sources.kafka import KafkaSource
from coordinator_core.sources.kafka_connection import close_idle_connections
from coordinator_core.state.era import Era
from pipelines.cli import main
from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.examples.private.kafka.clients import Clients

MINUTES = float(os.environ.get("POLL_SOAK_MINUTES", "3"))
SEED = int(os.environ.get("POLL_SOAK_SEED", "20261128"))

pytestmark = [pytest.mark.broker, pytest.mark.slow, pytest.mark.timeout(1_200 + 60 * MINUTES)]

TOPIC, PARTITIONS = "orders", 6
#: Events between two quiet moments.
EVENTS = 12
PROPERTIES = {
    "allow.everyone.if.no.acl.found": "true",
    # up to 2.0 offsets expire by the time of their commits, which polls do not know
    "offsets.retention.minutes": "100000",
}
#: Class of the authorizer of brokers with KRaft, and of those before, whose rules are in ZooKeeper.
KRAFT_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
ZOOKEEPER_AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"


class LivingGroups:
    """Groups with members that join, leave and commit, and groups without members that are reset and deleted.

    `events` counts what happened. `kinds` has the type of each group that may exist.
    """

    def __init__(self, bootstrap: str, clients: Clients, protocols: dict[str, str], seed: int) -> None:
        self._bootstrap, self._clients, self._draw = bootstrap, clients, random.Random(seed)
        self._protocols = {f"{protocol}-{number}": protocol for protocol in protocols for number in range(2)}
        self._simple = [f"simple-{number}" for number in range(4)]
        self._members: dict[str, list[Consumer]] = {group: [] for group in self._protocols}
        self.kinds = {group: protocols[protocol] for group, protocol in self._protocols.items()}
        self.kinds |= dict.fromkeys(self._simple, "simple")
        self.events: Counter[str] = Counter()
        self._may: list[Callable[[], str]] = [self._join, self._leave, self._commit, self._commit, self._reset, self._delete]

    def happen(self) -> str:
        """One event. Returns its name."""
        event = self._draw.choice(self._may)()
        self.events[event] += 1
        self.poll()
        return event

    def poll(self) -> None:
        """Keep all members alive, and let them take part in rebalances."""
        for members in self._members.values():
            for member in members:
                member.poll(0)

    def settle(self) -> None:
        """Wait until the members of each group share all partitions."""
        for members in filter(None, self._members.values()):
            self._clients.settle(members, PARTITIONS)

    def names(self) -> list[str]:
        """All groups without members."""
        return self._simple

    def _join(self) -> str:
        group = self._draw.choice(sorted(self._members))
        if len(self._members[group]) == 3:
            return self._leave()
        self._members[group].append(self._clients.consumer(group, [TOPIC], group_protocol=self._protocols[group]))
        return "join"

    def _leave(self) -> str:
        group = self._draw.choice(sorted(self._members))
        if not self._members[group]:
            return self._commit()
        self._clients.leave(self._members[group].pop())
        return "leave"

    def _commit(self) -> str:
        """A commit of everything that the members own, or of a group without members."""
        self._clients.produce(TOPIC, PARTITIONS, PARTITIONS)
        members = self._members[self._draw.choice(sorted(self._members))]
        if not members:
            at = (TOPIC, self._draw.randrange(PARTITIONS))
            commit_offsets(self._bootstrap, self._draw.choice(self._simple), {at: self._draw.randrange(1_000)})
            return "simple commit"
        self._clients.settle(members, PARTITIONS)
        self._clients.commit_everywhere(members, self._draw.randrange(1_000))
        return "commit"

    def _reset(self) -> str:
        group, at = self._draw.choice(self._simple), TopicPartition(TOPIC, self._draw.randrange(PARTITIONS), 0)
        request = [ConsumerGroupTopicPartitions(group, [at])]
        self._clients.admin.alter_consumer_group_offsets(request)[group].result(PATIENCE_SECONDS)
        return "reset"

    def _delete(self) -> str:
        group = self._draw.choice(self._simple)
        if not committed(self._clients.admin, group):
            return self._reset()
        self._clients.admin.delete_consumer_groups([group])[group].result(PATIENCE_SECONDS)
        return "deletion"


@pytest.mark.parametrize(
    ("version", "era", "protocols", "authorizer"),
    [
        ("3.9.1", "3", {"classic": "classic"}, KRAFT_AUTHORIZER),
        ("4.3.0", "4", {"classic": "classic", "consumer": "consumer"}, KRAFT_AUTHORIZER),
        ("2.8.2", "3", {"classic": "classic"}, ZOOKEEPER_AUTHORIZER),
    ],
)
def test_both_sources_agree_for_minutes(
    version: str, era: str, protocols: dict[str, str], authorizer: str, tmp_path: Path
) -> None:
    properties = {**PROPERTIES, "authorizer.class.name": authorizer}
    with PrivateBroker(version, offsets_partitions=4, properties=properties) as broker, Clients(broker.bootstrap) as clients:
        clients.create_topics([TOPIC], PARTITIONS)
        groups = LivingGroups(broker.bootstrap, clients, protocols, SEED)
        with KafkaSource(f"kafka://{broker.bootstrap}/{TOPIC}") as source:
            names = {topic_id: (name, "cluster") for topic_id, name in source.topic_ids().items()}
        log = LiveLag(broker.bootstrap, tmp_path / "log", era=Era.named(era), names=lambda: names)
        polls = tmp_path / "polls"

        def differences() -> dict[str, list[str]]:
            groups.poll()
            log.sample()
            polled(broker.bootstrap, polls, era=era)
            return {
                table: one_sided
                for table in UNKNOWN_TO_A_POLL
                if (one_sided := difference(*(known_to_both(root, table, groups.kinds) for root in (log.root, polls))))
            }

        quiet_moments, until = 0, time.monotonic() + 60 * MINUTES
        while time.monotonic() < until:
            for number in range(EVENTS):
                is_deletion = groups.happen() == "deletion"
                # in the middle of rebalances too; a deletion is seen by two polls before the next commit, which else is a rewind
                for _ in range(2 if is_deletion else number % 3 == 0):
                    # as often as the polls: rows of a history are of the last change in a batch
                    log.sample()
                    polled(broker.bootstrap, polls, era=era)
            groups.settle()
            eventually("both sources make the same tables", differences, equal_to({}))
            quiet_moments += 1
        print(f"Kafka {version}: {quiet_moments} quiet moments, {dict(groups.events)}, {contents(polls)}")
        expect_derivable(broker.bootstrap, polls, log.root)
        for root in (log.root, polls):
            assert main(["check", "--tables", str(root)]) == 0

        refuse_the_topic(clients)
        for _ in range(EVENTS):
            groups.happen()
        groups.settle()
        polled(broker.bootstrap, polls, era=era)
        # a deletion takes a second poll
        polled(broker.bootstrap, polls, era=era)
        for name in groups.names():
            found = rows(polls, f"SELECT topic, partition, committed_offset FROM offsets WHERE group_id = '{name}'")
            answered = committed(clients.admin, name)
            assert {(row["topic"], row["partition"]): row["committed_offset"] for row in found} == answered
        close_idle_connections()


def refuse_the_topic(clients: Clients) -> None:
    """Deny Read on the topic of offsets."""
    denied = AclBinding(
        *(ResourceType.TOPIC, "__consumer_offsets", ResourcePatternType.LITERAL, "User:ANONYMOUS", "*"),
        *(AclOperation.READ, AclPermissionType.DENY),
    )
    clients.admin.create_acls([denied])[denied].result(PATIENCE_SECONDS)


def expect_derivable(bootstrap: str, polls: Path, log: str) -> None:
    """Every commit, member and removal in the histories of the polls is one that the log has."""
    written: set[tuple[Any, ...]] = set()
    with KafkaSource(f"kafka://{bootstrap}/__consumer_offsets") as source:
        for partition, end in source.end_offsets().items():
            for columns in source.read_columns(partition, 0, end):
                for record in to_log_records(columns, partition):
                    found = decode(record.key, record.value)
                    if isinstance(found, Record) and isinstance(found.key, OffsetCommitKey):
                        offset = found.value.offset if isinstance(found.value, OffsetCommitValue) else None
                        written.add((found.key.group, found.key.topic, found.key.partition, offset))
    polled_commits = rows(polls, "SELECT group_id, topic, partition, committed_offset FROM offset_history")
    assert {tuple(row.values()) for row in polled_commits} <= written
    changes = "SELECT DISTINCT group_id, change, member_id FROM group_history WHERE change IN ('member_joined', 'member_left')"
    of_polls, of_log = ({tuple(row.values()) for row in rows(root, changes)} for root in (polls, log))
    assert of_polls <= of_log


def contents(root: Path) -> dict[str, int]:
    """Rows of the histories."""
    tables = ("batches", "offset_history", "group_history", "membership_history", "ownership_history")
    return {table: rows(root, f"SELECT count(*) AS n FROM {table}")[0]["n"] for table in tables}
