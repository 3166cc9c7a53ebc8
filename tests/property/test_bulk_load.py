"""A load by reduction equals the load record by record: the same groups, offsets, pending offsets and anomalies."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from loaded_logs import ERA_OF_LOG, NOW_MS, log_records, replay
from log_builder import Log
from offset_logs import ERAS
from state_strategies import any_steps, logs, well_behaved_logs

from coordinator_core.log.columns import columns_of
from coordinator_core.log.entries import LogRecord
from coordinator_core.reduction.bulk_load import load_columns
from coordinator_core.state.era import Era
from coordinator_core.state.group_state import GroupState

#: Older ones know no producers, and their handling of logs with producers has never been observed.
eras = st.sampled_from([*(era for era in ERAS if Era.named(era).knows_transactions), "3", "4"])


def expect_the_same(records: Sequence[LogRecord], era: str, cut: int = 0) -> None:
    """Load by reduction, in two pieces cut at `cut`, and record by record; both must be equal."""
    state = GroupState(Era.named(era), NOW_MS)
    partition = records[0].partition if records else 0
    pieces = [columns_of(part, next_offset=part[-1].offset + 1) for part in (records[:cut], records[cut:]) if part]
    found = [*load_columns(state, partition, pieces), *state.finish_load()]
    expected, anomalies = replay(records, era, NOW_MS)
    assert state.snapshot() == expected.snapshot()
    assert state.offsets.last_commit_at == expected.offsets.last_commit_at
    assert {g: each for g, each in state.offsets.committed.items() if each} == {
        g: each for g, each in expected.offsets.committed.items() if each
    }
    assert found == anomalies


@given(logs(any_steps()), st.integers(0, 25), eras)
def test_any_log(log: Log, cut: int, era: str) -> None:
    expect_the_same(log.records, era, cut)


@given(well_behaved_logs(java=True, transactions=True, version=3), st.integers(0, 25))
def test_logs_of_a_coordinator(log: Log, cut: int) -> None:
    expect_the_same(log.records, "4", cut)


@given(well_behaved_logs(java=False, transactions=False, version=0), st.integers(0, 25), st.sampled_from(["0.9", "0.10"]))
def test_logs_from_before_transactions(log: Log, cut: int, era: str) -> None:
    expect_the_same(log.records, era, cut)


def test_genuine_logs() -> None:
    for version, era in ERA_OF_LOG.items():
        records = log_records(version)
        for partition in {record.partition for record in records}:
            expect_the_same([record for record in records if record.partition == partition], era)
