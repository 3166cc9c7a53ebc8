"""Metadata of one topic, and the meaning of its error codes for a reader."""

import logging
import math
import time
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any
from uuid import UUID

import kafka.errors

from coordinator_core.codec.uuids import uuid_text
from coordinator_core.log.errors import LogError, LogUnreachable, NotAuthorized, RequestRejected, TopicMissing, TopicRecreated

#: `Topic.GROUP_METADATA_TOPIC_NAME`.
OFFSETS_TOPIC = "__consumer_offsets"

NO_LEADER = -1
NO_EPOCH = -1
_ZERO_UUID = UUID(int=0)

_WITH_TOPIC_IDS = 10
#: In earlier versions, brokers may report epochs older than the leader's own (KAFKA-9212).
_WITH_RELIABLE_EPOCHS = 9

_FIRST_BACKOFF_SECONDS = 0.1
_LONGEST_BACKOFF_SECONDS = 2.0
#: Shorter waits, such as for a moving leader or an orderly restart, are not reported.
_REPORT_AFTER_SECONDS = 2.0

_LOGGER = logging.getLogger(__name__)


class BrokerError(IntEnum):
    """Codes of `org.apache.kafka.common.protocol.Errors` that a reader distinguishes."""

    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    UNKNOWN_TOPIC_OR_PARTITION = 3
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    BROKER_NOT_AVAILABLE = 8
    REPLICA_NOT_AVAILABLE = 9
    INVALID_TOPIC_EXCEPTION = 17
    TOPIC_AUTHORIZATION_FAILED = 29
    KAFKA_STORAGE_ERROR = 56
    FENCED_LEADER_EPOCH = 74
    UNKNOWN_LEADER_EPOCH = 75
    OFFSET_NOT_AVAILABLE = 78
    UNKNOWN_TOPIC_ID = 100
    INCONSISTENT_TOPIC_ID = 103


#: The leader moved, is moving, or does not know yet that it is the leader: refresh the metadata and retry.
TRANSIENT_ERRORS = frozenset(BrokerError) - {
    BrokerError.NONE,
    BrokerError.OFFSET_OUT_OF_RANGE,
    BrokerError.INVALID_TOPIC_EXCEPTION,
    BrokerError.TOPIC_AUTHORIZATION_FAILED,
}


@dataclass(frozen=True, slots=True)
class Leader:
    """Leader of a partition. `epoch` is -1 for brokers that do not report it reliably."""

    node: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic from a MetadataResponse. `topic_id` is None on brokers before 2.8."""

    name: str
    topic_id: UUID | None
    leaders: dict[int, Leader]


def topic_from(metadata: Any, name: str, expected_id: UUID | None) -> Topic:
    """Return the topic `name` of a MetadataResponse.

    Raises TopicMissing, NotAuthorized, TopicRecreated (its id is not `expected_id`), LogUnreachable (no leader yet).
    """
    for topic in metadata.topics or ():
        if topic.name == name:
            break
    else:
        raise TopicMissing(_missing(name))
    if topic.error_code != BrokerError.NONE:
        raise _topic_error(name, topic.error_code)
    found = _topic(metadata, topic)
    if expected_id is not None and found.topic_id is not None and found.topic_id != expected_id:
        raise TopicRecreated(
            f"topic {name} was deleted and created again: its id was {uuid_text(expected_id)} and is {uuid_text(found.topic_id)} "
            "now, and positions of the old log are invalid in the new one; start with new tables and a new checkpoint"
        )
    if not found.leaders:
        raise LogUnreachable(f"topic {name}: the broker returned no partition of it")
    return found


def topics_from(metadata: Any) -> dict[str, Topic | int]:
    """Return name → topic for the topics of a MetadataResponse, with the error code instead of a topic with an error."""
    return {
        topic.name: topic.error_code if topic.error_code != BrokerError.NONE else _topic(metadata, topic)
        for topic in metadata.topics or ()
    }


def _topic(metadata: Any, topic: Any) -> Topic:
    reliable = metadata.API_VERSION >= _WITH_RELIABLE_EPOCHS
    leaders = {
        partition.partition_index: Leader(partition.leader_id, partition.leader_epoch if reliable else NO_EPOCH)
        for partition in topic.partitions or ()
    }
    return Topic(topic.name, _topic_id(metadata, topic), dict(sorted(leaders.items())))


def topic_ids_from(metadata: Any) -> dict[UUID, str]:
    """Return id → name of all topics of a MetadataResponse; empty for brokers before 2.8."""
    named = [topic for topic in metadata.topics or () if topic.name]
    return {topic_id: topic.name for topic in named if (topic_id := _topic_id(metadata, topic)) is not None}


def _topic_id(metadata: Any, topic: Any) -> UUID | None:
    if metadata.API_VERSION < _WITH_TOPIC_IDS or topic.topic_id in (None, _ZERO_UUID):
        return None
    return UUID(int=topic.topic_id.int)


def _missing(name: str) -> str:
    return f"the cluster has no topic {name}: check the name and the cluster" + (
        " (brokers create it when the first group commits)" if name == OFFSETS_TOPIC else ""
    )


def _topic_error(name: str, code: int) -> LogError:
    if code in (BrokerError.UNKNOWN_TOPIC_OR_PARTITION, BrokerError.INVALID_TOPIC_EXCEPTION):
        return TopicMissing(_missing(name))
    return error_for(name, code) or LogUnreachable(f"topic {name}: {error_name(code)}")


def error_name(code: int) -> str:
    """Kafka's name of an error code, and the number."""
    known = code in frozenset(BrokerError)
    return f"{BrokerError(code).name if known else kafka.errors.for_code(code).message} ({code})"


