"""A shop: its topics, and the groups that work as they should, with deployments and failures as every shop has them."""

from collections.abc import Callable
from dataclasses import dataclass

from pipelines.examples.history.classic_group import ExampleClassicGroup
from pipelines.examples.history.consumer_group import ExampleConsumerGroup
from pipelines.examples.history.log import ExampleLog
from pipelines.examples.history.reader import Ages, Reader
from pipelines.examples.history.topics import DAY, HOUR, MINUTE, SECOND, ShopTopic, ShopTopics

#: Start of the history relative to its end.
BEGIN = -2 * DAY
#: Start of the tables: by the start of the history, the ages of positions are known.
TABLES_BEGIN = BEGIN - HOUR
#: Start of the commits of running groups.
COMMITS_BEGIN = TABLES_BEGIN - 20 * MINUTE
ALWAYS = ((COMMITS_BEGIN, 0),)
#: Start of groups before the history.
STARTED = -9 * DAY

_NIGHTS = tuple(-12 * HOUR - night * DAY for night in range(7))
_EXPORT_MS, _NIGHTLY_RUN_MS = 30 * MINUTE, 45 * MINUTE

TOPICS = (
    ShopTopic("orders", (4.1, 3.9, 4.0, 4.3, 3.8, 4.0)),
    ShopTopic("payments", (3.0, 2.9, 3.2, 3.1)),
    ShopTopic("clicks", (25, 24, 27, 26, 25, 23), retention_ms=3 * DAY),
    ShopTopic("page-views", (41, 39, 42, 40), retention_ms=12 * HOUR),
    ShopTopic("inventory", (5.2, 4.8, 5.0, 5.1, 4.9, 5.0)),
    ShopTopic("shipments", (1.2, 1.1, 1.3)),
    ShopTopic("emails", (2.1, 1.9)),
    ShopTopic("invoices", (0.31, 0.29), retention_ms=38 * DAY),
    ShopTopic("sales-facts", (60, 60, 60), active=tuple((night, night + _EXPORT_MS) for night in reversed(_NIGHTS))),
)


@dataclass(frozen=True)
class Shop:
    """The log and the topics of the shop, up to `until` (ms since the epoch)."""

    log: ExampleLog
    topics: ShopTopics
    until: int

    def at(self, relative: int) -> int:
        """A time relative to `until`, in ms since the epoch."""
        return self.until + relative

    def partitions(self, *topics: str) -> dict[str, int]:
        """Number of partitions by topic."""
        return {name: len(self.topics[name].rates) for name in topics}

    def classic(self, name: str, *topics: str, protocol: str = "range", generation: int = 3) -> ExampleClassicGroup:
        """A classic group of consumers."""
        return ExampleClassicGroup(self.log, name, self.partitions(*topics), protocol, generation=generation)

    def consumer(self, name: str, *topics: str, epoch: int = 3) -> ExampleConsumerGroup:
        """A group of the consumer protocol."""
        return ExampleConsumerGroup(self.log, name, self.partitions(*topics), epoch)

    def read(self, group: str, *topics: str, ages: Ages = ((0, 3 * SECOND),)) -> None:
        """Commits of a group that runs all the time."""
        Reader(group, self.partitions(*topics), ALWAYS, ages).write(self.log, self.topics, self.until)


def hosts(prefix: str, network: str, *numbers: int) -> dict[str, str]:
    """Hosts of members that have a name and a number."""
    return {f"{prefix}-{number}": f"{network}.{10 + number}" for number in numbers}


def _notifications(shop: Shop) -> None:
    """Deployed twice: each member restarts, one after the other."""
    members = hosts("notifications", "10.42.6", 1, 2, 3)
    group = shop.classic("notifications", "orders", "shipments", protocol="cooperative-sticky", generation=21)
    group.join(shop.at(STARTED), members)
    for deployed in (-33 * HOUR, -5 * HOUR):
        for number, (name, host) in enumerate(members.items()):
            group.restart(shop.at(deployed + number * 12 * MINUTE), name, host)
    shop.read("notifications", "orders", "shipments")


def _fraud_detection(shop: Shop) -> None:
    """Scaled out from two members to three."""
    group = shop.classic("fraud-detection", "payments", protocol="cooperative-sticky", generation=8)
    group.join(shop.at(STARTED), hosts("fraud-detection", "10.42.8", 1, 2))
    group.join(shop.at(-20 * HOUR), hosts("fraud-detection", "10.42.8", 3), sync_ms=1_100)
    shop.read("fraud-detection", "payments", ages=((0, 2 * SECOND),))


