"""A day of a shop as tables, for docs/sql.md: a log of `__consumer_offsets` and samples of end offsets, all times fixed.

The log is written record by record, and read, reduced and written into tables as a job does it, without brokers and Spark.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from coordinator_core.codec.messages.classic import MemberMetadata
from coordinator_core.codec.messages.consumer import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
)
from coordinator_core.codec.messages.modern import TargetAssignmentMemberValue, TargetAssignmentMetadataValue, TopicPartitions
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.codec.uuids import uuid_text
from coordinator_core.health import EndOffsetSample
from coordinator_core.log.entries import LogRecord
from coordinator_core.log.partitioner import partition_for
from coordinator_core.state.transaction_metadata import TransactionMetadata
from coordinator_core.state.transaction_state import COMPLETE_COMMIT, EMPTY, ONGOING, PREPARE_COMMIT, TransactionState
from pipelines.examples.history.log import Assigned, ExampleLog, member, random_id
from pipelines.examples.history.table_history import TableHistory

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000


def ms(text: str) -> int:
    """A time such as `03-02 14:00` of 2026, UTC, in ms since the epoch."""
    return int(datetime.strptime(f"2026-{text}", "%Y-%m-%d %H:%M").replace(tzinfo=UTC).timestamp()) * SECOND


FIRST, LAST = ms("03-01 12:00"), ms("03-02 14:00")
_CREATED = ms("02-20 00:00")


@dataclass(frozen=True)
class Topic:
    """A topic: records per second of each partition, and how long records are kept."""

    topic_id: UUID
    rates: tuple[float, ...]
    retention_ms: int = 7 * DAY

    def end(self, partition: int, at: int) -> int:
        return round(self.rates[partition] * (at - _CREATED) / SECOND)

    def start(self, partition: int, at: int) -> int:
        return max(0, self.end(partition, at - self.retention_ms))


TOPICS = {
    "orders": Topic(UUID(int=0x0AD3), (4, 4, 4, 30, 4, 4)),
    "payments": Topic(UUID(int=0x9A7), (2, 2, 2, 2)),
    "clicks": Topic(UUID(int=0xC11C), (20, 22, 18, 20), DAY),
    # deleted; its last records are of the first day
    "legacy": Topic(UUID(int=0x1E6), (1,)),
}
_DELETED = ("legacy",)


class Log(ExampleLog):
    """The log of the shop; records of deleted topics have no topic id."""

    def __init__(self) -> None:
        super().__init__({name: topic.topic_id for name, topic in TOPICS.items() if name not in _DELETED})

    def commits(self, group: str, topic: str, at: int, behind_ms: int = 2 * SECOND, partitions: Iterable[int] = ()) -> None:
        """Commit the ends of some time ago: of the named partitions, or of all."""
        found = TOPICS[topic]
        for partition in partitions or range(len(found.rates)):
            self.commit(group, topic, partition, found.end(partition, at - behind_ms), at)


def billing(log: Log) -> None:
    """A group of the consumer protocol: three members, one of which waits for its partitions for 40 s."""
    ids = {name: uuid_text(random_id(name, 1)) for name in ("billing-1", "billing-2", "billing-3")}
    orders = TOPICS["orders"].topic_id

    def parts(*partitions: int) -> tuple[TopicPartitions, ...]:
        return (TopicPartitions(orders, partitions),) if partitions else ()

    def join(name: str, host: str, epoch: int, at: int, targets: dict[str, tuple[int, ...]]) -> None:
        value = ConsumerGroupMemberMetadataValue(None, None, name, f"/{host}", ("orders",), classic_member_metadata=None)
        log.modern("billing", at, 5, value, ids[name])
        log.modern("billing", at, 3, ConsumerGroupMetadataValue(epoch, 1))
        for each, target in targets.items():
            log.modern("billing", at, 7, TargetAssignmentMemberValue(parts(*target)), ids[each])
        log.modern("billing", at, 6, TargetAssignmentMetadataValue(epoch))

    def own(name: str, epoch: int, at: int, *partitions: int) -> None:
        log.modern(
            "billing", at, 8, ConsumerGroupCurrentMemberAssignmentValue(epoch, epoch - 1, 0, parts(*partitions)), ids[name]
        )

    at = ms("03-01 12:05")
    join("billing-1", "10.0.4.11", 1, at, {"billing-1": (0, 1, 2, 3, 4, 5)})
    own("billing-1", 1, at, 0, 1, 2, 3, 4, 5)
    at = ms("03-02 08:20")
    join("billing-2", "10.0.4.12", 2, at, {"billing-1": (0, 1, 2), "billing-2": (3, 4, 5)})
    own("billing-1", 2, at + 900, 0, 1, 2)
    own("billing-2", 2, at + 1_400, 3, 4, 5)
    at = ms("03-02 13:10")
    join("billing-3", "10.0.4.13", 3, at, {"billing-1": (0, 1), "billing-2": (3, 4), "billing-3": (2, 5)})
    own("billing-1", 3, at + 700, 0, 1)
    own("billing-2", 3, at + 41_000, 3, 4)
    own("billing-3", 3, at + 41_800, 2, 5)


def search_index(log: Log) -> None:
    """A classic group that is deployed at 10:00: every member restarts, and every restart is a rebalance."""
    hosts = {"indexer-1": "10.0.5.21", "indexer-2": "10.0.5.22"}

    def members(**runs: int) -> list[MemberMetadata]:
        names = [f"indexer-{name[1:]}" for name in runs]
        shares: dict[str, Assigned] = {
            name: {"clicks": (0, 1) if index == 0 else (2, 3)} if len(names) == 2 else {"clicks": (0, 1, 2, 3)}
            for index, name in enumerate(names)
        }
        return [member(name, hosts[name], shares[name], run=run) for name, run in zip(names, runs.values(), strict=True)]

    log.classic("search-index", 1, ms("03-01 12:10"), members(i1=1))
    log.classic("search-index", 2, ms("03-01 12:11"), members(i1=1, i2=1))
    deploy = ms("03-02 10:00")
    log.classic("search-index", 3, deploy, members(i2=1), sync_ms=180)
    log.classic("search-index", 4, deploy + 50 * SECOND, members(i1=2, i2=1), sync_ms=2_400)
    log.classic("search-index", 5, deploy + 110 * SECOND, members(i1=2), sync_ms=160)
    log.classic("search-index", 6, deploy + 170 * SECOND, members(i1=2, i2=2), sync_ms=3_100)
    log.classic("search-index", 7, deploy + 200 * SECOND, members(i1=2, i2=2), sync_ms=90)


def payments_audit(log: Log) -> None:
    """cooperative-sticky: the second member gets its partitions in a second rebalance."""
    at = ms("03-01 12:20")
    log.classic("payments-audit", 1, at, [member("audit-1", "10.0.6.31", {"payments": (0, 1, 2, 3)})], "cooperative-sticky")
    at = ms("03-02 09:05")
    first = member("audit-1", "10.0.6.31", {"payments": (0, 1)})
    log.classic("payments-audit", 2, at, [first, member("audit-2", "10.0.6.32", {"payments": ()})], "cooperative-sticky")
    second = member("audit-2", "10.0.6.32", {"payments": (2, 3)})
    log.classic("payments-audit", 3, at + 3_200, [first, second], "cooperative-sticky")


def mirror(log: Log) -> None:
    """Static members: a restart at 11:15 causes no rebalance."""
    one = member("mirror", "10.0.7.41", {"orders": (0, 1, 2), "payments": (0, 1)}, instance="mirror-a")
    two = member("mirror", "10.0.7.42", {"orders": (3, 4, 5), "payments": (2, 3)}, instance="mirror-b")
    log.classic("mirror", 1, ms("03-01 12:30"), [one, two])
    again = member("mirror", "10.0.7.43", {"orders": (3, 4, 5), "payments": (2, 3)}, instance="mirror-b", run=2)
    log.classic("mirror", 1, ms("03-02 11:15"), [one, again])


def fraud(log: Log) -> None:
    """A group with a member whose pattern matches no topic, and which commits nothing after 11:30."""
    names = ("fraud-1", "fraud-2", "fraud-3", "fraud-4", "fraud-5")
    shares: list[Assigned] = [*({"payments": (index,)} for index in range(4)), {}]
    members = [member(name, f"10.0.8.5{index}", shares[index]) for index, name in enumerate(names)]
    log.classic("fraud", 1, ms("03-01 12:40"), members)


def idle_groups(log: Log) -> None:
    """Groups without members: one that ran in the night and was reset, one about to expire, and one of a deleted topic."""
    reader = member("report", "10.0.9.61", {"clicks": (0, 1, 2, 3)})
    log.classic("nightly-report", 1, ms("03-02 02:00"), [reader])
    log.commits("nightly-report", "clicks", ms("03-02 02:38"))
    log.classic("nightly-report", 2, ms("03-02 02:40"), sync_ms=0)
    reset = ms("03-02 09:30")
    for partition in range(4):
        offset = TOPICS["clicks"].end(partition, ms("03-02 00:00"))
        log.commit("nightly-report", "clicks", partition, offset, reset, leader_epoch=-1)
    log.classic("old-import", 1, ms("02-23 21:00"), [member("import", "10.0.9.62", {"clicks": (0, 1, 2, 3)})])
    log.commits("old-import", "clicks", ms("02-23 21:55"))
    log.classic("old-import", 2, ms("02-23 22:00"), sync_ms=0)
    log.classic("legacy-sync", 1, ms("03-01 12:45"), [member("legacy", "10.0.9.63", {"legacy": (0,)})])
    log.commits("legacy-sync", "legacy", ms("03-01 12:50"))
    log.classic("tmp-debug", 1, ms("03-02 09:00"), [member("kcat", "10.0.1.7", {"orders": (0, 1, 2, 3, 4, 5)})])
    log.classic("tmp-debug", 2, ms("03-02 09:12"), sync_ms=0)
    log.group_tombstone("tmp-debug", ms("03-02 09:20"))


def ledger(log: Log) -> None:
    """A group that commits in transactions; one of them has been open since 07:10."""
    log.classic("ledger", 1, ms("03-01 12:55"), [member("ledger", "10.0.6.71", {"payments": (0, 1, 2, 3)})])
    log.commits("ledger", "payments", ms("03-02 07:00"))
    for partition in range(4):
        at = ms("03-02 07:10")
        log.commit("ledger", "payments", partition, TOPICS["payments"].end(partition, at), at, producer=7001)


def transactions() -> list[TransactionMetadata]:
    """The ids of two producers. The first began its open transaction at 07:10, with a timeout of 15 minutes."""
    offsets = TopicPartition("__consumer_offsets", partition_for("ledger", 50))
    first, second = ms("03-01 12:54"), ms("03-01 13:00")
    opened = ms("03-02 07:10")
    ends = [second + hour * HOUR for hour in range(25)]

    def at(name: str, producer: int, state: TransactionState, time: int, start: int, *partitions: TopicPartition) -> Any:
        return TransactionMetadata(name, producer, 0, 15 * MINUTE, state, frozenset(partitions), start, time)

    found = [at("ledger-writer", 7001, EMPTY, first, -1), at("invoices-1", 7002, EMPTY, second, -1)]
    for end in ends:
        started, invoices = end - SECOND, TopicPartition("invoices", 0)
        found.append(at("invoices-1", 7002, ONGOING, started, started, invoices))
        found.append(at("invoices-1", 7002, PREPARE_COMMIT, end, started, invoices))
        found.append(at("invoices-1", 7002, COMPLETE_COMMIT, end + 20, started))
    found.append(at("ledger-writer", 7001, ONGOING, opened, opened, offsets, TopicPartition("ledger-entries", 2)))
    return sorted(found, key=lambda metadata: metadata.last_update_ms)


def positions(log: Log) -> None:
    """Commits of the running groups, every five minutes."""
    for at in range(FIRST + 55 * MINUTE + 30 * SECOND, LAST, 5 * MINUTE):
        slow = ms("03-02 12:30")
        log.commits("billing", "orders", at, partitions=(0, 1, 2, 4, 5))
        log.commits("billing", "orders", at, 2 * SECOND + max(0, at - slow) * 2 // 5, partitions=(3,))
        log.commits("search-index", "clicks", at, 5 * SECOND)
        log.commits("payments-audit", "payments", at)
        log.commits("mirror", "orders", at)
        log.commits("mirror", "payments", at)
        if at < ms("03-02 11:30"):
            log.commits("fraud", "payments", at)
        rewound = DAY // 4 if at > ms("03-02 13:05") else 0
        log.commits("price-check", "payments", at, rewound + 10 * SECOND, partitions=(1,))


def whole_log() -> dict[int, list[LogRecord]]:
    """All records by log partition."""
    log = Log()
    for write in (billing, search_index, payments_audit, mirror, fraud, idle_groups, ledger, positions):
        write(log)
    log.append("search-index", ms("03-02 13:20"), b"\x00\x63\x00\x05debug", b"hello")
    return log.in_order()


def batch_ends() -> list[int]:
    """Ends of the batches: every two hours, then every 30 minutes, in the last half an hour every 5 minutes."""
    morning, noon = ms("03-02 08:00"), ms("03-02 13:30")
    return [*range(FIRST + HOUR, morning, 2 * HOUR), *range(morning, noon, 30 * MINUTE), *range(noon, LAST + 1, 5 * MINUTE)]


def write_tables(root: str) -> None:
    """Write the tables under `root`: a batch with the records until each of `batch_ends`, and a sample after it."""
    history = TableHistory(root, whole_log(), samples, FIRST, transactions=transactions())
    for end in batch_ends():
        history.advance(end)


def samples(topic: str, partitions: Iterable[int], at: int) -> Iterable[EndOffsetSample]:
    """The answers of the broker."""
    found = TOPICS[topic]
    for partition in partitions:
        times = (topic, partition, at, at + 12)
        if topic in _DELETED:
            yield EndOffsetSample(None, *times, None, None, reason="unknown_topic_or_partition")
        else:
            ends = (found.start(partition, at), found.end(partition, at))
            yield EndOffsetSample(uuid_text(found.topic_id), *times, *ends, ends[1], 7)