#: Reason for a leader that did not answer, or left a partition out of its response.
NO_ANSWER = "leader_does_not_answer"


def reason_of(code: int) -> str:
    """Kafka's name of an error code in lower case, as in the column `reason` of samples."""
    return BrokerError(code).name.lower() if code in frozenset(BrokerError) else f"error_{code}"


def error_for(name: str, code: int) -> LogError | None:
    """The error to raise for an error code; None if a retry may help."""
    if code == BrokerError.TOPIC_AUTHORIZATION_FAILED:
        return NotAuthorized(
            f"not authorized to read topic {name}: the user needs the ACLs Describe and Read on it{_remedy(name)}"
        )
    if code in TRANSIENT_ERRORS:
        return None
    return RequestRejected(f"topic {name}: the broker returned {error_name(code)}")


def _remedy(name: str) -> str:
    """Another source, for users without Read on an internal topic."""
    return "; without Read, use --source kafka-groups://HOST:PORT, which reads no topic" if name == OFFSETS_TOPIC else ""


#: Beginnings of the two lines about an outage.
WAITING = "waiting for the brokers"
ANSWERING = "the brokers answer again"


class Patience:
    """Pauses between retries: doubling, up to a time limit counted from the last progress.

    A wait of more than two seconds is logged as a warning, once at its start and once at its end. `outage_seconds` is the limit
    while no broker or no leader answers; `limit_seconds` is that of other errors, such as a topic that a restarted broker does
    not know yet.
    """

    def __init__(self, limit_seconds: float, outage_seconds: float | None = None) -> None:
        self._limit = limit_seconds
        self._outage_limit = limit_seconds if outage_seconds is None else outage_seconds
        self._reported = False
        self._since = time.monotonic()
        self._other_since: float | None = None
        self._pause = _FIRST_BACKOFF_SECONDS

    def progress(self) -> None:
        """Reset the time limit and the pause after a response."""
        if self._reported:
            _LOGGER.warning("%s, after %.0f s", ANSWERING, time.monotonic() - self._since)
            self._reported = False
        self._since = time.monotonic()
        self._other_since = None
        self._pause = _FIRST_BACKOFF_SECONDS

    def spent(self, error: LogError) -> float:
        """Return the seconds that are left; raises `error` after the time limit."""
        now = time.monotonic()
        if isinstance(error, LogUnreachable):
            self._other_since = None
            limit, since = self._outage_limit, self._since
        else:
            # the brokers answer: their outage does not count
            self._other_since = self._other_since or (self._since if self._limit == self._outage_limit else now)
            limit, since = self._limit, self._other_since
        left = since + limit - now
        if left <= 0:
            raise type(error)(f"{error} (waited for {limit:g} s)") if self._reported else error
        return left

    def wait(self, error: LogError) -> None:
        """Pause before the next attempt, or raise `error` after the time limit."""
        left = self.spent(error)
        if time.monotonic() - self._since >= _REPORT_AFTER_SECONDS and not self._reported:
            bound = "" if left == math.inf else f", up to {self._limit:g} s"
            _LOGGER.warning("%s%s: %s", WAITING, bound, error)
            self._reported = True
        time.sleep(min(self._pause, left))
        self._pause = min(2 * self._pause, _LONGEST_BACKOFF_SECONDS)


def ranges(partitions: Iterable[int]) -> str:
    """Format partition numbers for messages, such as `0-3, 7`."""
    spans: list[list[int]] = []
    for partition in sorted(partitions):
        if spans and partition == spans[-1][1] + 1:
            spans[-1][1] = partition
        else:
            spans.append([partition, partition])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)
