"""A consumer group without members, read and written by a consumer of confluent-kafka that subscribes to nothing.

Its admin client has the same requests, but ends the process when the coordinator of the group has just moved
(librdkafka issue 5040, seen with 2.16).
"""

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipelines.group_commits.commit_rules import Place, StoredCommit
from pipelines.runtime.errors import GrouplakeError, UsageError

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, KafkaException, TopicPartition

#: UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, STALE_MEMBER_EPOCH: a group with members takes commits of its members only.
_OF_LIVE_GROUPS = (25, 22, 113)
_REQUEST_SECONDS = 10.0
_POLL_SECONDS = 0.1
_OPTIONS = {"log_level": 0, "enable.auto.commit": False, "socket.timeout.ms": round(_REQUEST_SECONDS * 1000)}


class CommitFailed(GrouplakeError):
    """A request failed; a later attempt may succeed."""


class GroupIsLive(GrouplakeError):
    """The group has members, and only they may commit."""


@dataclass(frozen=True, slots=True)
class _Answer:
    """The answer to a commit of these offsets."""

    offsets: Mapping[Place, int]
    error: "KafkaError | None"
    partitions: "list[TopicPartition]"


class KafkaGroup:
    """One group of one cluster. `options` are those of librdkafka, with `bootstrap.servers`.

    Raises:
        UsageError: confluent-kafka is not installed, or an option is invalid.
    """

    def __init__(self, group_id: str, options: Mapping[str, object]) -> None:
        try:
            from confluent_kafka import Consumer, KafkaException
        except ImportError as error:
            raise UsageError("commits of offsets need confluent-kafka: pip install 'grouplake[group-commits]'") from error
        self.group_id = group_id
        self._answer: _Answer | None = None
        try:
            self._client = Consumer({**_OPTIONS, **options, "group.id": group_id, "on_commit": self._answered})
        except (KafkaException, TypeError, ValueError) as error:
            raise UsageError(f"options of the Kafka client: {error}") from error

    def stored(self, places: Collection[Place]) -> dict[Place, StoredCommit]:
        """The commits of these partitions; a partition without one is left out.

        Raises:
            CommitFailed: no answer, or an error of the coordinator or of a partition.
        """
        from confluent_kafka import KafkaException, TopicPartition

        try:
            found = self._client.committed([TopicPartition(*place) for place in places], _REQUEST_SECONDS)
        except KafkaException as error:
            raise _failure(error) from error
        _check(found)
        return {(at.topic, at.partition): StoredCommit(at.offset, at.metadata or "") for at in found if at.offset >= 0}

    def commit(self, offsets: Mapping[Place, int], metadata: str) -> None:
        """Commit, as OffsetCommit with generation -1 and without a member.

        Raises:
            GroupIsLive: the group has members.
            CommitFailed: no answer, or another error; the commit may have been made.
        """
        from confluent_kafka import KafkaException, TopicPartition

        wanted = [TopicPartition(*place, offset, metadata) for place, offset in sorted(offsets.items())]
        try:
            self._answer = None
            # a synchronous commit to a coordinator that has ended does not return
            self._client.commit(offsets=wanted, asynchronous=True)
            self._await_answer(offsets)
        except KafkaException as error:
            raise _failure(error) from error

    def close(self) -> None:
        """End the client."""
        self._client.close()

    def _await_answer(self, offsets: Mapping[Place, int]) -> None:
        from confluent_kafka import KafkaException

        end = time.monotonic() + _REQUEST_SECONDS
        while time.monotonic() < end:
            self._client.poll(_POLL_SECONDS)
            # the answer to an earlier commit may come late
            if self._answer is not None and self._answer.offsets == offsets:
                if self._answer.error is not None:
                    raise _failure(KafkaException(self._answer.error))
                _check(self._answer.partitions)
                return
        raise CommitFailed(f"no answer within {_REQUEST_SECONDS:.0f} s")

    def _answered(self, error: "KafkaError | None", partitions: "list[TopicPartition]") -> None:
        self._answer = _Answer({(at.topic, at.partition): at.offset for at in partitions}, error, partitions)


def _check(partitions: "list[TopicPartition] | None") -> None:
    from confluent_kafka import KafkaException

    for at in partitions or ():
        if at.error is not None:
            raise _failure(KafkaException(at.error), f" for {at.topic}-{at.partition}")


def _failure(error: "KafkaException", where: str = "") -> GrouplakeError:
    reason = error.args[0]
    if reason.code() in _OF_LIVE_GROUPS:
        return GroupIsLive("the group has live members, and only they may commit")
    return CommitFailed(f"{reason.name()}{where}")
