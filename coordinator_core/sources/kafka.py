"""`kafka://SERVERS/TOPIC`: a topic read from its brokers with raw Fetch requests, including control batches."""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from uuid import UUID

from coordinator_core.log.columns import RecordColumns, parse_columns
from coordinator_core.log.committed_records import committed_records
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
from coordinator_core.sources.kafka_connection import RequestFor, borrow_connection, give_back, metadata_request
from coordinator_core.sources.kafka_options import outage_seconds, parse_address, reads_committed, retry_seconds
from coordinator_core.sources.kafka_requests import (
    EARLIEST,
    LATEST,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    epoch_ends_request,
    fetch_request,
    offsets_request,
    parts,
)
from coordinator_core.sources.kafka_topic import (
    NO_EPOCH,
    NO_LEADER,
    BrokerError,
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
#: Below 32 MiB, above which glibc maps every buffer anew: page faults in the library's copies of a response would then cost more
#: than processing its bytes (docs/adr/0013).
RESPONSE_BYTES = 16 * 1024 * 1024
#: Larger than any batch: segments of the topic are smaller (`offsets.topic.segment.bytes`, 100 MiB).
LARGEST_BATCH_BYTES = 128 * 1024 * 1024

CONNECT_LIMIT_SECONDS = 5.0

#: Age at which metadata is read again: the topic may have more partitions. Its brokers use them only after their restart.
_METADATA_AGE_SECONDS = 5.0

_BASE_OFFSET_BYTES = 8

#: Errors that end with an outage; a broker that has just restarted may not know its topics yet.
_OUTAGE = (LogUnreachable, TopicMissing)


@dataclass(slots=True)
class _PartitionRead:
    """Progress of one partition: the next offset, the end, and the most bytes to request."""

    position: int
    end: int
    max_bytes: int


class KafkaSource:
    """The partitions of a topic on a cluster; implements `LogSource`. For one thread at a time.

    With isolation level `read_uncommitted`, the default, everything below the high watermark is read, including open transactions
    and markers. With `read_committed` the end is the last stable offset, and the records are those of `committed_records`.
    An address without any response fails after `connect_limit_seconds`. A later outage (a restart, a moving leader) is retried
    for up to the option `retry_seconds` since the last response, with the option `follows` without a limit. `seen_before` states
    that the caller has read this topic before, in another process: then the first request is retried for as long. A topic with
    another id than `expected_topic_id` is rejected; without this argument the id of the first response is expected.

    Raises LogMisconfigured, LogUnreachable, AuthenticationFailed, NotAuthorized, TopicMissing, TopicRecreated, RequestRejected.
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
        self._isolation = READ_COMMITTED if reads_committed(self._options) else READ_UNCOMMITTED
        self._retry_limit, self._outage_limit = retry_seconds(self._options), outage_seconds(self._options)
        self._partition_bytes = partition_bytes
        self._response_bytes = response_bytes
        self._expected_id = expected_topic_id
        self._end_epochs: dict[int, int] = {}
        self._connection = borrow_connection(self._address.servers, self._options)
        self._closed = False
        self._topic_read_at = time.monotonic()
        try:
            known = seen_before or self._connection.contacted
            patience = self._patience() if known else Patience(connect_limit_seconds)
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
        """The topic's id; None on brokers before 2.8. A stored position is valid only for the topic id it was read from."""
        return self._topic.topic_id

    def partitions(self) -> tuple[int, ...]:
        """Partition numbers, ascending."""
        return tuple(self._topic.leaders)

    def earliest_offsets(self) -> dict[int, int]:
        """Log start offset of each partition."""
        return self._list_offsets(EARLIEST)

    def end_offsets(self) -> dict[int, int]:
        """High watermark of each partition; the last stable offset with `read_committed`."""
        self._notice_new_partitions()
        return self._list_offsets(LATEST)

    def partition_count(self) -> int:
        """Number of partitions of the topic, from the leaders of its partitions; see `LogSource`.

        Another broker may not know of a growth yet. A leader knows the number that it has used itself; one that was elected
        later knows at least that of its predecessor.
        """
        patience = self._patience()
        while True:
            try:
                count = self._count_of_leaders()
            except _OUTAGE as error:
                patience.wait(error)
                with suppress(*_OUTAGE):
                    self._topic = self._look_up()
            else:
                if count > len(self._topic.leaders):
                    self._topic_read_at = -math.inf
                return count

    def leader_epochs(self) -> dict[int, int]:
        """Leader epoch of each partition at the last `end_offsets`; without partitions of brokers before 2.4."""
        return dict(self._end_epochs)

    def truncated_partitions(self, positions: Mapping[int, tuple[int, int]]) -> dict[int, int]:
        """Find logs that were truncated below a position, even if they have grown beyond it since (KIP-320).

        `positions`: partition → an offset, and the leader epoch in which the log contained all records below it. Returns
        partition → the end of that epoch in the current leader's log, where it is lower than the offset: an unclean leader
        election lost records.
        """
        now = {partition: leader.epoch for partition, leader in self._topic.leaders.items()}
        changed = {p: epoch for p, (_, epoch) in positions.items() if now.get(p, NO_EPOCH) not in (epoch, NO_EPOCH)}
        ends = self._request_each(changed, lambda leaders: epoch_ends_request(self._topic.name, leaders, changed))
        return {p: end.end_offset for p, end in ends.items() if 0 <= end.end_offset < positions[p][0]}

    def read_columns(self, partition: int, start: int, end: int) -> Iterator[RecordColumns]:
        """Yield the records of one partition from `start` up to, not including, `end`; see `read_many`."""
        return (columns for _, columns in self.read_many({partition: (start, end)}))

    def read_many(self, wanted: Mapping[int, tuple[int, int]]) -> Iterator[tuple[int, RecordColumns]]:
        """Yield (partition, records) of several partitions, each from its start up to, not including, its end, in log order.

        One request covers all partitions of a leader. If `end` is after that of `end_offsets`, reading waits as in an outage.
        Raises after yielding the readable records: RecordsDeleted if the log starts after a position, LogTruncated if it ends
        before one, LogUnreadable if the next batch cannot be framed, and the errors of the class.
        """
        self._require(wanted)
        readings = {
            partition: _PartitionRead(start, end, self._partition_bytes)
            for partition, (start, end) in wanted.items()
            if start < end
        }
        patience = self._patience()
        while readings:
            responses, trouble = self._request_leaders(readings, partial(self._fetch_request, readings=readings))
            starved: list[int] = []
            progress = False
            for partition, answer, is_first in responses:
                reading = readings[partition]
                if answer.error_code != BrokerError.NONE:
                    trouble = trouble or self._partition_trouble(partition, answer.error_code, reading.position)
                    continue
                columns = self._take(partition, reading, answer, is_first)
                if columns is not None:
                    progress = True
                    yield partition, columns
                elif self._end_in(answer) < reading.end:
                    trouble = trouble or _ends_too_early(self._topic.name, partition, self._end_in(answer), reading.end)
                else:
                    progress = True
                    starved.append(partition)
                if reading.position >= reading.end:
                    del readings[partition]
            # Partitions for which the response had no room are first in the next request.
            front = [partition for partition in starved if partition in readings]
            readings = {partition: readings[partition] for partition in (*front, *(p for p in readings if p not in front))}
            self._settle(trouble, progress, patience)

    def torn_ends(self) -> tuple[TornEnd, ...]:
        """Empty: brokers return whole batches only, up to the high watermark."""
        return ()

    def topic_ids(self) -> dict[UUID, str]:
        """Id → name of every topic of the cluster that the user may describe; empty for brokers before 2.8."""
        patience = self._patience()
        while True:
            try:
                return topic_ids_from(self._connection.metadata(None))
            except LogUnreachable as error:
                patience.wait(error)

    def close(self) -> None:
        """Return the connections for the next reader of this cluster. Safe to call twice."""
        if not self._closed:
            self._closed = True
            give_back(self._address.servers, self._options, self._connection)

    def _patience(self) -> Patience:
        return Patience(self._retry_limit, self._outage_limit)

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
        topic = topic_from(self._connection.metadata((self._address.topic,)), self._address.topic, self._expected_id)
        self._expected_id = self._expected_id or topic.topic_id
        self._topic_read_at = time.monotonic()
        return topic

    def _count_of_leaders(self) -> int:
        led: dict[int, list[int]] = {}
        for partition, leader in self._topic.leaders.items():
            led.setdefault(leader.node, []).append(partition)
        if NO_LEADER in led:
            raise LogUnreachable(f"topic {self._topic.name}: no leader for partition {ranges(led[NO_LEADER])}")
        request = partial(metadata_request, names=(self._topic.name,))
        count = 0
        for node, response in self._connection.send_all(dict.fromkeys(led, request)).items():
            if isinstance(response, LogUnreachable):
                raise LogUnreachable(f"broker {node}, leader of partition {ranges(led[node])} of {self._topic.name}: {response}")
            if isinstance(response, LogError):
                raise response
            count = max(count, len(topic_from(response, self._topic.name, self._expected_id).leaders))
        return count

    def _notice_new_partitions(self) -> None:
        """Read the metadata again when they are old. An outage is left to the requests that follow."""
        if time.monotonic() - self._topic_read_at >= _METADATA_AGE_SECONDS:
            with suppress(*_OUTAGE):
                found = self._look_up()
                # a broker that has not heard of the growth yet reports the partitions before it
                if found.leaders.keys() >= self._topic.leaders.keys():
                    self._topic = found

    def _require(self, wanted: Iterable[int]) -> None:
        if unknown := set(wanted) - self._topic.leaders.keys():
            raise TopicMissing(f"topic {self._topic.name} has no partition {ranges(unknown)}, only {ranges(self._topic.leaders)}")

    def _settle(self, trouble: LogError | None, progress: bool, patience: Patience) -> None:
        """After a round of requests: reset the time limit on progress, otherwise pause; refresh the leaders after an error."""
        if progress:
            patience.progress()
        if trouble is None:
            if not progress:
                # throttled: the connection has paused for the requested time
                patience.spent(LogUnreachable(f"topic {self._topic.name}: the brokers throttle and return no data"))
            return
        if not progress:
            patience.wait(trouble)
        try:
            self._topic = self._look_up()
        except _OUTAGE as error:
            patience.wait(error)

    def _list_offsets(self, which: int) -> dict[int, int]:
        found = self._request_each(
            self._topic.leaders, lambda leaders: offsets_request({self._topic.name: leaders}, which, self._isolation)
        )
        if which == LATEST:
            self._end_epochs = {p: answer.leader_epoch for p, answer in found.items() if answer.leader_epoch != NO_EPOCH}
        return {partition: found[partition].offset for partition in sorted(found)}

    def _request_each(self, partitions: Iterable[int], request: Callable[[dict[int, Leader]], RequestFor]) -> dict[int, Any]:
        """Request from the leader of each partition until all have answered, following moved leaders."""
        found: dict[int, Any] = {}
        patience = self._patience()
        while missing := [partition for partition in partitions if partition not in found]:
            responses, trouble = self._request_leaders(missing, request)
            before = len(found)
            for partition, answer, _ in responses:
                if answer.error_code == BrokerError.NONE:
                    found[partition] = answer
                else:
                    trouble = trouble or self._partition_trouble(partition, answer.error_code, None)
            self._settle(trouble, len(found) > before, patience)
        return found

    def _request_leaders(
        self, partitions: Iterable[int], request: Callable[[dict[int, Leader]], RequestFor]
    ) -> tuple[list[tuple[int, Any, bool]], LogError | None]:
        """Send one request to each leader. Returns (partition, its part, whether it was first in the request) and the error."""
        by_node: dict[int, dict[int, Leader]] = {}
        for partition in partitions:
            leader = self._topic.leaders.get(partition, Leader(NO_LEADER, -1))
            by_node.setdefault(leader.node, {})[partition] = leader
        trouble: LogError | None = None
        if leaderless := by_node.pop(NO_LEADER, None):
            trouble = LogUnreachable(f"topic {self._topic.name}: no leader for partition {ranges(leaderless)}")
        found: list[tuple[int, Any, bool]] = []
        for node, response in self._connection.send_all({node: request(leaders) for node, leaders in by_node.items()}).items():
            leaders = by_node[node]
            if isinstance(response, LogUnreachable):
                trouble = LogUnreachable(
                    f"broker {node}, leader of partition {ranges(leaders)} of {self._topic.name}: {response}"
                )
            elif isinstance(response, LogError):
                raise response
            elif getattr(response, "error_code", 0):
                trouble = self._response_trouble(response.error_code)
            else:
                answered = {part[0]: part for part in parts(response, next(iter(leaders))) if part[0] in leaders}
                found += answered.values()
                silent = leaders.keys() - answered.keys()
                # a throttled response contains no partition (KIP-219)
                if silent and not response.throttle_time_ms > 0:
                    where = f"partition {ranges(silent)} of {self._topic.name}"
                    trouble = trouble or LogUnreachable(f"broker {node}, leader of {where}, left it out of its response")
        return found, trouble

    def _response_trouble(self, code: int) -> LogError:
        error = error_for(self._topic.name, code)
        if error is not None:
            raise error
        return LogUnreachable(f"topic {self._topic.name}: {error_name(code)}")

    def _partition_trouble(self, partition: int, code: int, position: int | None) -> LogError:
        if code == BrokerError.OFFSET_OUT_OF_RANGE and position is not None:
            self._raise_out_of_range(partition, position)
        error = error_for(self._topic.name, code)
        if error is not None:
            raise error
        return LogUnreachable(f"partition {partition} of {self._topic.name}: {error_name(code)}")

    def _raise_out_of_range(self, partition: int, position: int) -> None:
        """Raise the reason. Returns if the position is in range after all, because the leader had just moved."""
        self._topic = self._look_up()
        earliest, end = self.earliest_offsets()[partition], self.end_offsets()[partition]
        where = f"partition {partition} of {self._topic.name} has offsets {earliest} to {end}, but offset {position} is needed"
        if position < earliest:
            raise RecordsDeleted(
                f"{where}: the records in between were deleted before they were read (retention, DeleteRecords, or a position "
                "that is too old); start with new tables and a new checkpoint, which read the log from its current start"
            )
        if position > end:
            raise LogTruncated(
                f"{where}: the log was truncated, or the topic was deleted and created again; "
                "start with new tables and a new checkpoint"
            )

    def _end_in(self, answer: Any) -> int:
        """Return the end of the partition in a response of Fetch."""
        end: int = answer.last_stable_offset if self._isolation == READ_COMMITTED else answer.high_watermark
        return end

    def _take(self, partition: int, reading: _PartitionRead, answer: Any, is_first: bool) -> RecordColumns | None:
        """Parse the response of one partition and advance its position."""
        records = answer.records or b""
        if not records:
            if is_first and self._end_in(answer) >= reading.end:
                # No records up to `end`: compaction removed them, including the last batch.
                reading.position = reading.end
            return None
        columns = parse_columns(records, reading.position, reading.end)
        if columns.next_offset > reading.position:
            reading.position = columns.next_offset
            if self._isolation == READ_COMMITTED:
                aborted = answer.aborted_transactions or ()
                columns = committed_records(columns, ((each.producer_id, each.first_offset) for each in aborted))
            whole = tuple(damage for damage in columns.damages if damage.problem is not Problem.TORN_TAIL)
            return columns if len(whole) == len(columns.damages) else replace(columns, damages=whole)
        if len(records) >= _BASE_OFFSET_BYTES and reading.end <= int.from_bytes(records[:_BASE_OFFSET_BYTES], "big") < MAX_OFFSET:
            reading.position = reading.end
            return None
        torn = all(damage.problem is Problem.TORN_TAIL for damage in columns.damages)
        if not torn or reading.max_bytes >= LARGEST_BATCH_BYTES:
            reason = columns.damages[0].reason if columns.damages else "no batch can be framed"
            raise LogUnreadable(f"partition {partition} of {self._topic.name}, offset {reading.position}: {reason}")
        # Brokers before 0.10.1 truncate a batch that exceeds the requested bytes.
        reading.max_bytes = min(4 * reading.max_bytes, LARGEST_BATCH_BYTES)
        return None

    def _fetch_request(self, leaders: Mapping[int, Leader], readings: Mapping[int, _PartitionRead]) -> RequestFor:
        wanted = [
            (partition, leader.epoch, readings[partition].position, readings[partition].max_bytes)
            for partition, leader in leaders.items()
        ]
        return fetch_request([(self._topic, wanted)], self._response_bytes, self._isolation)


def _ends_too_early(topic: str, partition: int, high_watermark: int, end: int) -> LogTruncated:
    return LogTruncated(
        f"partition {partition} of {topic} ends at offset {high_watermark}, but records up to offset {end} are needed: "
        "the log was truncated, or the topic was deleted and created again; start with new tables and a new checkpoint"
    )
