"""Two days of a shop as tables, with planted incidents and the alerts about them."""

from collections.abc import Iterable
from datetime import datetime

from coordinator_core.health import EndOffsetSample
from pipelines.errors import UsageError
from pipelines.example_history import incidents, shop
from pipelines.example_history.alert_history import alert_history
from pipelines.example_history.log import ExampleLog
from pipelines.example_history.shop import BEGIN, Shop
from pipelines.example_history.table_history import TableHistory
from pipelines.example_history.topics import HOUR, MINUTE, SECOND, ShopTopics
from pipelines.progress import Progress
from pipelines.tables.store import TableStore
from pipelines.timestamps import to_ms

#: `offsets.topic.num.partitions` of the shop's broker.
_LOG_PARTITIONS = 8
#: Distance of the two samples of a step: the default of `lag.interval_seconds`.
_SAMPLE_INTERVAL_MS = 30 * SECOND
_BATCH_MS = 90

#: (start, end, distance) of the steps.
_STEPS = (
    (BEGIN, -24 * HOUR, 20 * MINUTE),
    (-24 * HOUR, -30 * MINUTE, 10 * MINUTE),
    (incidents.RESET_STOPPED_AT - 5 * MINUTE, incidents.RESET_STARTED_AT + 10 * MINUTE, 2 * MINUTE),
    (incidents.LOST_STOPPED_AT - 4 * MINUTE, incidents.LOST_STOPPED_AT + 6 * MINUTE, 2 * MINUTE),
    (incidents.STORM_AT - 10 * MINUTE, incidents.STORM_AT + incidents.STORM_MS + 30 * MINUTE, 2 * MINUTE),
    (incidents.EXPIRED_STARTED_AT, incidents.EXPIRED_ENDED_AT + MINUTE, 2 * MINUTE),
    (incidents.STUCK_AT - 20 * MINUTE, incidents.STUCK_AT + 20 * MINUTE, 2 * MINUTE),
    (incidents.HANGING_AT - 10 * MINUTE, incidents.HANGING_AT + 20 * MINUTE, 2 * MINUTE),
    (-30 * MINUTE, 0, MINUTE),
)
_PROGRESS_EVERY_MS = 6 * HOUR


def steps() -> list[int]:
    """Ends of the batches relative to the end of the history; each is followed by a sample."""
    return sorted({at for begin, end, distance in _STEPS for at in range(begin, end, distance)} | {-SECOND})


def write_history(root: str, until: datetime, progress: Progress = lambda _line: None) -> None:
    """Write the tables of the two days before `until` under `root`, a new or empty folder.

    Raises:
        UsageError: there are tables already, or the folder cannot be written.
    """
    if TableStore(root).has("batches"):
        raise UsageError(f"cannot write the example history to {root}: the folder has tables; name a new or empty one")
    until_ms = to_ms(until)
    topics = ShopTopics((*shop.TOPICS, *incidents.TOPICS), until_ms)
    log = ExampleLog(topics.ids(), _LOG_PARTITIONS)
    for write in (*shop.HEALTHY, *incidents.UNHEALTHY):
        write(Shop(log, topics, until_ms))

    def samples(topic: str, partitions: Iterable[int], at: int) -> Iterable[EndOffsetSample]:
        """Two samples of each partition: a job takes more than one within a step, and `maintain` thins them."""
        for partition in partitions:
            yield from topics.samples(topic, [partition], at - _SAMPLE_INTERVAL_MS)
            yield from topics.samples(topic, [partition], at)

    history = TableHistory(root, log.in_order(), samples, until_ms + BEGIN, batch_ms=_BATCH_MS)
    every = steps()
    reported = BEGIN
    with alert_history(root) as evaluate:
        for at in every:
            history.advance(until_ms + at)
            evaluate(history.now_ms)
            if at - reported >= _PROGRESS_EVERY_MS:
                reported += _PROGRESS_EVERY_MS
                progress(f"{(at - BEGIN) // HOUR} of 48 hours written")
