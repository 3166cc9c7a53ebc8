"""A state takes any records in any order, and its groups can be rebuilt from the records they keep."""

from hypothesis import given, settings
from hypothesis import strategies as st
from loaded_logs import replay
from log_builder import Log
from state_strategies import any_steps, logs

from coordinator_core.codec import Record, decode
from coordinator_core.state.anomaly import Anomaly, AnomalyKind
from coordinator_core.state.era import ALL_ERAS, Era
from coordinator_core.state.expiry import expire
from coordinator_core.state.registry import GroupRegistry

#: The era is drawn with the log; more examples than usual, so that each era gets some.
BY_ERA = settings(max_examples=2 * settings().max_examples)
ANY_ERA = st.sampled_from(sorted(ALL_ERAS))


@BY_ERA
@given(era=ANY_ERA, log=logs(any_steps()))
def test_apply_is_total(era: str, log: Log) -> None:
    state, anomalies = replay(log.records, era)
    snapshot = state.snapshot()
    expire(state, 2**62)
    assert all(isinstance(anomaly, Anomaly) for anomaly in anomalies)
    assert all(anomaly.offset < log.end for anomaly in anomalies)
    assert set(snapshot.committed) <= set(snapshot.groups) or not Era.named(era).simple_groups
    for group_id, view in snapshot.groups.items():
        assert view.group_id == group_id
        assert state.has_group(group_id)
        assert state.group(group_id) == view


@BY_ERA
@given(era=ANY_ERA, log=logs(any_steps()))
def test_every_undecodable_record_is_reported_once(era: str, log: Log) -> None:
    _, anomalies = replay(log.records, era)
    undecodable = [r.offset for r in log.records if not r.is_control and not isinstance(decode(r.key, r.value), Record)]
    reported = [a.offset for a in anomalies if a.group_id is None and a.kind is not AnomalyKind.BAD_CONTROL_RECORD]
    assert reported == undecodable


@BY_ERA
@given(era=st.sampled_from(["3", "4", "4"]), log=logs(any_steps(), max_size=30))
def test_groups_are_rebuilt_from_their_records(era: str, log: Log) -> None:
    state, _ = replay(log.records, era)
    for group_id, group in state.registry.groups.items():
        rebuilt = GroupRegistry(Era.named(era))
        for record in sorted(group.records.values(), key=lambda record: record.offset):
            decoded = decode(record.key, record.value)
            assert isinstance(decoded, Record)
            assert decoded.value is not None
            assert rebuilt.apply(record, decoded) == () or group.view({}).group_type == "classic"
        assert rebuilt.groups.keys() == {group_id}
        assert rebuilt.groups[group_id].view({}) == group.view({})
        assert rebuilt.groups[group_id].records == group.records
