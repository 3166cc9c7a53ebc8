"""Two days of a shop as tables, with planted incidents and the alerts about them."""

from datetime import datetime
from pathlib import Path

from pipelines.examples.history import incidents, shop
from pipelines.examples.history.alert_history import alert_history
from pipelines.examples.history.log import ExampleLog
from pipelines.examples.history.shop import BEGIN, TABLES_BEGIN, Shop
from pipelines.examples.history.table_history import TableHistory
from pipelines.examples.history.topics import HOUR, MINUTE, SECOND, ShopTopics
from pipelines.runtime.errors import UsageError
from pipelines.runtime.progress import Progress
from pipelines.runtime.timestamps import to_ms

#: `offsets.topic.num.partitions` of the shop's broker.
_LOG_PARTITIONS = 4
_BATCH_MS = 90

#: (start, end, distance) of the steps.
_STEPS = (
    (TABLES_BEGIN, -24 * HOUR, 90 * MINUTE),
    (-24 * HOUR, 0, 40 * MINUTE),
    (incidents.RESET_STOPPED_AT - 4 * MINUTE, incidents.RESET_STARTED_AT + 10 * MINUTE, 3 * MINUTE),
    (incidents.LOST_STOPPED_AT - 3 * MINUTE, incidents.LOST_STOPPED_AT + 6 * MINUTE, 3 * MINUTE),
    (incidents.STORM_AT - 5 * MINUTE, incidents.STORM_AT + incidents.STORM_MS + 25 * MINUTE, 5 * MINUTE),
    (incidents.EXPIRED_STARTED_AT, incidents.EXPIRED_ENDED_AT + 5 * MINUTE, 5 * MINUTE),
    # a window of ten commits, one for each batch, and the time after which it is older than itself
    (incidents.STUCK_AT - 20 * MINUTE, incidents.STUCK_AT, 2 * MINUTE),
    (incidents.STUCK_AT, incidents.STUCK_AT + 35 * MINUTE, 5 * MINUTE),
    (incidents.HANGING_AT - 5 * MINUTE, incidents.HANGING_AT + 25 * MINUTE, 5 * MINUTE),
    # between the last incidents; a time four times as long as those around it is a hole in a chart
    (-5 * HOUR, 0, 20 * MINUTE),
    (-20 * MINUTE, 0, 5 * MINUTE),
)
#: Minutes of steps on the way to dense ones and back: beside distances of some minutes one of an hour is a hole in a chart.
_BETWEEN = (-1640, -1615, -1580, -1540, -1525, -1470, -860, -820, -580, -460)
#: Shortest time between two evaluations of the alerts.
_ALERTS_EVERY_MS = 4 * MINUTE
_PROGRESS_EVERY_MS = 6 * HOUR


def steps() -> list[int]:
    """Ends of the batches relative to the end of the history; each is followed by a sample.

    All are a second before a full minute, so that a window of minutes has one commit of each of them.
    """
    regular = (at for begin, end, distance in _STEPS for at in range(begin, end, distance))
    return sorted({at - SECOND for at in (*regular, *(minute * MINUTE for minute in _BETWEEN), 0)})


def write_history(root: str, until: datetime, progress: Progress = lambda _line: None) -> None:
    """Write the tables of the two days before `until` under `root`, a new or empty folder.

    Raises:
        UsageError: the folder is not empty, or cannot be written.
    """
    _expect_empty(Path(root))
    until_ms = to_ms(until)
    topics = ShopTopics((*shop.TOPICS, *incidents.TOPICS), until_ms)
    log = ExampleLog(topics.ids(), _LOG_PARTITIONS)
    for write in (*shop.HEALTHY, *incidents.UNHEALTHY):
        write(Shop(log, topics, until_ms))

    history = TableHistory(root, log.in_order(), topics.samples, until_ms + TABLES_BEGIN, batch_ms=_BATCH_MS)
    progress("writing 48 hours of a shop")
    evaluated = reported = BEGIN
    with alert_history(root) as evaluate:
        for at in steps():
            history.advance(until_ms + at)
            if at - evaluated >= _ALERTS_EVERY_MS or at == -SECOND:
                evaluate(history.now_ms)
                evaluated = at
            if at - reported >= _PROGRESS_EVERY_MS:
                reported += _PROGRESS_EVERY_MS
                progress(f"{(reported - BEGIN) // HOUR} of 48 hours written")


def _expect_empty(folder: Path) -> None:
    try:
        if folder.exists() and any(folder.iterdir()):
            raise UsageError(f"cannot write the example history to {folder}: the folder is not empty; name a new or empty one")
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write the example history to {folder}: {error.strerror or error}") from error
