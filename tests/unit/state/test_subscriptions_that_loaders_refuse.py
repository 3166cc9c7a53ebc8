"""An invalid subscription, for which brokers since 2.4 give up the log partition, is reported as an anomaly and loaded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_builder import Log, member
from subscription_bytes import REFUSED, TAKEN

from coordinator_core.codec import Malformed, refused_by_loaders, subscribed_topics
from coordinator_core.state.anomaly import AnomalyKind


@pytest.mark.parametrize("data", TAKEN.values(), ids=TAKEN)
def test_taken(data: bytes) -> None:
    assert refused_by_loaders(data) is None


@pytest.mark.parametrize("data", REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("era", ["3", "4"])
def test_refused_is_reported_and_loaded(data: bytes, era: str) -> None:
    log = Log()
    log.group([member(subscription=data), member("m2")])
    state, anomalies = log.load_with_anomalies(era)
    assert [anomaly.kind for anomaly in anomalies] == [AnomalyKind.BAD_SUBSCRIPTION]
    assert anomalies[0].detail.startswith("subscription of member m1: ")
    view = state.group("group")
    assert view is not None
    assert view.subscribed_topics is None
    assert len(view.members) == 2


@pytest.mark.parametrize(
    ("era", "version", "protocol_type"), [("2", 3, "consumer"), ("0.10", 1, "consumer"), ("3", 3, "connect")]
)
def test_only_loaders_that_look_refuse(era: str, version: int, protocol_type: str) -> None:
    log = Log()
    log.group([member(subscription=REFUSED["null for topics"])], version=version, protocol_type=protocol_type)
    _, anomalies = log.load_with_anomalies(era)
    assert anomalies == []


@given(st.binary(max_size=24) | st.builds(bytes.__add__, st.just(b"\0\0\0\0\0\x01\0"), st.binary(max_size=12)))
def test_what_is_refused_has_no_topics(data: bytes) -> None:
    if refused_by_loaders(data) is not None:
        assert isinstance(subscribed_topics(data), Malformed)
