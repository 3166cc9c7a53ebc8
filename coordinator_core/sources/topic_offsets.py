"""Samples of log start, log end and last stable offset of any topics of a cluster, for the lag of groups."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from coordinator_core.codec.uuids import uuid_text
from coordinator_core.health.end_offsets import EndOffsetSample
from coordinator_core.log.errors import LogError
from coordinator_core.sources.kafka_connection import borrow_connection, give_back
from coordinator_core.sources.kafka_options import parse_address
from coordinator_core.sources.kafka_requests import EARLIEST, LATEST, READ_COMMITTED, READ_UNCOMMITTED, offsets_request
from coordinator_core.sources.kafka_topic import (
    NO_EPOCH,
    NO_LEADER,
    TRANSIENT_ERRORS,
    BrokerError,
    Leader,
    Topic,
    topics_from,
)

TopicPartitions = Mapping[str, Iterable[int]]

#: A leader that has moved is looked up again this many times; sampling never waits for one.
_ROUNDS = 3

#: The leader did not answer, or left the partition out of its response.
_NO_ANSWER = -1
#: Errors that a new look at the metadata may end.
_RETRIED = frozenset({*TRANSIENT_ERRORS, _NO_ANSWER})

_Key = tuple[str, int]
#: Node → topic → partition → leader.
_Leaders = dict[int, dict[str, dict[int, Leader]]]


@dataclass(slots=True)
class _Offsets:
    """The answers for one partition so far. `error` is the last error code, or _NO_ANSWER; the times are those of `log_end`."""

    asked_at_ms: int
    answered_at_ms: int
    log_start: int | None = None
    log_end: int | None = None
    last_stable: int | None = None
    leader_epoch: int | None = None
    topic_id: UUID | None = None
    error: int = _NO_ANSWER


class TopicOffsetsSampler:
    """Samples topics of the cluster of a `kafka://` address, over the connections that readers of the cluster share.

    `now_ms` is the clock. For one thread at a time.
    """

    def __init__(self, address: str, options: Mapping[str, str] | None, now_ms: Callable[[], int]) -> None:
        self._servers = parse_address(address).servers
        self._options = dict(options or {})
        self._now_ms = now_ms

    def sample(self, wanted: TopicPartitions, *, with_last_stable: bool = True) -> list[EndOffsetSample]:
        """Sample every partition once, with a request of each kind per leader (Metadata, ListOffsets).

        A partition without an answer has a sample with the reason, and the others are complete: a topic that is missing, not
        authorized or without a leader, or a broker that does not answer. The requests of all leaders run in parallel, so all
        samples have the same times. Raises LogError only if no broker answers at all.
        """
        keys = [(topic, partition) for topic, partitions in sorted(wanted.items()) for partition in sorted(set(partitions))]
        if not keys:
            return []
        connection = borrow_connection(self._servers, self._options)
        try:
            now_ms = self._now_ms()
            found = {key: _Offsets(now_ms, now_ms) for key in keys}
            missing = keys
            for _ in range(_ROUNDS):
                topics = topics_from(connection.metadata(sorted({topic for topic, _ in missing})))
                by_node = _by_leader(missing, topics, found)
                for field, position, isolation in _requests(with_last_stable):
                    requests = {node: offsets_request(leaders, position, isolation) for node, leaders in by_node.items()}
                    asked_at_ms = self._now_ms()
                    for node, response in connection.send_all(requests).items():
                        _take(response, by_node[node], found, field, (asked_at_ms, self._now_ms()))
                missing = [key for key in missing if found[key].error in _RETRIED]
                if not missing:
                    break
        finally:
            give_back(self._servers, self._options, connection)
        return [_as_sample(key, found[key]) for key in keys]


def _requests(with_last_stable: bool) -> list[tuple[str, int, int]]:
    """The fields of a sample, with the position and the isolation level that ListOffsets asks for."""
    requests = [("log_start", EARLIEST, READ_UNCOMMITTED), ("log_end", LATEST, READ_UNCOMMITTED)]
    return [*requests, ("last_stable", LATEST, READ_COMMITTED)] if with_last_stable else requests


def _by_leader(keys: Iterable[_Key], topics: Mapping[str, Topic | int], found: Mapping[_Key, _Offsets]) -> _Leaders:
    """Group partitions by leader; those without one get the error."""
    by_node: _Leaders = {}
    for key in keys:
        offsets, topic = found[key], topics.get(key[0], BrokerError.UNKNOWN_TOPIC_OR_PARTITION)
        if not isinstance(topic, Topic):
            offsets.error = topic
            continue
        offsets.topic_id = topic.topic_id
        leader = topic.leaders.get(key[1])
        if leader is None:
            offsets.error = BrokerError.UNKNOWN_TOPIC_OR_PARTITION
        elif leader.node == NO_LEADER:
            offsets.error = BrokerError.LEADER_NOT_AVAILABLE
        else:
            offsets.error = BrokerError.NONE
            by_node.setdefault(leader.node, {}).setdefault(key[0], {})[key[1]] = leader
    return by_node


def _take(
    response: Any, leaders: Mapping[str, Iterable[int]], found: dict[_Key, _Offsets], field: str, times: tuple[int, int]
) -> None:
    """Store the answers of one leader; a partition that its response lacks has no answer."""
    answers = {}
    if not isinstance(response, LogError):
        answers = {(topic.name, each.partition_index): each for topic in response.topics or () for each in topic.partitions or ()}
    for key in ((topic, partition) for topic, partitions in leaders.items() for partition in partitions):
        offsets, answer = found[key], answers.get(key)
        error = _NO_ANSWER if answer is None else answer.error_code
        if error != BrokerError.NONE:
            offsets.error = error
        elif answer is not None:
            setattr(offsets, field, answer.offset)
            if field == "log_end":
                offsets.asked_at_ms, offsets.answered_at_ms = times
                offsets.leader_epoch = None if answer.leader_epoch == NO_EPOCH else answer.leader_epoch


def _as_sample(key: _Key, offsets: _Offsets) -> EndOffsetSample:
    name, partition = key
    sample = EndOffsetSample(
        topic_id=None if offsets.topic_id is None else uuid_text(offsets.topic_id),
        topic=name,
        partition=partition,
        asked_at_ms=offsets.asked_at_ms,
        answered_at_ms=max(offsets.asked_at_ms, offsets.answered_at_ms),
        log_start=None,
        log_end=None,
        reason=_reason(offsets.error),
    )
    if offsets.error != BrokerError.NONE or offsets.log_end is None:
        return sample
    stable = offsets.last_stable
    return replace(
        sample,
        log_start=offsets.log_start,
        log_end=offsets.log_end,
        # requested after the log end, so it may be greater by now
        last_stable=None if stable is None else min(stable, offsets.log_end),
        leader_epoch=offsets.leader_epoch,
        reason=None,
    )


def _reason(error: int) -> str:
    """Kafka's name of the error in lower case; `leader_does_not_answer` without one."""
    if error == _NO_ANSWER:
        return "leader_does_not_answer"
    known = error in frozenset(BrokerError)
    return BrokerError(error).name.lower() if known else f"error_{error}"
