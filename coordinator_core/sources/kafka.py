"""`kafka://SERVERS/TOPIC`: a topic read from its brokers with raw Fetch requests, control batches included."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from uuid import UUID

from coordinator_core.log.columns import RecordColumns, parse_columns
from coordinator_core.log.damage import Problem, TornEnd
from coordinator_core.log.errors import (
    LogError,
    LogTruncated,
    LogUnreachable,
    LogUnreadable,
    RecordsDeleted,
    TopicMissing,
)
from coordinator_core.log.reader import MAX_OFFSET
from coordinator_core.sources.kafka_connection import RequestFor, borrow_connection, give_back
from coordinator_core.sources.kafka_options import parse_address, retry_seconds
from coordinator_core.sources.kafka_requests import EARLIEST, LATEST, epoch_ends_request, fetch_request, offsets_request, parts
from coordinator_core.sources.kafka_topic import (
    NO_EPOCH,
    NO_LEADER,
    ErrorCode,
    Leader,
    Patience,
    Topic,
    error_for,
    error_name,
    ranges,
    topic_from,
    topic_ids_from,
)

PARTITION_BYTES = 8 * 1024 * 1024
#: Below the 32 MiB from which glibc maps each buffer anew: the pages of the copies that the library makes of an answer then cost
#: more than all that is done with its bytes (docs/adr/0013).
RESPONSE_BYTES = 16 * 1024 * 1024
#: No batch is larger: segments of the topic are smaller (`offsets.topic.segment.bytes`, 100 MiB).
LARGEST_BATCH_BYTES = 128 * 1024 * 1024

CONNECT_LIMIT_SECONDS = 5.0

_BASE_OFFSET_BYTES = 8

#: What passes when the brokers come back; one that has just come back may not know its topics yet.
_OUTAGE = (LogUnreachable, TopicMissing)


@dataclass(slots=True)
class _Reading:
    """One partition that is being read: what comes next, where to stop, how much to ask for."""

    position: int
    end: int
    max_bytes: int


class KafkaSource:
    """The partitions of a topic on a cluster; implements `LogSource`. For one thread at a time.

    Isolation READ_UNCOMMITTED: everything below the high watermark is read, transactions in flight and their markers too.
    An address where nobody has ever answered fails after `connect_limit_seconds`; an outage later (a restart, a leader that
    moves) is waited for, up to the option `retry_seconds` from the last answer. Whoever has read this topic before, in another
    process, says so with `seen_before`: then the first look is waited for as well. With `expected_topic_id` a topic that was
    recreated since is refused, from the first answer on; without it the id seen first counts.

    Raises LogMisconfigured, LogUnreachable, AuthenticationFailed, NotAuthorized, TopicMissing, TopicRecreated, LogRefused.
    """

    def __init__(
        self,
        address: str,
        options: Mapping[str, str] | None = None,
        *,
        expected_topic_id: UUID | None = None,
        seen_before: bool = False,
        connect_limit_seconds: float = CONNECT_LIMIT_SECONDS,
        partition_bytes: int = PARTITION_BYTES,
        response_bytes: int = RESPONSE_BYTES,
    ) -> None:
        self._address = parse_address(address)
        self._options = dict(options or {})
        self._outage_limit = retry_seconds(self._options)
        self._partition_bytes = partition_bytes
        self._response_bytes = response_bytes
        self._expected_id = expected_topic_id
        self._end_epochs: dict[int, int] = {}
        self._connection = borrow_connection(self._address.servers, self._options)
        self._closed = False
        try:
            known = seen_before or self._connection.contacted
            patience = Patience(self._outage_limit if known else connect_limit_seconds)
            self._topic = self._first_look(patience, _OUTAGE if seen_before else (LogUnreachable,))
        except BaseException:
            self._connection.close()
            self._closed = True
            raise

    def __enter__(self) -> "KafkaSource":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def topic_id(self) -> UUID | None:
        """The topic's id; None on brokers before 2.8. Kept beside a position, it tells whether that still means something."""
        return self._topic.topic_id

    def partitions(self) -> tuple[int, ...]:
        """Partition numbers, ascending."""
        return tuple(self._topic.leaders)

    def earliest_offsets(self) -> dict[int, int]:
        """Where each partition begins (log start offset)."""
        return self._list_offsets(EARLIEST)

    def end_offsets(self) -> dict[int, int]:
        """High watermark of each partition."""
        return self._list_offsets(LATEST)

    def leader_epochs(self) -> dict[int, int]:
        """Leader epoch of each partition when `end_offsets` last asked; partitions of brokers before 2.4 are left out."""
        return dict(self._end_epochs)

    def cut_back(self, positions: Mapping[int, tuple[int, int]]) -> dict[int, int]:
        """Where logs were cut back below a position, however far they have grown again since (KIP-320).

        `positions`: partition → an offset, and the leader epoch in which the log held everything below it. Whatever a later
        leader has kept of that epoch ends at or behind the offset, unless it was elected without having all of it.
        """
        now = {partition: leader.epoch for partition, leader in self._topic.leaders.items()}
        asked = {p: epoch for p, (_, epoch) in positions.items() if now.get(p, NO_EPOCH) not in (epoch, NO_EPOCH)}
        ends = self._ask_each(asked, lambda leaders: epoch_ends_request(self._topic.name, leaders, asked))
        return {p: end.end_offset for p, end in ends.items() if 0 <= end.end_offset < positions[p][0]}

    def read_columns(self, partition: int, start: int, end: int) -> Iterator[RecordColumns]:
        """The records of one partition from `start` up to, not including, `end`; see `read_many`."""
        return (columns for _, columns in self.read_many({partition: (start, end)}))

    def read_many(self, wanted: Mapping[int, tuple[int, int]]) -> Iterator[tuple[int, RecordColumns]]:
        """Several partitions, each from its start up to, not including, its end: (partition, records), per partition in order.

        All partitions of a leader go into one request. An `end` beyond the high watermark is waited for like an outage. Raises,
        after whatever could be read: RecordsDeleted when the log begins behind a position, LogTruncated when it ends before one,
        LogUnreadable where the next batch cannot be framed, and what the class names.
        """
        self._require(wanted)
        readings = {
            partition: _Reading(start, end, self._partition_bytes) for partition, (start, end) in wanted.items() if start < end
        }
        patience = Patience(self._outage_limit)
        while readings:
            answers, trouble = self._ask_leaders(readings, partial(self._fetch_request, readings=readings))
            starved: list[int] = []
            progress = False
            for partition, answer, asked_first in answers:
                reading = readings[partition]
                if answer.error_code != ErrorCode.NONE:
                    trouble = trouble or self._partition_trouble(partition, answer.error_code, reading.position)
                    continue
                columns = self._take(partition, reading, answer, asked_first)
                if columns is not None:
                    progress = True
                    yield partition, columns
                elif answer.high_watermark < reading.end:
                    trouble = trouble or _ends_too_early(self._topic.name, partition, answer.high_watermark, reading.end)
                else:
                    progress = True
                    starved.append(partition)
                if reading.position >= reading.end:
                    del readings[partition]
            # Whoever got nothing because others filled the response comes first next time.
            front = [partition for partition in starved if partition in readings]
            readings = {partition: readings[partition] for partition in (*front, *(p for p in readings if p not in front))}
            self._settle(trouble, progress, patience)

    def torn_ends(self) -> tuple[TornEnd, ...]:
        """None: brokers show whole batches only, up to the high watermark."""
        return ()

    def topic_ids(self) -> dict[UUID, str]:
        """Id → name of every topic of the cluster that the user may describe; empty for brokers before 2.8."""
        patience = Patience(self._outage_limit)
        while True:
            try:
                return topic_ids_from(self._connection.metadata(None))
            except LogUnreachable as error:
                patience.wait(error)

    def close(self) -> None:
        """Gives the connections back, for the next reader of this cluster. Safe to call twice."""
        if not self._closed:
            self._closed = True
            give_back(self._address.servers, self._options, self._connection)

    def _first_look(self, patience: Patience, passing: tuple[type[LogError], ...]) -> Topic:
        while True:
            try:
                found = self._look_up()
            except passing as error:
                patience.wait(error)
            else:
                patience.progress()
                return found

    def _look_up(self) -> Topic:
        topic = topic_from(self._connection.metadata(self._address.topic), self._address.topic, self._expected_id)
        self._expected_id = self._expected_id or topic.topic_id
        return topic

    def _require(self, wanted: Iterable[int]) -> None:
        if unknown := set(wanted) - self._topic.leaders.keys():
            raise TopicMissing(f"topic {self._topic.name} has no partition {ranges(unknown)}, only {ranges(self._topic.leaders)}")

    def _settle(self, trouble: LogError | None, progress: bool, patience: Patience) -> None:
        """After a round: count anew where there was progress; otherwise wait, and ask who leads now."""
        if progress:
            patience.progress()
        if trouble is None:
            if not progress:
                # throttled: the connection has paused for as long as it was told to
                patience.spent(LogUnreachable(f"topic {self._topic.name}: the brokers throttle, and answer nothing else"))
            return
        if not progress:
            patience.wait(trouble)
        try:
            self._topic = self._look_up()
        except _OUTAGE as error:
            patience.wait(error)

    def _list_offsets(self, which: int) -> dict[int, int]:
        found = self._ask_each(self._topic.leaders, lambda asked: offsets_request(self._topic.name, asked, which))
        if which == LATEST:
            self._end_epochs = {p: answer.leader_epoch for p, answer in found.items() if answer.leader_epoch != NO_EPOCH}
        return {partition: found[partition].offset for partition in sorted(found)}

    def _ask_each(self, partitions: Iterable[int], request: Callable[[dict[int, Leader]], RequestFor]) -> dict[int, Any]:
        """The answer of each partition's leader, whoever that is by the time that it answers."""
        found: dict[int, Any] = {}
        patience = Patience(self._outage_limit)
        while missing := [partition for partition in partitions if partition not in found]:
            answers, trouble = self._ask_leaders(missing, request)
            before = len(found)
            for partition, answer, _ in answers:
                if answer.error_code == ErrorCode.NONE:
                    found[partition] = answer
                else:
                    trouble = trouble or self._partition_trouble(partition, answer.error_code, None)
            self._settle(trouble, len(found) > before, patience)
        return found

    def _ask_leaders(
        self, partitions: Iterable[int], request: Callable[[dict[int, Leader]], RequestFor]
    ) -> tuple[list[tuple[int, Any, bool]], LogError | None]:
        """One request to the leader of each partition: (partition, its part of the response, asked first?), trouble."""
        by_node: dict[int, dict[int, Leader]] = {}
        for partition in partitions:
            leader = self._topic.leaders.get(partition, Leader(NO_LEADER, -1))
            by_node.setdefault(leader.node, {})[partition] = leader
        trouble: LogError | None = None
        if leaderless := by_node.pop(NO_LEADER, None):
            trouble = LogUnreachable(f"topic {self._topic.name}: no leader for partition {ranges(leaderless)}")
        found: list[tuple[int, Any, bool]] = []
        for node, response in self._connection.ask({node: request(asked) for node, asked in by_node.items()}).items():
            asked = by_node[node]
            if isinstance(response, LogUnreachable):
                trouble = LogUnreachable(f"broker {node}, leader of partition {ranges(asked)} of {self._topic.name}: {response}")
            elif isinstance(response, LogError):
                raise response
            elif getattr(response, "error_code", 0):
                trouble = self._response_trouble(response.error_code)
            else:
                told = {part[0]: part for part in parts(response, next(iter(asked))) if part[0] in asked}
                found += told.values()
                silent = asked.keys() - told.keys()
                # a response that is throttled names no partition at all (KIP-219)
                if silent and not response.throttle_time_ms > 0:
                    where = f"partition {ranges(silent)} of {self._topic.name}"
                    trouble = trouble or LogUnreachable(f"broker {node}, leader of {where}, says nothing about it")
        return found, trouble

    def _response_trouble(self, code: int) -> LogError:
        error = error_for(self._topic.name, code)
        if error is not None:
            raise error
        return LogUnreachable(f"topic {self._topic.name}: {error_name(code)}")

    def _partition_trouble(self, partition: int, code: int, position: int | None) -> LogError:
        if code == ErrorCode.OFFSET_OUT_OF_RANGE and position is not None:
            self._raise_out_of_range(partition, position)
        error = error_for(self._topic.name, code)
        if error is not None:
            raise error
        return LogUnreachable(f"partition {partition} of {self._topic.name}: {error_name(code)}")

    def _raise_out_of_range(self, partition: int, position: int) -> None:
        """Say why. When the position is in range again after all (the leader had just moved), return."""
        self._topic = self._look_up()
        earliest, end = self.earliest_offsets()[partition], self.end_offsets()[partition]
        where = (
            f"partition {partition} of {self._topic.name} holds offsets {earliest} to {end}, and {position} was to be read next"
        )
        if position < earliest:
            raise RecordsDeleted(
                f"{where}: what came before {earliest} was deleted before it was read (retention, DeleteRecords, or a position "
                "that is too old); start with new tables and a new checkpoint: they read the log from its present beginning"
            )
        if position > end:
            raise LogTruncated(
                f"{where}: the log was cut back, or the topic was deleted and created again; "
                "start with new tables and a new checkpoint"
            )

    def _take(self, partition: int, reading: _Reading, answer: Any, asked_first: bool) -> RecordColumns | None:
        """What a response brings for one partition; moves its position."""
        records = answer.records or b""
        if not records:
            if asked_first and answer.high_watermark >= reading.end:
                # Nothing left up to `end`: compaction removed it, the last batch included.
                reading.position = reading.end
            return None
        columns = parse_columns(records, reading.position, reading.end)
        if columns.next_offset > reading.position:
            reading.position = columns.next_offset
            whole = tuple(damage for damage in columns.damages if damage.problem is not Problem.TORN_TAIL)
            return columns if len(whole) == len(columns.damages) else replace(columns, damages=whole)
        if len(records) >= _BASE_OFFSET_BYTES and reading.end <= int.from_bytes(records[:_BASE_OFFSET_BYTES], "big") < MAX_OFFSET:
            reading.position = reading.end
            return None
        torn = all(damage.problem is Problem.TORN_TAIL for damage in columns.damages)
        if not torn or reading.max_bytes >= LARGEST_BATCH_BYTES:
            reason = columns.damages[0].reason if columns.damages else "no batch can be framed"
            raise LogUnreadable(f"partition {partition} of {self._topic.name}, offset {reading.position}: {reason}")
        # Brokers before 0.10.1 cut a batch off rather than send more than was asked for.
        reading.max_bytes = min(4 * reading.max_bytes, LARGEST_BATCH_BYTES)
        return None

    def _fetch_request(self, asked: Mapping[int, Leader], readings: Mapping[int, _Reading]) -> RequestFor:
        return fetch_request(
            self._topic,
            [
                (partition, leader.epoch, readings[partition].position, readings[partition].max_bytes)
                for partition, leader in asked.items()
            ],
            self._response_bytes,
        )


def _ends_too_early(topic: str, partition: int, high_watermark: int, end: int) -> LogTruncated:
    return LogTruncated(
        f"partition {partition} of {topic} ends at {high_watermark}, and was to be read up to {end}: the log was cut back, or "
        "the topic was deleted and created again; start with new tables and a new checkpoint"
    )
