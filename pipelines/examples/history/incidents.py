"""The planted incidents: what happened to which group, and when. Times are relative to the end of the history."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from pipelines.examples.history.reader import Reader
from pipelines.examples.history.shop import ALWAYS, COMMITS_BEGIN, STARTED, Shop, hosts
from pipelines.examples.history.topics import DAY, HOUR, MINUTE, SECOND, ShopTopic

# A stuck partition: its owner remains a member.
STUCK_PARTITION = 3
STUCK_AT = -3 * HOUR - 10 * MINUTE
STUCK_OWNER = "billing-1"

# A rebalance storm: the session of one member times out again and again.
STORM_AT, STORM_MS = -9 * HOUR, 20 * MINUTE
STORM_MEMBER = "search-indexer-3"
STORM_CYCLE_MS, STORM_AWAY_MS = 75 * SECOND, 30 * SECOND
#: Each cycle has two rebalances: without the member, and with it.
STORM_REBALANCES = 2 * (STORM_MS // STORM_CYCLE_MS)

# A wrong reset: the group is stopped, moved to the earliest offsets, and started again.
RESET_STOPPED_AT, RESET_AT, RESET_STARTED_AT = -26 * HOUR - 5 * MINUTE, -26 * HOUR, -26 * HOUR + 3 * MINUTE
RESET_CAUGHT_UP_AT = -16 * HOUR

# Expired offsets: the group had no members for seven days, and starts at the end of its topic.
EXPIRED_LEFT_AT = -7 * DAY - 6 * HOUR
#: The broker searches for expired offsets every ten minutes.
EXPIRED_AT = EXPIRED_LEFT_AT + 7 * DAY + 4 * MINUTE
EXPIRED_STARTED_AT, EXPIRED_ENDED_AT = -4 * HOUR, -4 * HOUR + 10 * MINUTE

# Offsets that will expire after the end of the history.
EXPIRING_LEFT_AT = -7 * DAY + 4 * HOUR
EXPIRES_AT = EXPIRING_LEFT_AT + 7 * DAY

# Lost records: both tasks of a connector fail, and retention deletes what they have not read.
LOST_STOPPED_AT = -14 * HOUR
LOST_FROM = LOST_STOPPED_AT + 12 * HOUR

# A hanging transaction: it holds back the offsets of one group, and the records of another one.
HANGING_PARTITION, HANGING_PRODUCER = 2, 7_000
HANGING_AT = -1 * HOUR - 50 * MINUTE

#: Topics that only groups with an incident read.
TOPICS = (
    ShopTopic("ledger-entries", (3.0, 2.9, 3.2), open_transactions={HANGING_PARTITION: HANGING_AT}),
    ShopTopic("stock-counts", (2.0, 2.1, 1.9), retention_ms=90 * DAY, active=((-9 * DAY, EXPIRING_LEFT_AT - 30 * MINUTE),)),
)


@dataclass(frozen=True)
class PlantedIncident:
    """A planted incident. `begins` and `ends` are relative to the end of the history; `ends` is None if it lasts."""

    name: str
    group_id: str
    topic: str | None
    partition: int | None
    begins: timedelta
    ends: timedelta | None
    cause: str

    def begins_at(self, until: datetime) -> datetime:
        """The time of the cause."""
        return until + self.begins


def _incident(
    name: str, group: str, topic: str | None, partition: int | None, begins: int, ends: int | None, cause: str
) -> PlantedIncident:
    end = None if ends is None else timedelta(milliseconds=ends)
    return PlantedIncident(name, group, topic, partition, timedelta(milliseconds=begins), end, cause)


INCIDENTS = (
    _incident(
        *("wrong_reset", "recommendations", "clicks", None, RESET_AT, RESET_CAUGHT_UP_AT),
        "an administrator reset a stopped group to the earliest offsets; it read three days again",
    ),
    _incident(
        *("records_lost", "connect-page-views-archive", "page-views", None, LOST_STOPPED_AT, None),
        "both tasks of the connector failed; 12 hours later retention began to delete unread records",
    ),
    _incident(
        *("rebalance_storm", "search-indexer", None, None, STORM_AT, STORM_AT + STORM_MS),
        f"the session of {STORM_MEMBER} timed out every 75 seconds",
    ),
    _incident(
        *("expired_offsets", "report-monthly", "invoices", None, EXPIRED_AT, EXPIRED_STARTED_AT),
        "the group had no members for seven days; it lost its offsets and started at the end of the topic",
    ),
    _incident(
        *("stuck_partition", "billing", "orders", STUCK_PARTITION, STUCK_AT, None),
        f"{STUCK_OWNER} commits its other partition and remains a member",
    ),
    _incident(
        *("hanging_transaction", "payments-ledger", "payments", HANGING_PARTITION, HANGING_AT, None),
        f"producer {HANGING_PRODUCER + HANGING_PARTITION} left a transaction open; ledger-export cannot read past it",
    ),
    _incident(
        *("expiring_offsets", "inventory-audit", "stock-counts", None, EXPIRING_LEFT_AT, None),
        "the group has had no members for almost seven days",
    ),
)


def _billing(shop: Shop) -> None:
    partitions = shop.partitions("orders")
    shop.consumer("billing", "orders", epoch=17).join(shop.at(STARTED), hosts("billing", "10.42.4", 1, 2, 3))
    reader = Reader("billing", partitions, ALWAYS, stopped={("orders", STUCK_PARTITION): STUCK_AT})
    reader.write(shop.log, shop.topics, shop.until)


def _search_indexer(shop: Shop) -> None:
    members = hosts("search-indexer", "10.42.5", 1, 2, 3)
    group = shop.classic("search-indexer", "inventory", generation=44)
    group.join(shop.at(STARTED), members)
    for begin in range(STORM_AT, STORM_AT + STORM_MS, STORM_CYCLE_MS):
        group.leave(shop.at(begin), STORM_MEMBER, sync_ms=2_800)
        group.join(shop.at(begin + STORM_AWAY_MS), {STORM_MEMBER: members[STORM_MEMBER]}, sync_ms=4_100)
    ends = STORM_AT + STORM_MS
    shop.read(
        "search-indexer",
        "inventory",
        ages=((STORM_AT, 5 * SECOND), (ends, 16 * MINUTE), (ends + 25 * MINUTE, 5 * SECOND)),
    )


def _recommendations(shop: Shop) -> None:
    members = hosts("recommendations", "10.42.10", 1, 2, 3)
    group = shop.classic("recommendations", "clicks", generation=9)
    group.join(shop.at(STARTED), members)
    group.stop(shop.at(RESET_STOPPED_AT))
    clicks = shop.topics["clicks"]
    for partition in range(len(clicks.rates)):
        offset = clicks.start(partition, RESET_AT)
        shop.log.commit("recommendations", "clicks", partition, offset, shop.at(RESET_AT), leader_epoch=-1)
    group.join(shop.at(RESET_STARTED_AT), members)
    running = ((COMMITS_BEGIN, RESET_STOPPED_AT), (RESET_STARTED_AT + 10 * SECOND, 0))
    ages = (
        *((RESET_STOPPED_AT, 6 * SECOND), (RESET_STARTED_AT, clicks.retention_ms - 4 * MINUTE)),
        *((RESET_CAUGHT_UP_AT, 6 * SECOND), (0, 6 * SECOND)),
    )
    Reader("recommendations", shop.partitions("clicks"), running, ages).write(shop.log, shop.topics, shop.until)


def _report_monthly(shop: Shop) -> None:
    last_run = EXPIRED_LEFT_AT - 20 * MINUTE
    group = shop.classic("report-monthly", "invoices", generation=22)
    group.join(shop.at(last_run), {"report-monthly": "10.42.20.9"})
    group.stop(shop.at(EXPIRED_LEFT_AT))
    for partition in range(2):
        shop.log.offset_tombstone("report-monthly", "invoices", partition, shop.at(EXPIRED_AT))
    group.remove(shop.at(EXPIRED_AT))
    group = shop.classic("report-monthly", "invoices", generation=0)
    group.join(shop.at(EXPIRED_STARTED_AT), {"report-monthly": "10.42.20.9"})
    group.stop(shop.at(EXPIRED_ENDED_AT))
    running = ((last_run, EXPIRED_LEFT_AT), (EXPIRED_STARTED_AT + 5 * SECOND, EXPIRED_ENDED_AT))
    Reader("report-monthly", shop.partitions("invoices"), running).write(shop.log, shop.topics, shop.until)


def _inventory_audit(shop: Shop) -> None:
    begin = EXPIRING_LEFT_AT - HOUR
    group = shop.classic("inventory-audit", "stock-counts", generation=2)
    group.join(shop.at(begin), {"inventory-audit": "10.42.20.12"})
    group.stop(shop.at(EXPIRING_LEFT_AT))
    running = ((begin, EXPIRING_LEFT_AT),)
    Reader("inventory-audit", shop.partitions("stock-counts"), running).write(shop.log, shop.topics, shop.until)


def _page_views_archive(shop: Shop) -> None:
    group = shop.classic("connect-page-views-archive", "page-views", generation=18)
    tasks = {f"connector-consumer-page-views-archive-{number}": f"10.42.30.{number + 1}" for number in (0, 1)}
    group.join(shop.at(STARTED), tasks)
    first, second = tasks
    group.leave(shop.at(LOST_STOPPED_AT), first)
    group.leave(shop.at(LOST_STOPPED_AT + 38 * SECOND), second)
    running = ((COMMITS_BEGIN, LOST_STOPPED_AT),)
    reader = Reader("connect-page-views-archive", shop.partitions("page-views"), running, ((0, 30 * SECOND),))
    reader.write(shop.log, shop.topics, shop.until)


def _ledger(shop: Shop) -> None:
    group = shop.classic("payments-ledger", "payments", protocol="cooperative-sticky", generation=4)
    group.join(shop.at(STARTED), hosts("payments-ledger", "10.42.12", 1, 2))
    stopped = {("payments", HANGING_PARTITION): HANGING_AT}
    reader = Reader("payments-ledger", shop.partitions("payments"), ALWAYS, stopped=stopped, producer=HANGING_PRODUCER)
    reader.write(shop.log, shop.topics, shop.until)
    offset = reader.offset(shop.topics, "payments", HANGING_PARTITION, HANGING_AT)
    producer = HANGING_PRODUCER + HANGING_PARTITION
    shop.log.commit("payments-ledger", "payments", HANGING_PARTITION, offset, shop.at(HANGING_AT), producer=producer)
    shop.classic("ledger-export", "ledger-entries").join(shop.at(STARTED), hosts("ledger-export", "10.42.15", 1))
    shop.read("ledger-export", "ledger-entries")


#: Groups with an incident.
UNHEALTHY: tuple[Callable[[Shop], None], ...] = (
    _billing,
    _search_indexer,
    _recommendations,
    _report_monthly,
    _inventory_audit,
    _page_views_archive,
    _ledger,
)
