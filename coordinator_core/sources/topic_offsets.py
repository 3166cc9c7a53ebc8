"""Samples of log start, log end and last stable offset of any topics of a cluster, for the lag of groups."""

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from coordinator_core.codec.arrays import Int64s, Numbers
from coordinator_core.codec.uuids import uuid_text
from coordinator_core.health.sample_columns import NONE, nullable
from coordinator_core.health.sample_tables import END_OFFSETS_SCHEMA
from coordinator_core.log.errors import LogError
from coordinator_core.sources.cluster_metadata import ClusterMetadata
from coordinator_core.sources.kafka_connection import KafkaConnection, borrowed_connection
from coordinator_core.sources.kafka_options import parse_address
from coordinator_core.sources.kafka_requests import EARLIEST, LATEST, READ_COMMITTED, READ_UNCOMMITTED, offsets_request
from coordinator_core.sources.kafka_topic import NO_ANSWER, NO_EPOCH, TRANSIENT_ERRORS, BrokerError, Leader, Topic, reason_of
from coordinator_core.sources.source import PartitionsByTopic
from coordinator_core.sources.topic_leaders import leaders_from

#: A leader that has moved is looked up again this many times; sampling never waits for one.
_ROUNDS = 3

#: Node id → topic → partition → its leader.
Leaders = Mapping[int, Mapping[str, Mapping[int, Leader]]]


class _Field(NamedTuple):
    """A column of the samples, and what ListOffsets is asked for."""

    name: str
    position: int
    isolation: int


#: The last stable offset is requested for all topics: without it, the first transaction that hangs is not seen.
_FIELDS = (
    _Field("log_start", EARLIEST, READ_UNCOMMITTED),
    _Field("log_end", LATEST, READ_UNCOMMITTED),
    _Field("last_stable", LATEST, READ_COMMITTED),
)

#: The leader did not answer, or left the partition out of its response.
_NO_ANSWER = -1
#: Errors that a new look at the metadata may end.
_RETRIED = np.array([*TRANSIENT_ERRORS, _NO_ANSWER])


class TopicOffsetsSampler:
    """Samples topics of the cluster of a `kafka://` address, over the connections that readers of the cluster share.

    `now_ms` is the clock. The Metadata requests also name `more_topics`, for `cluster_metadata`. For one thread at a time.
    """

    def __init__(
        self, address: str, options: Mapping[str, str] | None, now_ms: Callable[[], int], more_topics: Sequence[str] = ()
    ) -> None:
        self._servers = parse_address(address).servers
        self._options = dict(options or {})
        self._now_ms = now_ms
        self._more_topics = more_topics
        #: Metadata responses of the last sample, oldest first.
        self._metadata: list[Any] = []
        self._release: str | None = None

    def sample(self, wanted: PartitionsByTopic) -> pa.Table:
        """Sample every partition once, with a request of each kind per leader (Metadata, ListOffsets).

        Returns a row per partition with the columns of `END_OFFSETS_SCHEMA`, by topic and partition. A partition without an
        answer has the reason, and the others are complete: a topic that is missing, not authorized or without a leader, or a
        broker that does not answer. The requests of all leaders run in parallel; a leader gets the next one while it answers.
        Raises LogError only if no broker answers at all.
        """
        self._metadata = []
        answers = _Answers(wanted, self._now_ms())
        missing = answers.missing()
        if not missing:
            return answers.table()
        #: Brokers that did not answer: waiting for them again would hold up all other samples.
        silent: set[int] = set()
        with borrowed_connection(self._servers, self._options) as connection:
            for _ in range(_ROUNDS):
                metadata = connection.metadata(sorted({*missing, *self._more_topics}))
                self._metadata.append(metadata)
                self._release = connection.release
                leaders = leaders_from(metadata, missing)
                answers.begin(leaders.topics, leaders.errors)
                for node in silent & leaders.by_node.keys():
                    answers.fail(leaders.by_node[node])
                silent |= self._request(connection, _without(leaders.by_node, silent), answers)
                missing = answers.missing()
                if not missing:
                    break
        return answers.table()

    def _request(self, connection: KafkaConnection, leaders: Leaders, answers: "_Answers") -> set[int]:
        """Request the offsets of partitions by leader, and store the answers. Returns the leaders that did not answer."""
        silent: set[int] = set()
        asked_at_ms = self._now_ms()

        def received(number: int, responses: Mapping[int, Any]) -> None:
            for node, response in responses.items():
                if isinstance(response, LogError):
                    silent.add(node)
                    answers.fail(leaders[node])
                else:
                    answers.take(_FIELDS[number].name, leaders[node], response, (asked_at_ms, self._now_ms()))

        if leaders:
            rounds = [
                {node: offsets_request(wanted, field.position, field.isolation) for node, wanted in leaders.items()}
                for field in _FIELDS
            ]
            connection.send_in_order(rounds, received)
        return silent

    def cluster_metadata(self) -> ClusterMetadata | None:
        """Brokers and replicas as of the last sample; None if it made no request."""
        found = [ClusterMetadata.of(response, self._release) for response in self._metadata]
        return reduce(ClusterMetadata.updated, found) if found else None


def _without(leaders: Leaders, nodes: set[int]) -> Leaders:
    return {node: wanted for node, wanted in leaders.items() if node not in nodes}


