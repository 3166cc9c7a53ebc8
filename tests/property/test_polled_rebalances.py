"""Polls never see more rebalances than there were, whenever they come."""

from collections import Counter
from itertools import pairwise

from group_lives import TOPIC_ID, Life, lives
from hypothesis import given
from hypothesis import strategies as st
from log_builder import NOW_MS, Log
from polled_groups import FollowedPolls
from polled_states import polled_group

from coordinator_core.codec import Record, decode
from coordinator_core.codec.messages.classic import GroupMetadataValue
from coordinator_core.codec.messages.consumer import ConsumerGroupMetadataValue
from coordinator_core.group_polls.group_poll import GroupPoll
from coordinator_core.group_polls.poll_fold import PollFold
from coordinator_core.state.era import Era
from coordinator_core.state.group_state import GroupState
from coordinator_core.state.registry import group_id_of

ERA = Era.named("4")


class PolledLog:
    """A log that is read as coordinators do, and polled; `seen` are the rebalances of the polls by group.

    `made` are the records of groups, of which a rebalance has one.
    """

    def __init__(self, log: Log) -> None:
        self._log, self._read = log, 0
        self._state, self._fold, self._tables = GroupState(ERA, NOW_MS), PollFold(ERA), FollowedPolls()
        self.made: Counter[str] = Counter()

    def poll(self, until: int) -> None:
        for record in self._log.records[self._read : until]:
            decoded = decode(record.key, record.value)
            self._state.apply(record, decoded)
            if isinstance(decoded, Record) and isinstance(decoded.value, (GroupMetadataValue, ConsumerGroupMetadataValue)):
                self.made[group_id_of(decoded)] += 1
        self._read = until
        answers = {group: polled_group(self._state, group, self._fold) for group in ("a", "b")}
        poll = GroupPoll(NOW_MS + until, NOW_MS + until, answers, topic_names={TOPIC_ID: "foo"})
        self._tables.merge(self._fold.apply(poll, self._tables.next_offset))

    @property
    def seen(self) -> Counter[str]:
        return Counter(group for group, change, _ in self._tables.changes if change == "rebalance")


@given(lives(), st.lists(st.integers(0, 40), max_size=12))
def test_polls_see_at_most_the_rebalances_of_the_log(log: Log, polls: list[int]) -> None:
    followed = PolledLog(log)
    for until in sorted({min(at, log.end) for at in polls} | {log.end}):
        followed.poll(until)
    assert {group: count for group, count in followed.seen.items() if count > followed.made[group]} == {}


@given(st.lists(st.sampled_from(["m2", "m3"]), min_size=1, max_size=8))
def test_a_poll_after_each_change_of_members_sees_every_rebalance(names: list[str]) -> None:
    log = Log(partition=3)
    life, members = Life(log, "a"), {"m1": "foo"}
    life.classic(members, {0: "m1"}, next_generation=True)
    for name in names:
        members = {each: "foo" for each in members.keys() ^ {name}}
        life.classic(members, {0: max(members)}, next_generation=True)
    followed = PolledLog(log)
    for _, until in pairwise(range(log.end + 1)):
        followed.poll(until)
    # the first one may be older than the first poll
    assert followed.seen["a"] == followed.made["a"] - 1 == len(names)
