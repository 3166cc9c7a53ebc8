"""Logs of a `__consumer_offsets` that got more partitions, with records from before and after the restart of its brokers."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa
from hypothesis import strategies as st
from log_builder import NOW_MS, Log, member
from table_logs import change_table

from coordinator_core.log.entries import LogRecord
from coordinator_core.log.partitioner import partition_for
from coordinator_core.state.era import Era

#: Records of all of them in their partitions among 3, with one in its partition among 7, rule out every count but 7.
GROUPS = tuple(f"group-{number}" for number in range(8))
OLD, NEW = 3, 7


@dataclass
class GrownLog:
    """Records by partition, in the order of time. `count` is that of the coordinators that write now."""

    count: int = OLD
    logs: dict[int, Log] = field(default_factory=dict)
    clock_ms: int = NOW_MS
    #: True once a record is where only the new count has it.
    shows_new: bool = False

    def write(self, group: str, action: str, *, count: int | None = None) -> None:
        """Append what a coordinator with `count` partitions writes."""
        number = partition_for(group, count or self.count)
        self.shows_new |= number == partition_for(group, NEW) != partition_for(group, OLD)
        log = self.logs.setdefault(number, Log(number))
        before = log.end
        _ACTIONS[action](log, group, self.clock_ms)
        for at, record in enumerate(log.records[before:], start=before):
            self.clock_ms += 1000
            log.records[at] = record._replace(timestamp=self.clock_ms)

    @property
    def speaking(self) -> list[LogRecord]:
        """The records that the coordinators load."""
        count = NEW if self.shows_new else OLD
        return [
            record
            for number, log in self.logs.items()
            for record, group in zip(log.records, self._groups(log), strict=True)
            if group is None or partition_for(group, count) == number
        ]

    def shows_new_between(self, begin: dict[int, int], end: dict[int, int]) -> bool:
        """Whether a record between two positions is where only the new count has it.

        A source that knows the number of partitions requests it after the end of the log, so it knows the new one then.
        """
        return any(
            group is not None and partition_for(group, NEW) == number != partition_for(group, OLD)
            for number, log in self.logs.items()
            for group in self._groups(log)[begin.get(number, 0) : end.get(number, 0)]
        )

    @staticmethod
    def _groups(log: Log) -> list[str | None]:
        return [_group_in(record) for record in log.records]

    def changes(self, begin: dict[int, int], end: dict[int, int], partitions: int | None) -> pa.Table | None:
        """The change rows between two positions, of a source that knows the number of partitions or does not (None)."""
        parts = [
            change_table(self.logs[number], ERA, begin.get(number, 0), stop, partitions=partitions)
            for number, stop in sorted(end.items())
            if stop > begin.get(number, 0)
        ]
        return pa.concat_tables(parts) if parts else None


ERA = Era.named("4")
_PRODUCER = 900


def _group_in(record: LogRecord) -> str | None:
    if record.is_control:
        return None
    assert record.key is not None
    length = int.from_bytes(record.key[2:4], "big")
    return record.key[4 : 4 + length].decode()


def _transaction(log: Log, group: str, at_ms: int) -> None:
    log.commit(1, at_ms % 1000, group=group, at=at_ms, producer=_PRODUCER)
    log.marker(_PRODUCER)


_ACTIONS: dict[str, Callable[[Log, str, int], object]] = {
    "commit": lambda log, group, at: log.commit(0, at // 1000 % 1000, group=group, at=at),
    "expire": lambda log, group, _: log.offset_tombstone(0, group=group),
    "classic": lambda log, group, at: log.group([member("m1")], group=group, generation=at // 1000 % 100, leader="m1"),
    "empty": lambda log, group, at: log.group((), group=group, generation=at // 1000 % 100),
    "delete": lambda log, group, _: log.group_tombstone(group),
    "transaction": _transaction,
    "open": lambda log, group, at: log.commit(2, 5, group=group, at=at, producer=_PRODUCER + 1),
    "consumer": lambda log, group, _: log.consumer_member("c1", group=group),
}
#: Groups with records of a modern group, which a classic record does not replace.
MODERN = GROUPS[:2]
_OF_MODERN = ("commit", "expire", "transaction", "open", "consumer")
_OF_CLASSIC = ("commit", "expire", "classic", "empty", "delete", "transaction", "open")


@st.composite
def grown_logs(draw: st.DrawFn) -> GrownLog:
    """Records before a restart of the brokers and, after it, from the new shards and from the old ones.

    Every group has committed before: with few records a smaller count may explain all of them.
    """
    log = GrownLog()
    for group in GROUPS:
        log.write(group, "commit")
    steps = st.sampled_from(GROUPS).flatmap(
        lambda group: st.tuples(st.just(group), st.sampled_from(_OF_MODERN if group in MODERN else _OF_CLASSIC))
    )
    for group, action in draw(st.lists(steps, max_size=8)):
        log.write(group, action)
    log.count = NEW
    for group, action, of_old in draw(st.lists(st.tuples(steps, st.booleans()).map(lambda s: (*s[0], s[1])), max_size=10)):
        # the shard of the old partition has loaded the group and expires its state, or writes the end of its sessions
        log.write(group, action, count=OLD if of_old else NEW)
    return log
