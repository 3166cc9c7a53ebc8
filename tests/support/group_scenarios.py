"""Histories of groups for tests of status rules: a builder whose events need few words, and a strategy."""

from dataclasses import dataclass, field

from hypothesis import strategies as st
from lag_samples import sample_histories
from model_of_lag import TopicFacts
from model_of_status import ExpiryEvent, GroupHistory, PendingSpan

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.health import CommitEvent, EndOffsetSample, MembershipEvent, PendingCommit

ORDERS = tuple(TopicPartition("orders", number) for number in range(4))


@dataclass
class Scenario:
    """Events of one group on orders-0 to orders-3; times in seconds. Samples take no time and have a log start of 0."""

    commits: list[CommitEvent] = field(default_factory=list)
    samples: dict[TopicPartition, list[EndOffsetSample]] = field(default_factory=dict)
    memberships: list[MembershipEvent] = field(default_factory=list)
    rebalances: list[int] = field(default_factory=list)
    expiries: list[ExpiryEvent] = field(default_factory=list)
    pending: list[PendingSpan] = field(default_factory=list)
    facts: dict[str, TopicFacts] = field(default_factory=dict)
    is_polled: bool = False

    def commit(self, at: float, offset: int | None, partition: int = 0, epoch: int | None = 3) -> "Scenario":
        self.commits.append(CommitEvent(_ms(at), ORDERS[partition], offset, leader_epoch=epoch))
        return self

    def end(
        self, at: float, log_end: int | None, partition: int = 0, log_start: int = 0, stable: int | None = None
    ) -> "Scenario":
        times = (_ms(at), _ms(at))
        reason = "leader_not_available" if log_end is None else None
        start = None if log_end is None else log_start
        taken = EndOffsetSample("id", "orders", partition, *times, start, log_end, stable, reason=reason)
        self.samples.setdefault(ORDERS[partition], []).append(taken)
        return self

    def members(self, at: float, count: int, assigned: int | None = None, state: str = "Stable") -> "Scenario":
        self.memberships.append(MembershipEvent(_ms(at), state, count, count if assigned is None else assigned))
        return self

    def rebalance(self, *at: float) -> "Scenario":
        self.rebalances += [_ms(second) for second in at]
        return self

    def history(self) -> GroupHistory:
        return GroupHistory(
            "billing",
            tuple(self.commits),
            {partition: tuple(samples) for partition, samples in self.samples.items()},
            tuple(self.memberships),
            tuple(self.rebalances),
            tuple(self.expiries),
            tuple(self.pending),
            self.facts,
            is_polled=self.is_polled,
        )


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


times = st.integers(0, 120_000)
partitions = st.sampled_from(ORDERS[:2])


@st.composite
def group_histories(draw: st.DrawFn) -> GroupHistory:
    """Any events of a group on two partitions, oldest first."""
    commits = st.builds(
        CommitEvent,
        times,
        partitions,
        st.none() | st.integers(0, 12),
        st.sampled_from([None, None, "id0"]),
        st.sampled_from([None, 3]),
        st.sampled_from(["", "note"]),
        st.booleans(),
    )
    expiries = st.builds(ExpiryEvent, times, partitions, st.none() | times)
    states = st.sampled_from(["Stable", "Stable", "Empty", "Dead"])
    memberships = st.builds(MembershipEvent, times, states, st.integers(0, 3), st.integers(0, 3))
    pending = st.builds(
        lambda since, p, length: PendingSpan(PendingCommit(since, p), length and since + length),
        times,
        partitions,
        st.none() | times,
    )
    return GroupHistory(
        "billing",
        tuple(sorted(draw(st.lists(commits, max_size=12)), key=lambda event: event.at_ms)),
        {partition: draw(sample_histories()) for partition in draw(st.lists(partitions, unique=True))},
        tuple(sorted(draw(st.lists(memberships, max_size=4)), key=lambda event: event.at_ms)),
        tuple(sorted(draw(st.lists(times, max_size=8)))),
        tuple(sorted(draw(st.lists(expiries, max_size=3)), key=lambda event: event.at_ms)),
        tuple(draw(st.lists(pending, max_size=3))),
    )
