"""Scenario of `grouplake demo --broker`: real consumer groups of several kinds, each with its own history."""

from collections.abc import Callable
from dataclasses import dataclass

from confluent_kafka import KafkaException

from pipelines.examples.private.kafka.clients import Clients
from pipelines.examples.private.kafka.distribution import PrivateKafkaError, version_tuple
from pipelines.runtime.progress import Progress

PARTITIONS = 4
_TOPICS = ("orders", "payments", "clicks")
_WITH_TRANSACTIONS = (0, 11)
#: First version in which KIP-848 groups are enabled by default.
_WITH_CONSUMER_PROTOCOL = (4, 0)


@dataclass(frozen=True, slots=True)
class GroupScenario:
    """One group and its actions. `title` is the progress line, `since` the first broker version that supports it."""

    group: str
    title: str
    play: Callable[[Clients], None]
    since: tuple[int, ...] = ()


def steps(version: str) -> tuple[GroupScenario, ...]:
    """The steps that a broker of `version` can play."""
    return tuple(step for step in _STEPS if version_tuple(version) >= step.since)


def play(clients: Clients, version: str, progress: Progress | None = None) -> tuple[str, ...]:
    """Create the topics, then run every step. Returns the names of the groups.

    The members remain in their groups until `clients` is closed. Raises PrivateKafkaError if the broker rejects a request.
    """
    report = progress or (lambda _: None)
    report(f"topics {', '.join(_TOPICS)}: {PARTITIONS} partitions and 1,000 records each")
    clients.create_topics(_TOPICS, PARTITIONS)
    for topic in _TOPICS:
        clients.produce(topic, PARTITIONS, 1000)
    played = steps(version)
    for step in played:
        report(f"{step.group}: {step.title}")
        try:
            step.play(clients)
        except KafkaException as error:
            raise PrivateKafkaError(f"{step.group} ({step.title}): {error}") from error
    return tuple(dict.fromkeys(step.group for step in played))


def _everywhere(topic: str, offset: int) -> list[tuple[str, int, int]]:
    return [(topic, partition, offset + partition) for partition in range(PARTITIONS)]


def _rebalance(clients: Clients) -> None:
    first = clients.consumer("billing", ("orders", "payments"), client_id="billing-1")
    clients.settle([first], 2 * PARTITIONS)
    clients.commit_everywhere([first], 10)
    second = clients.consumer("billing", ("orders", "payments"), client_id="billing-2")
    clients.settle([first, second], 2 * PARTITIONS)
    for offset in (20, 30, 40):
        clients.commit_everywhere([first, second], offset)


def _drained(clients: Clients) -> None:
    member = clients.consumer("nightly-report", ("clicks",), client_id="report")
    clients.settle([member], PARTITIONS)
    clients.commit(member, _everywhere("clicks", 240), "checkpoint é✓")
    clients.leave(member)


def _rewound(clients: Clients) -> None:
    member = clients.consumer("fraud-check")
    for offset in (900, 950, 20):
        clients.commit(member, [("orders", 0, offset)])
    clients.leave(member)


def _simple(clients: Clients) -> None:
    member = clients.consumer("backfill-tool")
    clients.commit(member, [("payments", 0, 7), ("payments", 1, 8)], "assigned by hand")
    clients.leave(member)


def _transactions(clients: Clients) -> None:
    member = clients.consumer("ledger", ("payments",), client_id="ledger")
    clients.settle([member], PARTITIONS)
    producer = clients.transaction("ledger-writer")
    clients.send_offsets(producer, member, _everywhere("payments", 100))
    producer.commit_transaction(30)
    clients.send_offsets(producer, member, _everywhere("payments", 500))
    producer.abort_transaction(30)
    clients.send_offsets(producer, member, _everywhere("payments", 200))


def _consumer_protocol(clients: Clients) -> None:
    members = [clients.consumer("search-index", ("orders",), group_protocol="consumer", client_id=f"index-{n}") for n in (1, 2)]
    clients.settle(members, PARTITIONS)
    clients.commit_everywhere(members, 66)


_STEPS = (
    GroupScenario("billing", "one member, then a second one: a rebalance; both commit", _rebalance),
    GroupScenario("nightly-report", "commits with metadata, then its only member leaves", _drained),
    GroupScenario("fraud-check", "commits 900, 950 and then 20: a rewind", _rewound),
    GroupScenario("backfill-tool", "commits without joining: a simple group", _simple),
    GroupScenario(
        "ledger", "offsets in transactions: one committed, one aborted, one still open", _transactions, _WITH_TRANSACTIONS
    ),
    GroupScenario("search-index", "two members of the consumer protocol (KIP-848)", _consumer_protocol, _WITH_CONSUMER_PROTOCOL),
)
