"""A cleaned log loads to the same state.

Brokers themselves make exceptions, and the properties leave these out by name:
- Scala, a tombstone of a partition with a pending commit: before cleaning the COMMIT restores the offset, afterwards it does not.
- Java, simple groups: a commit makes one even if the commit was aborted or removed since, and after cleaning no record shows it.
  Without the simple group, offsets that an earlier group tombstone hid are no longer visible, and a cleaned-away group tombstone
  hides nothing any more.
- Java before 4.2 rejects some cleaned logs of consumer groups (KAFKA-19862); a total state has no such case.
"""

from collections.abc import Iterable

import pytest
from compaction import compacted
from hypothesis import given
from hypothesis import strategies as st
from loaded_logs import replay
from log_builder import Log
from state_strategies import well_behaved_logs

from coordinator_core.log.entries import LogRecord
from coordinator_core.state.group_state import GroupState

SCALA_LOGS = {
    "0.9": well_behaved_logs(java=False, transactions=False, version=0),
    "0.10": well_behaved_logs(java=False, transactions=False, version=1),
    "1": well_behaved_logs(java=False, transactions=True, version=1),
    "2": well_behaved_logs(java=False, transactions=True, version=3),
    "3": well_behaved_logs(java=False, transactions=True, version=3),
}
ENDS = st.integers(0, 100)


def loaded(records: Iterable[LogRecord], era: str) -> GroupState:
    state, anomalies = replay(records, era)
    assert [a for a in anomalies if a.kind != "unexpected_unload"] == []
    return state


@pytest.mark.parametrize("era", SCALA_LOGS)
@given(data=st.data(), end=ENDS, tombstones_before=ENDS)
def test_scala_eras(era: str, data: st.DataObject, end: int, tombstones_before: int) -> None:
    log: Log = data.draw(SCALA_LOGS[era])
    cleaned = compacted(log.records, end, tombstones_before)
    assert loaded(cleaned, era).snapshot() == loaded(log.records, era).snapshot()


@given(log=well_behaved_logs(java=True, transactions=True, version=3), end=ENDS, tombstones_before=ENDS)
def test_java_era(log: Log, end: int, tombstones_before: int) -> None:
    before, after = (loaded(records, "4") for records in (log.records, compacted(log.records, end, tombstones_before)))
    assert after.offsets.committed == before.offsets.committed
    assert after.offsets.pending == before.offsets.pending
    views = {g: group.view({}) for g, group in before.registry.groups.items()}
    assert {g: group.view({}) for g, group in after.registry.groups.items()} == views
    assert {g: dict(after.committed(g)) for g in views} == {g: dict(before.committed(g)) for g in views}


@given(log=well_behaved_logs(java=True, transactions=True, version=3), end=ENDS, tombstones_before=ENDS)
def test_cleaning_twice_changes_nothing_more(log: Log, end: int, tombstones_before: int) -> None:
    once = compacted(log.records, end, tombstones_before)
    assert compacted(once, end, tombstones_before) == once


def test_exception_of_scala() -> None:
    log = Log()
    log.commit(0, 1, producer=1)
    log.offset_tombstone(0)
    log.marker(1)
    assert len(loaded(log.records, "3").committed("group")) == 1
    assert len(loaded(compacted(log.records, 3, 0), "3").committed("group")) == 0


def test_exceptions_of_java() -> None:
    removed = Log()
    removed.commit(0, 1)
    removed.group()
    removed.group_tombstone()
    assert not loaded(removed.records, "4").has_group("group")
    assert len(loaded(compacted(removed.records, 3, 3), "4").committed("group")) == 1
    aborted = Log()
    aborted.commit(0, 1, producer=1)
    aborted.marker(1, 0)
    assert loaded(aborted.records, "4").has_group("group")
    assert not loaded(compacted(aborted.records, 2, 0), "4").has_group("group")
