"""Events that clients can cause at will: a bounded number of lines, and none is lost from the count."""

import io
import json

from coordinator_core.service.node.event_log import EventLog
from coordinator_core.service.node.repeated_events import CAUSES, LINES, SECONDS, RepeatedEvents


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_some_lines_of_each_cause_and_the_number_of_the_others() -> None:
    clock = Clock()
    repeated = RepeatedEvents(clock)
    assert [repeated.omitted("a") for _ in range(LINES + 3)] == [0] * LINES + [None] * 3
    assert repeated.omitted("b") == 0
    clock.now = SECONDS
    assert repeated.omitted("a") == 3
    assert repeated.omitted("a") == 0


def test_the_number_of_causes_is_bounded() -> None:
    repeated = RepeatedEvents(Clock())
    for number in range(CAUSES + 10):
        assert repeated.omitted(number) == 0
    assert len(repeated._causes) == CAUSES


def test_lines_of_refused_appends_and_of_hostile_clients() -> None:
    clock, stream = Clock(), io.StringIO()
    log = EventLog(stream, now=clock)
    for number in range(1_000):
        log.append_refused(3, 1, "no space left on device")
        log.disconnected(f"10.0.0.7:{number}", "the frame has 9 GB")
        log.disconnected(f"10.0.0.8:{number}", None)
    clock.now = SECONDS
    log.append_refused(3, 1, "no space left on device")
    log.appends_accepted(["__consumer_offsets-3"])
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    refused = [line for line in lines if line["event"] == "append refused"]
    assert len(refused) == LINES + 1
    assert refused[-1]["omitted"] == 1_000 - LINES
    assert sum(line["event"] == "connection ended" for line in lines) == LINES
    assert lines[-1]["event"] == "appends accepted"
