"""The shop of `grouplake example --history` as its coordinators answer polls: tables of some groups that no log was read for."""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime

import pyarrow as pa
from created_tables import created_tables
from polled_states import polled_group
from shop_history import UNTIL

from coordinator_core.codec import decode
from coordinator_core.group_polls.group_poll import GroupPoll
from coordinator_core.group_polls.poll_fold import PollFold
from coordinator_core.health import samples_table
from coordinator_core.log.entries import LogRecord
from coordinator_core.log.partitioner import partition_for
from coordinator_core.state.era import Era
from coordinator_core.state.group_state import GroupState
from pipelines.batch.apply import BatchApplier
from pipelines.examples.history import incidents, shop
from pipelines.examples.history.log import ExampleLog
from pipelines.examples.history.shop import Shop
from pipelines.examples.history.topics import SECOND, ShopTopics
from pipelines.lag.sampling.sampling import LagSampling
from pipelines.runtime.timestamps import to_ms
from pipelines.source.polled_rows import polled_rows

ERA = Era.named("4")
EVERY_MS = 30 * SECOND
#: Times of an answer to a poll, and of a sample, after the request.
_ANSWERED_AFTER_MS, _SAMPLE_AFTER_MS = 20, 1_000


class PolledShop:
    """A job under `root` that polls groups of the shop every 30 s. Times are in ms relative to the end of the history."""

    def __init__(self, root: str, groups: Collection[str]) -> None:
        self._until_ms = to_ms(UNTIL)
        self._topics = ShopTopics((*shop.TOPICS, *incidents.TOPICS), self._until_ms)
        self._names = {topic_id: name for name, topic_id in self._topics.ids().items()}
        self._groups = sorted(groups)
        self._records = _records_of(self._groups, self._topics, self._until_ms)
        self._state, self._fold = GroupState(ERA, self._until_ms), PollFold(ERA)
        self._now_ms = self._next_record = self._next_offset = 0
        self._applier = BatchApplier(
            *(created_tables(root), ERA, ERA.default_retention_ms, dict),
            bulk_rows=1_000_000,
            clock=self.clock,
            interval_seconds=EVERY_MS // SECOND,
        )
        self._sampling = LagSampling(self._answers, self.clock)

    def clock(self) -> datetime:
        """The time of the job."""
        return datetime.fromtimestamp(self._now_ms / 1000, UTC)

    def poll_during(self, begin: int, end: int) -> None:
        """Poll from one time to another, with a sample after each poll."""
        for at in range(begin, end + 1, EVERY_MS):
            self._poll(self._until_ms + at)

    def _poll(self, at_ms: int) -> None:
        self._now_ms = at_ms
        while self._next_record < len(self._records) and self._records[self._next_record].timestamp < at_ms:
            record = self._records[self._next_record]
            self._state.apply(record, decode(record.key, record.value))
            self._next_record += 1
        polled = self._fold.apply(self._answered(at_ms), self._next_offset)
        self._next_offset = polled.next_offset
        self._applier.begin()
        self._applier.apply_rows(polled_rows(polled, ERA, ERA.default_retention_ms))
        self._now_ms += _SAMPLE_AFTER_MS
        self._sampling.sample(self._applier.claim())

    def _answered(self, at_ms: int) -> GroupPoll:
        answers = {group: polled_group(self._state, group, self._fold) for group in self._groups}
        return GroupPoll(at_ms, at_ms + _ANSWERED_AFTER_MS, answers, topic_names=self._names)

    def _answers(self, wanted: Mapping[str, set[int]]) -> pa.Table:
        at = self._now_ms - self._until_ms
        return samples_table(
            self._topics[topic].sample(number, at, self._until_ms)
            for topic, numbers in sorted(wanted.items())
            for number in sorted(numbers)
        )


def _records_of(groups: Collection[str], topics: ShopTopics, until_ms: int) -> list[LogRecord]:
    """The records of groups with an incident, in the order of their times."""
    log = ExampleLog(topics.ids())
    for write in incidents.UNHEALTHY:
        write(Shop(log, topics, until_ms))
    wanted = {partition_for(group, log.log_partitions) for group in groups}
    found = [each for partition, records in log.in_order().items() if partition in wanted for each in records]
    return sorted(found, key=lambda record: record.timestamp)
