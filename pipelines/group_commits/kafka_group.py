"""A consumer group without members, read and written by confluent-kafka's admin client."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from pipelines.group_commits.commit_rules import Place, StoredCommit
from pipelines.runtime.errors import GrouplakeError, UsageError

if TYPE_CHECKING:
    from confluent_kafka import KafkaException

#: UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, STALE_MEMBER_EPOCH: a group with members takes commits of its members only.
_OF_LIVE_GROUPS = (25, 22, 113)
_REQUEST_SECONDS = 10.0
#: The client library ends a request after its time; this is for one that it forgets.
_ANSWER_SECONDS = 3 * _REQUEST_SECONDS
_UNANSWERED = f"no answer within {_ANSWER_SECONDS:.0f} s"
_QUIET = {"log_level": 0}


class CommitFailed(GrouplakeError):
    """A request failed; a later attempt may succeed."""


class GroupIsLive(GrouplakeError):
    """The group has members, and only they may commit."""


class KafkaGroup:
    """One group of one cluster. `options` are those of librdkafka, with `bootstrap.servers`.

    Raises:
        UsageError: confluent-kafka is not installed, or an option is invalid.
    """

    def __init__(self, group_id: str, options: Mapping[str, object]) -> None:
        try:
            from confluent_kafka import KafkaException
            from confluent_kafka.admin import AdminClient
        except ImportError as error:
            raise UsageError("commits of offsets need confluent-kafka: pip install 'grouplake[group-commits]'") from error
        self.group_id = group_id
        try:
            self._admin = AdminClient({**_QUIET, **options})
        except (KafkaException, TypeError, ValueError) as error:
            raise UsageError(f"options of the Kafka client: {error}") from error

    def stored(self, places: Collection[Place]) -> dict[Place, StoredCommit]:
        """The commits of these partitions; a partition without one is left out.

        Raises:
            CommitFailed: no answer, or an error of the coordinator or of a partition.
        """
        from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException

        asked = [ConsumerGroupTopicPartitions(self.group_id)]
        try:
            (future,) = self._admin.list_consumer_group_offsets(asked, request_timeout=_REQUEST_SECONDS).values()
            found = future.result(_ANSWER_SECONDS).topic_partitions
        except KafkaException as error:
            raise _failure(error) from error
        except TimeoutError as error:
            raise CommitFailed(_UNANSWERED) from error
        self._check(found)
        commits = {(at.topic, at.partition): StoredCommit(at.offset, at.metadata or "") for at in found if at.offset >= 0}
        return {place: commits[place] for place in places if place in commits}

    def commit(self, offsets: Mapping[Place, int], metadata: str) -> None:
        """Commit, as OffsetCommit with generation -1 and without a member.

        Raises:
            GroupIsLive: the group has members.
            CommitFailed: no answer, or another error; the commit may have been made.
        """
        from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition

        wanted = [TopicPartition(*place, offset, metadata) for place, offset in sorted(offsets.items())]
        asked = [ConsumerGroupTopicPartitions(self.group_id, wanted)]
        try:
            (future,) = self._admin.alter_consumer_group_offsets(asked, request_timeout=_REQUEST_SECONDS).values()
            self._check(future.result(_ANSWER_SECONDS).topic_partitions)
        except KafkaException as error:
            raise _failure(error) from error
        except TimeoutError as error:
            raise CommitFailed(_UNANSWERED) from error

    def _check(self, partitions: object) -> None:
        from confluent_kafka import KafkaException

        assert isinstance(partitions, list)
        for at in partitions:
            if at.error is not None:
                raise _failure(KafkaException(at.error), f" for {at.topic}-{at.partition}")


def _failure(error: "KafkaException", where: str = "") -> GrouplakeError:
    reason = error.args[0]
    if reason.code() in _OF_LIVE_GROUPS:
        return GroupIsLive("the group has live members, and only they may commit")
    return CommitFailed(f"{reason.name()}{where}")
