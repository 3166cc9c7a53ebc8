"""Events of a group: commits, memberships, commits in transactions. Times in ms."""

from typing import NamedTuple

from coordinator_core.codec.topic_partition import TopicPartition


class CommitEvent(NamedTuple):
    """A commit, or the removal of an offset (`offset` None). A row of `offset_history` is one or two of them.

    - `of_several`: one of several commits of the partition in its batch, of which only the last is known, and the lowest of those
      that went back.
    - `went_back`: lower than the commit before it, which may be one of its batch that is not known.
    - `is_lowest`: the lowest of them, and not the last: time, client and metadata are those of the last one.
    """

    at_ms: int
    partition: TopicPartition
    offset: int | None
    topic_id: str | None = None
    leader_epoch: int | None = None
    metadata: str = ""
    transactional: bool = False
    batch_id: int | None = None
    of_several: bool = False
    is_lowest: bool = False
    went_back: bool = False

    def after_rewind(self, min_offset: int | None) -> tuple["CommitEvent", ...]:
        """The events of a row with `change = 'rewind'`: the lowest commit that went back, and this last one if it is another."""
        if min_offset is None or self.offset is None or min_offset > self.offset:
            return (self,)
        if min_offset == self.offset:
            return (self._replace(went_back=True),)
        lowest = self._replace(offset=min_offset, is_lowest=True, went_back=True)
        return (lowest, self._replace(of_several=False))


class MembershipEvent(NamedTuple):
    """State and members of the group from this time on; state `Dead` after the group was deleted.

    `knows_partitions` is false for classic groups of another protocol type than `consumer`, such as `connect`: the partitions of
    their members cannot be read. `idle_client` and `idle_host` are those of a member without partitions, if only one has none.
    """

    at_ms: int
    state: str
    members: int
    members_with_partitions: int
    knows_partitions: bool = True
    batch_id: int | None = None
    idle_client: str | None = None
    idle_host: str | None = None


class PendingCommit(NamedTuple):
    """A commit in a transaction, from its record until its marker.

    `since_ms` is the start of its transaction, or the time of the record if that is unknown. `transactional_id` is that of its
    producer, None if unknown.
    """

    since_ms: int
    partition: TopicPartition
    transactional_id: str | None = None
    producer_id: int | None = None