def _shipping_labels(shop: Shop) -> None:
    """A member crashes and starts again."""
    crash = -22 * HOUR
    members = hosts("shipping-labels", "10.42.11", 1, 2)
    group = shop.classic("shipping-labels", "shipments", generation=14)
    group.join(shop.at(STARTED), members)
    group.restart(shop.at(crash), "shipping-labels-2", members["shipping-labels-2"], down_ms=95_000)
    shop.read(
        "shipping-labels", "shipments", ages=((-22 * HOUR, 4 * SECOND), (-22 * HOUR + 90_000, 70 * SECOND), (-78_800_000, 0))
    )


def _warehouse_sync(shop: Shop) -> None:
    """Static members: the restart of one of them causes no rebalance."""
    group = shop.classic("warehouse-sync", "inventory", "orders", generation=5)
    group.join(shop.at(STARTED), hosts("warehouse-sync", "10.42.7", 0, 1), instances=True)
    group.replace(shop.at(-11 * HOUR), "warehouse-sync-1", "10.42.7.42")
    shop.read("warehouse-sync", "inventory", "orders", ages=((0, 20 * SECOND),))


def _clickstream_sessions(shop: Shop) -> None:
    """An application of Kafka Streams."""
    group = shop.classic("clickstream-sessions", "clicks", protocol="stream", generation=30)
    threads = {f"clickstream-sessions-StreamThread-{number}-consumer": f"10.42.9.{20 + number}" for number in (1, 2, 3)}
    group.join(shop.at(STARTED), threads)
    shop.read("clickstream-sessions", "clicks", ages=((0, 12 * SECOND),))


def _loyalty_points(shop: Shop) -> None:
    """The consumer protocol, deployed once."""
    members = hosts("loyalty-points", "10.42.13", 1, 2)
    group = shop.consumer("loyalty-points", "orders", epoch=11)
    group.join(shop.at(STARTED), members)
    for number, (name, host) in enumerate(members.items()):
        group.restart(shop.at(-18 * HOUR + number * 2 * MINUTE), name, host)
    shop.read("loyalty-points", "orders")


def _email_sender(shop: Shop) -> None:
    """The consumer protocol with one member; slower at the peak of each day."""
    shop.consumer("email-sender", "emails").join(shop.at(STARTED), hosts("email-sender", "10.42.14", 1))
    peaks = [(-26 * HOUR, 190 * SECOND), (-2 * HOUR, 170 * SECOND)]
    ages = [point for at, age in peaks for point in ((at - 3 * HOUR, 5 * SECOND), (at, age), (at + 90 * MINUTE, 5 * SECOND))]
    shop.read("email-sender", "emails", ages=ages)


def _analytics_nightly(shop: Shop) -> None:
    """A job that reads the export of every night and ends."""
    group = shop.classic("analytics-nightly", "sales-facts", generation=412)
    runs = [(night + 5 * MINUTE, night + _NIGHTLY_RUN_MS) for night in sorted(_NIGHTS)[-3:]]
    for begin, end in runs:
        group.join(shop.at(begin), {"spark-analytics-nightly": "10.42.20.7"})
        group.stop(shop.at(end))
    reader = Reader("analytics-nightly", shop.partitions("sales-facts"), runs, ((0, 5 * MINUTE),))
    reader.write(shop.log, shop.topics, shop.until)


def _price_checker(shop: Shop) -> None:
    """Consumers that assign partitions themselves: a simple group, without members."""
    shop.read("price-checker", "emails", ages=((0, 9 * SECOND),))


def _console_consumer(shop: Shop) -> None:
    """A developer reads a topic for ten minutes."""
    group = shop.classic("console-consumer-48213", "orders", generation=0)
    group.join(shop.at(-30 * HOUR), {"console-consumer": "10.42.1.77"})
    group.stop(shop.at(-30 * HOUR + 10 * MINUTE))
    group.remove(shop.at(-30 * HOUR + 16 * MINUTE))


#: Groups without an incident.
HEALTHY: tuple[Callable[[Shop], None], ...] = (
    _notifications,
    _fraud_detection,
    _shipping_labels,
    _warehouse_sync,
    _clickstream_sessions,
    _loyalty_points,
    _email_sender,
    _analytics_nightly,
    _price_checker,
    _console_consumer,
)
