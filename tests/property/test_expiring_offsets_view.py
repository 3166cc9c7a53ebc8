"""Expiry in SQL: the view `expiring_offsets` and the sweep of `--expiry apply` agree with the pure functions of the core."""

import tempfile
from dataclasses import replace
from typing import Any

import pytest
from expecting import expect
from hypothesis import given, settings
from hypothesis import strategies as st
from log_builder import Log
from state_strategies import (
    EPOCHS,
    GROUPS,
    MODERN_VALUES,
    PRODUCERS,
    TIMES,
    Step,
    classic_groups,
    group_tombstones,
    markers,
    written,
)
from table_logs import applied

from coordinator_core.codec import Record, decode
from coordinator_core.health import NONE
from coordinator_core.log.record_batch import control_type
from coordinator_core.state.era import ALL_ERAS, Era
from coordinator_core.state.expiry import expire, expires_at
from coordinator_core.state.group_state import GroupState
from pipelines.batch.expiry_sweep import sweep
from pipelines.lag.tables.group_statuses import expiries
from pipelines.query.check import check
from pipelines.query.engine import Snapshot
from pipelines.runtime.timestamps import to_ms
from pipelines.tables.store import TableStore

pytestmark = pytest.mark.long

RETENTION_MS = 10
OFFSETS = "SELECT group_id, topic, partition FROM offsets"

#: Tables cost far more than rows in them, so one log holds this many small ones, each with groups and producers of its own.
LOGS = 16

_CONSUMER, _SHARE, _STREAMS = (3, 5, 6, 7, 8), (10, 11, 12, 13, 14), (17, 19, 20, 21, 22, 23)
_TOPICS = st.sampled_from(["foo", "t"])


@st.composite
def commits(draw: st.DrawFn) -> Step:
    """A commit for a topic that groups may be subscribed to or not."""
    group, topic, partition, producer = draw(GROUPS), draw(_TOPICS), draw(st.integers(0, 1)), draw(PRODUCERS)
    at, expires = draw(st.just(-1) | TIMES), draw(st.sampled_from([-1, -1, 5, 15]))
    return lambda log: log.commit(partition, 5, group=group, topic=topic, producer=producer, at=at, expires=expires, version=1)


@st.composite
def removals(draw: st.DrawFn) -> Step:
    group, topic, partition = draw(GROUPS), draw(_TOPICS), draw(st.integers(0, 1))
    return lambda log: log.offset_tombstone(partition, group=group, topic=topic)


@st.composite
def modern_groups(draw: st.DrawFn) -> Step:
    """Some of the records of a modern group, so that it is Empty, Stable or between."""
    group = draw(GROUPS)
    kinds = draw(st.sampled_from([_CONSUMER, _CONSUMER, _SHARE, _STREAMS]))
    records = [(kind, MODERN_VALUES[kind](draw(EPOCHS))) for kind in kinds if draw(st.booleans())]

    def write(log: Log) -> None:
        for kind, value in records:
            log.modern(kind, value, group=group)

    return write


_steps = st.one_of(
    commits(),
    commits(),
    commits(),
    removals(),
    markers(),
    *(classic_groups(version=version) for version in (0, 1, 3)),
    group_tombstones(),
    modern_groups(),
)


def joined(logs: list[Log]) -> Log:
    """One log of all, with groups and producers renamed so that they do not meet."""
    whole = Log(partition=3)
    for number, log in enumerate(logs):
        for record in log.records:
            producer = record.producer_id if record.producer_id == -1 else record.producer_id + 10 * number
            if record.is_control:
                whole.marker(producer, expect(int, control_type(record.key)))
                continue
            decoded = expect(Record, decode(record.key, record.value))
            name = "group" if hasattr(decoded.key, "group") else "group_id"
            renamed: dict[str, Any] = {name: f"{getattr(decoded.key, name)}{number}"}
            whole.append(decoded._replace(key=replace(decoded.key, **renamed)), producer=producer)
    return whole


LOG = st.lists(st.lists(_steps, min_size=1, max_size=6).map(written), min_size=1, max_size=LOGS).map(joined)


def rows(store: TableStore, sql: str) -> list[tuple[Any, ...]]:
    batch = store.last_batch()
    assert batch is not None
    return [tuple(row.values()) for row in Snapshot(store, batch).query(sql).to_pylist()]


def expected_expiry(state: GroupState, group_ids: set[str]) -> dict[tuple[Any, ...], int | None]:
    return {
        (group_id, *partition): expires_at(
            state.era,
            RETENTION_MS,
            state.group(group_id),
            partition.topic,
            offset,
            pending=partition in state.pending(group_id),
        )
        for group_id in group_ids
        for partition, offset in state.committed(group_id).items()
    }


def expect_first_expiries(store: TableStore, expected: dict[tuple[Any, ...], int | None]) -> None:
    """The offsets that expire first are those of a status until then, which does not read the view before."""
    batch = store.last_batch()
    assert batch is not None
    snapshot = Snapshot(store, batch)
    first = min((at for at in expected.values() if at is not None), default=0)
    positions = snapshot.query("SELECT group_id, topic, partition FROM committed_offsets")
    for until_ms in (first - 1, first):
        times = zip(positions.to_pylist(), expiries(snapshot, positions, until_ms).tolist(), strict=True)
        found = {tuple(key.values()): at for key, at in times if at != NONE}
        assert found == {key: at for key, at in expected.items() if at is not None and at <= until_ms}


@pytest.mark.parametrize("era_name", ALL_ERAS)
@settings(max_examples=max(2, (settings.default or settings()).max_examples // 15))
@given(log=LOG, now_ms=st.integers(0, 35))
def test_the_view_and_the_sweep_follow_the_core(era_name: str, log: Log, now_ms: int) -> None:
    era = Era.named(era_name)
    state = GroupState(era, 1_000, RETENTION_MS)
    for record in log.records:
        state.apply(record, None if record.is_control else decode(record.key, record.value))
    with tempfile.TemporaryDirectory() as root:
        store = applied(log, era, [], root, retention_ms=RETENTION_MS, again=False)
        if store.last_batch() is None:
            return
        group_ids = {f"{group}{number}" for group in "ab" for number in range(LOGS)}
        found = rows(store, "SELECT group_id, topic, partition, expires_at FROM expiring_offsets")
        expected = expected_expiry(state, group_ids)
        assert {tuple(key): None if at is None else to_ms(at) for *key, at in found} == expected
        assert len(found) == len(expected)
        expect_first_expiries(store, expected)

        swept = expire(state, now_ms)
        committed, groups = set(rows(store, OFFSETS)), set(rows(store, "SELECT group_id FROM groups"))
        sweep(store, era, RETENTION_MS, now_ms)
        gone = {(group.group_id, *partition) for group in swept for partition in group.offsets}
        removed = {(group.group_id,) for group in swept if group.group_removed}
        assert set(rows(store, OFFSETS)) == committed - gone
        assert set(rows(store, "SELECT group_id FROM groups")) == groups - removed
        assert gone <= committed
        assert removed <= groups
        assert check(root) == []
        assert sweep(store, era, RETENTION_MS, now_ms) is None
