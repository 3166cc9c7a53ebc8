"""One broker read by both sources for minutes: rebalances, commits, resets and deletions, compared at quiet moments.

POLL_SOAK_MINUTES is the length for each release, POLL_SOAK_SEED that of the events.
"""

import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType
from eventually import eventually
from group_offsets import committed
from living_groups import LivingGroups
from patience import PATIENCE_SECONDS
from poll_comparison import rows
from polled_beside_log import PolledBesideLog

from coordinator_core.log.errors import NotAuthorized
from coordinator_core.sources.kafka import KafkaSource
from coordinator_core.sources.kafka_connection import close_idle_connections
from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.examples.private.kafka.clients import Clients

MINUTES = float(os.environ.get("POLL_SOAK_MINUTES", "3"))
SEED = int(os.environ.get("POLL_SOAK_SEED", "20261128"))

pytestmark = [pytest.mark.broker, pytest.mark.slow, pytest.mark.timeout(1_200 + 60 * MINUTES)]

TOPIC, PARTITIONS, OFFSETS = "orders", 6, "__consumer_offsets"
#: Events between two quiet moments.
EVENTS = 12
# up to 2.0 offsets expire by the time of their commits, which polls do not know
PROPERTIES = {"offsets.retention.minutes": "100000"}


@dataclass(frozen=True)
class Release:
    """A release of brokers, what it can do, and its authorizer if clients can change its rules."""

    version: str
    era: str
    can: Mapping[str, bool]
    authorizer: str = ""
    has_consumer_groups: bool = False


SIMPLE_AUTHORIZER = "kafka.security.auth.SimpleAclAuthorizer"
ZOOKEEPER_AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"
KRAFT_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
OLD: dict[str, Any] = {"with_transactions": True}
NEW: dict[str, Any] = {**OLD, "with_share_group": True, "with_streams_group": True}
RELEASES = (
    Release("0.10.2.2", "0.10", {"with_deletions": False}),
    Release("1.1.1", "1", OLD, SIMPLE_AUTHORIZER),
    Release("2.8.2", "3", OLD, ZOOKEEPER_AUTHORIZER),
    Release("3.9.1", "3", OLD, KRAFT_AUTHORIZER),
    Release("4.3.0", "4", NEW, KRAFT_AUTHORIZER, has_consumer_groups=True),
)


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.version)
def test_both_sources_agree_for_minutes(release: Release, tmp_path: Path) -> None:
    rules = {"authorizer.class.name": release.authorizer, "allow.everyone.if.no.acl.found": "true"} if release.authorizer else {}
    protocols = {"classic": "classic"} | ({"consumer": "consumer"} if release.has_consumer_groups else {})
    with ExitStack() as stack:
        broker = stack.enter_context(PrivateBroker(release.version, offsets_partitions=4, properties=PROPERTIES | rules))
        clients = stack.enter_context(Clients(broker.bootstrap))
        stack.callback(close_idle_connections)
        clients.create_topics([TOPIC], PARTITIONS)
        topic = (TOPIC, PARTITIONS)
        groups = stack.enter_context(LivingGroups(broker.bootstrap, clients, topic, protocols, SEED, **release.can))
        both = PolledBesideLog(broker.bootstrap, TOPIC, tmp_path, groups, era=release.era)
        quiet_moments = both.agree_for(MINUTES, EVENTS)
        print(
            f"Kafka {release.version}: {quiet_moments} quiet moments, {both.count} polls, {dict(groups.events)}, "
            f"{both.contents()}"
        )
        assert (both.incomplete, both.unanswered) == (0, 0)
        both.expect_true_histories()
        if release.authorizer:
            refuse_the_topic(broker.bootstrap, clients)
            for _ in range(EVENTS):
                groups.happen()
            groups.settle()
            # a deletion takes a second poll
            for _ in range(2):
                both.poll()
            for name in groups.simple:
                found = rows(both.polls, f"SELECT topic, partition, committed_offset FROM offsets WHERE group_id = '{name}'")
                answered = committed(clients.admin, name)
                assert {(row["topic"], row["partition"]): row["committed_offset"] for row in found} == answered


def refuse_the_topic(bootstrap: str, clients: Clients) -> None:
    """Deny Read on the topic of offsets, and wait until the broker refuses it."""
    denied = AclBinding(
        *(ResourceType.TOPIC, OFFSETS, ResourcePatternType.LITERAL, "User:ANONYMOUS", "*"),
        *(AclOperation.READ, AclPermissionType.DENY),
    )
    clients.admin.create_acls([denied])[denied].result(PATIENCE_SECONDS)

    def is_refused() -> bool:
        try:
            with KafkaSource(f"kafka://{bootstrap}/{OFFSETS}") as log:
                for partition, end in log.end_offsets().items():
                    list(log.read_columns(partition, 0, end))
        except NotAuthorized:
            return True
        return False

    eventually("the broker refuses the topic", is_refused)
