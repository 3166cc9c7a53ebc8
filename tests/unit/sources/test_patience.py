"""The time that a reader waits for brokers, and its messages meanwhile."""

import logging
import math

import pytest

from coordinator_core.log.errors import LogError, LogUnreachable, TopicMissing
from coordinator_core.sources.kafka_topic import Patience

AWAY = LogUnreachable("connection refused")


class Clock:
    """Time passes only by waiting."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.pauses: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.pauses.append(seconds)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("coordinator_core.sources.kafka_topic.time.sleep", made.sleep)
    monkeypatch.setattr("coordinator_core.sources.kafka_topic.time.monotonic", lambda: made.now)
    return made


def wait_until(patience: Patience, clock: Clock, moment: float, error: LogError = AWAY) -> None:
    while clock.now < moment:
        patience.wait(error)


def test_pauses_double_up_to_two_seconds_and_end_with_the_limit(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    patience = Patience(10)
    with pytest.raises(LogUnreachable, match=r"^connection refused \(waited for 10 s\)$"):
        wait_until(patience, clock, 2000)
    assert clock.pauses == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 2, 2, 2, 0.9])
    assert [record.message for record in caplog.records] == ["waiting for the brokers, up to 10 s: connection refused"]
    assert caplog.records[0].levelno == logging.WARNING


def test_an_outage_and_its_end_are_logged_once(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    patience = Patience(120)
    wait_until(patience, clock, 1031)
    patience.progress()
    patience.progress()
    wait_until(patience, clock, clock.now + 110)
    assert [record.message.split(",")[0] for record in caplog.records] == [
        "waiting for the brokers",
        "the brokers answer again",
        "waiting for the brokers",
    ]


def test_a_leader_that_moves_is_not_worth_a_word(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    patience = Patience(120)
    wait_until(patience, clock, 1001.4)
    patience.progress()
    assert clock.pauses[:4] == [0.1, 0.2, 0.4, 0.8]
    patience.wait(AWAY)
    assert clock.pauses[4:] == [0.1]
    assert caplog.records == []


@pytest.mark.usefixtures("clock")
def test_without_patience_the_first_failure_counts(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(LogUnreachable, match=r"^connection refused$"):
        Patience(0).wait(AWAY)
    assert caplog.records == []


def test_an_outage_without_a_limit_ends_with_the_first_answer(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    patience = Patience(120, math.inf)
    wait_until(patience, clock, clock.now + 86_400)
    patience.progress()
    assert [record.message for record in caplog.records] == [
        "waiting for the brokers: connection refused",
        "the brokers answer again, after 86401 s",
    ]
    assert max(clock.pauses) == 2


def test_a_topic_that_brokers_do_not_know_has_the_limit_also_after_a_long_outage(clock: Clock) -> None:
    patience = Patience(10, math.inf)
    wait_until(patience, clock, clock.now + 3_600)
    returned = clock.now
    with pytest.raises(TopicMissing, match=r"^no topic \(waited for 10 s\)$"):
        wait_until(patience, clock, clock.now + 1_000, TopicMissing("no topic"))
    assert clock.now - returned == pytest.approx(10)
