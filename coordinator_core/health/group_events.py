"""Events of a group: commits, memberships, commits in transactions. Times in ms."""

from collections.abc import Sequence
from typing import NamedTuple

from coordinator_core.codec.topic_partition import TopicPartition

_DEAD = "Dead"


class CommitEvent(NamedTuple):
    """A commit, or the removal of an offset (`offset` None). A row of `offset_history` is one or two of them.

    - `of_several`: one of several commits of the partition in its batch, of which only the last is known, and the lowest of those
      that went back. `commits`: their number.
    - `went_back`: lower than the commit before it, which may be one of its batch that is not known.
    - `is_lowest`: the lowest of them, and not the last: time, client and metadata are those of the last one.
    - `log_offset`: that of its record, which orders the events of its batch; None if their order is unknown, as within a poll.
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
    commits: int = 1
    log_offset: int | None = None

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
    their members cannot be read. `unreadable` members of a group of consumers have an assignment that cannot be read.
    `spare` members have no partitions because there are none for them: members outnumber partitions, or hold standby tasks.
    `idle_client` and `idle_host` are those of the only other member without partitions, if there is one.
    `log_offset` is as in `CommitEvent`.
    """

    at_ms: int
    state: str
    members: int
    members_with_partitions: int
    knows_partitions: bool = True
    batch_id: int | None = None
    idle_client: str | None = None
    idle_host: str | None = None
    unreadable: int = 0
    spare: int = 0
    log_offset: int | None = None

    def is_before(self, commit: CommitEvent) -> bool:
        """True if the group was in this state at a commit.

        The order of the log decides where it is known: a member that leaves may do so in the millisecond of its last commit.
        """
        if self.batch_id is None or commit.batch_id is None:
            return self.at_ms <= commit.at_ms
        if self.batch_id != commit.batch_id:
            return self.batch_id < commit.batch_id
        if self.log_offset is None or commit.log_offset is None:
            return self.at_ms <= commit.at_ms
        return self.log_offset < commit.log_offset

    @property
    def idle(self) -> int:
        """Number of members that have no partitions for certain, although there are some for them."""
        without = self.members - self.members_with_partitions - self.unreadable - self.spare
        return max(0, without) if self.knows_partitions else 0


def present_membership(events: Sequence[MembershipEvent]) -> MembershipEvent | None:
    """The newest of the memberships of a group, oldest first; None for none, and after its deletion.

    Offsets that were committed since then are those of a simple group, which has no membership.
    """
    return events[-1] if events and events[-1].state != _DEAD else None


class PendingCommit(NamedTuple):
    """A commit in a transaction, from its record until its marker.

    `since_ms` is the start of its transaction, or the time of the record if that is unknown. `transactional_id` is that of its
    producer, None if unknown.
    """

    since_ms: int
    partition: TopicPartition
    transactional_id: str | None = None
    producer_id: int | None = None