class _Answers:
    """The answers so far, a row per partition; the times are those of `log_end`."""

    def __init__(self, wanted: PartitionsByTopic, now_ms: int) -> None:
        partitions = {topic: sorted(set(numbers)) for topic, numbers in sorted(wanted.items())}
        keys = [(topic, number) for topic, numbers in partitions.items() for number in numbers]
        self._keys = keys
        self._rows: dict[str, dict[int, int]] = {topic: {} for topic in partitions}
        for row, (topic, number) in enumerate(keys):
            self._rows[topic][number] = row
        self._topics: dict[str, Topic] = {}
        #: The last error code, or _NO_ANSWER.
        self._error = np.full(len(keys), _NO_ANSWER)
        self._asked, self._answered = np.full(len(keys), now_ms), np.full(len(keys), now_ms)
        self._columns = {name: np.full(len(keys), NONE) for name in ("log_start", "log_end", "last_stable", "leader_epoch")}

    def missing(self) -> dict[str, list[int]]:
        """Partitions by topic for which a request may still get an answer."""
        missing: dict[str, list[int]] = {}
        for row in np.flatnonzero(np.isin(self._error, _RETRIED)).tolist():
            topic, partition = self._keys[row]
            missing.setdefault(topic, []).append(partition)
        return missing

    def begin(self, topics: Mapping[str, Topic], errors: Mapping[tuple[str, int], int]) -> None:
        """Begin a round of requests for the missing partitions; `errors` has those without a leader."""
        self._topics |= topics
        self._error[np.isin(self._error, _RETRIED)] = BrokerError.NONE
        for (topic, partition), error in errors.items():
            self._error[self._rows[topic][partition]] = error

    def fail(self, wanted: Mapping[str, Mapping[int, Leader]]) -> None:
        """Store that a leader does not answer."""
        self._error[self._rows_of(wanted)] = _NO_ANSWER

    def take(self, field: str, wanted: Mapping[str, Mapping[int, Leader]], response: Any, times: tuple[int, int]) -> None:
        """Store the answers of one leader; a partition that its response lacks has no answer."""
        failure = np.full(len(self._keys), BrokerError.NONE)
        failure[self._rows_of(wanted)] = _NO_ANSWER
        answered, error, offset, epoch = self._parts(response, wanted)
        failure[answered] = error
        is_good = error == BrokerError.NONE
        good = answered[is_good]
        self._columns[field][good] = offset[is_good]
        if field == "log_end":
            self._asked[good], self._answered[good] = times
            self._columns["leader_epoch"][good] = np.where(epoch == NO_EPOCH, NONE, epoch)[is_good]
        self._error = np.where(failure == BrokerError.NONE, self._error, failure)

    def _rows_of(self, wanted: Mapping[str, Mapping[int, Leader]]) -> Int64s:
        rows = [self._rows[topic][partition] for topic, partitions in wanted.items() for partition in partitions]
        return np.array(rows, np.int64)

    def _parts(self, response: Any, wanted: Mapping[str, Mapping[int, Leader]]) -> Int64s:
        """Row, error code, offset and leader epoch of each partition of a response that was requested."""
        parts = [
            (self._rows[topic.name][part.partition_index], part.error_code, part.offset, part.leader_epoch)
            for topic in response.topics or ()
            if topic.name in wanted
            for part in topic.partitions or ()
            if part.partition_index in wanted[topic.name]
        ]
        columns: Int64s = np.array(parts, np.int64).reshape(-1, 4).T
        return columns

    def table(self) -> pa.Table:
        """The samples; a partition with an error, or without a log end, has the reason and no offsets."""
        failed = (self._error != BrokerError.NONE) | (self._columns["log_end"] == NONE)
        start, end, stable, epoch = (np.where(failed, NONE, column) for column in self._columns.values())
        # requested after the log end, so it may be greater by now
        stable = np.minimum(stable, end)
        arrays = {
            "topic_id": pa.array([self._topic_id(topic) for topic in self._rows], pa.string()).take(self._topic_numbers()),
            "topic": pa.array(list(self._rows), pa.string()).take(self._topic_numbers()),
            "partition": pa.array([partition for _, partition in self._keys], pa.int32()),
            "asked_at": pa.array(self._asked * 1000),
            "answered_at": pa.array(np.maximum(self._asked, self._answered) * 1000),
            "log_start": nullable(start),
            "log_end": nullable(end),
            "last_stable": nullable(stable),
            "leader_epoch": nullable(epoch),
            "reason": _reasons(np.where(failed, self._error, BrokerError.NONE)),
        }
        return pa.table([arrays[field.name].cast(field.type) for field in END_OFFSETS_SCHEMA], schema=END_OFFSETS_SCHEMA)

    def _topic_id(self, name: str) -> str | None:
        topic = self._topics.get(name)
        return None if topic is None or topic.topic_id is None else uuid_text(topic.topic_id)

    def _topic_numbers(self) -> pa.Array:
        lengths = [len(rows) for rows in self._rows.values()]
        return pa.array(np.repeat(np.arange(len(lengths)), lengths))


def _reasons(errors: Numbers) -> pa.Array:
    codes, index = np.unique(errors, return_inverse=True)
    names = pa.array([None if code == BrokerError.NONE else _reason(code) for code in codes.tolist()], pa.string())
    return names.take(pa.array(index))


def _reason(error: int) -> str:
    return NO_ANSWER if error == _NO_ANSWER else reason_of(error)
