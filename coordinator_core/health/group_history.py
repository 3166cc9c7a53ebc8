"""Events from which the status of a group is derived, each with the time since which it is known. Times in ms.

A status at a time depends on the events until then only, so it is the same for every longer history.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.health.end_offsets import EndOffsetSample, samples_until
from coordinator_core.health.lag_inputs import TopicFacts


class CommitEvent(NamedTuple):
    """A commit, or the removal of an offset (`offset` None). A row of `offset_history` is one or two of them."""

    at_ms: int
    partition: TopicPartition
    offset: int | None
    topic_id: str | None = None
    leader_epoch: int | None = None
    metadata: str = ""
    transactional: bool = False

    def after_rewind(self, min_offset: int | None) -> tuple["CommitEvent", ...]:
        """The events of a row with `change = 'rewind'`: the lowest commit of the batch, then this last one."""
        if min_offset is None or self.offset is None or min_offset >= self.offset:
            return (self,)
        return (self._replace(offset=min_offset), self)


class MembershipEvent(NamedTuple):
    """State and members of the group from this time on; state `Dead` after the group was deleted.

    `knows_partitions` is false for classic groups of another protocol type than `consumer`, such as `connect`: the partitions of
    their members cannot be read.
    """

    at_ms: int
    state: str
    members: int
    members_with_partitions: int
    knows_partitions: bool = True


class ExpiryEvent(NamedTuple):
    """Time at which a committed offset expires, as computed at `at_ms`; None for never."""

    at_ms: int
    partition: TopicPartition
    expires_at_ms: int | None


class PendingCommit(NamedTuple):
    """A commit in a transaction, from its record until its marker; `until_ms` is None while the transaction is open.

    `transactional_id` is that of its producer, None if unknown.
    """

    since_ms: int
    partition: TopicPartition
    until_ms: int | None = None
    transactional_id: str | None = None


@dataclass(frozen=True, slots=True)
class GroupHistory:
    """Events of one group, oldest first, and the samples of the partitions that it committed to.

    `rebalances` has the time of each new generation or group epoch. `facts` has properties of topics by name.
    """

    group_id: str
    commits: tuple[CommitEvent, ...] = ()
    samples: Mapping[TopicPartition, tuple[EndOffsetSample, ...]] = field(default_factory=dict)
    memberships: tuple[MembershipEvent, ...] = ()
    rebalances: tuple[int, ...] = ()
    expiries: tuple[ExpiryEvent, ...] = ()
    pending: tuple[PendingCommit, ...] = ()
    facts: Mapping[str, TopicFacts] = field(default_factory=dict)

    def until(self, at_ms: int) -> "GroupHistory":
        """The history as it was known at `at_ms`."""
        samples = {partition: samples_until(taken, at_ms) for partition, taken in self.samples.items()}
        return replace(
            self,
            commits=tuple(event for event in self.commits if event.at_ms <= at_ms),
            samples={partition: taken for partition, taken in samples.items() if taken},
            memberships=tuple(event for event in self.memberships if event.at_ms <= at_ms),
            rebalances=tuple(at for at in self.rebalances if at <= at_ms),
            expiries=tuple(event for event in self.expiries if event.at_ms <= at_ms),
            pending=tuple(
                commit if commit.until_ms is None or commit.until_ms <= at_ms else commit._replace(until_ms=None)
                for commit in self.pending
                if commit.since_ms <= at_ms
            ),
        )
