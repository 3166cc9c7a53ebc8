"""Sweeps: expired offsets stay expired, and the records of a sweep have the effect that the sweep returned."""

from hypothesis import given, settings
from hypothesis import strategies as st
from loaded_logs import replay
from log_builder import Log
from state_strategies import any_steps, logs

from coordinator_core.codec import decode
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.log.entries import LogRecord
from coordinator_core.state.era import ALL_ERAS
from coordinator_core.state.expiry import expire, expires_at
from coordinator_core.state.group_state import GroupState

#: The era is drawn with the log; more examples than usual, so that each era gets some.
BY_ERA = settings(max_examples=2 * settings().max_examples)
ANY_ERA = st.sampled_from(sorted(ALL_ERAS))
RETENTION = 10
NOW = st.integers(0, 60)
LOGS = logs(any_steps())


def expired(state: GroupState, now_ms: int) -> set[tuple[str, TopicPartition]]:
    return {(swept.group_id, partition) for swept in expire(state, now_ms, RETENTION) for partition in swept.offsets}


@BY_ERA
@given(era=ANY_ERA, log=LOGS, first=NOW, second=NOW)
def test_expiry_is_monotone_in_time(era: str, log: Log, first: int, second: int) -> None:
    state, _ = replay(log.records, era)
    first, second = sorted((first, second))
    assert expired(state, first) <= expired(state, second)
    gone = {swept.group_id for swept in expire(state, first, RETENTION) if swept.group_removed}
    assert gone <= {swept.group_id for swept in expire(state, second, RETENTION) if swept.group_removed}


@BY_ERA
@given(era=ANY_ERA, log=LOGS, now_ms=NOW)
def test_sweeps_and_expires_at_agree(era: str, log: Log, now_ms: int) -> None:
    state, _ = replay(log.records, era)
    found = expired(state, now_ms)
    for group_id in state.offsets.groups_with_commits():
        for partition, offset in state.committed(group_id).items():
            at = expires_at(
                state.era,
                RETENTION,
                state.group(group_id),
                partition.topic,
                offset,
                pending=partition in state.pending(group_id),
            )
            assert ((group_id, partition) in found) == (at is not None and now_ms >= at)


@BY_ERA
@given(era=ANY_ERA, log=LOGS, now_ms=NOW)
def test_tombstones_have_the_effect_that_the_sweep_reported(era: str, log: Log, now_ms: int) -> None:
    state, _ = replay(log.records, era)
    swept = expire(state, now_ms, RETENTION)
    offset = log.end
    for key, value in (tombstone for group in swept for tombstone in group.tombstones):
        assert state.apply(LogRecord(0, offset, now_ms, key, value), decode(key, value)) == ()
        offset += 1
    for group in swept:
        assert not set(group.offsets) & set(state.committed(group.group_id))
        if group.group_removed and len(group.tombstones) > len(group.offsets):
            assert not state.has_group(group.group_id)
    again = expire(state, now_ms, RETENTION)
    assert [group.tombstones for group in again if group.tombstones] == []
