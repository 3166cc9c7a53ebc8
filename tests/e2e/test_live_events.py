"""Server-sent events of new batches: a server as a process, and several clients."""

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from operator import eq
from pathlib import Path

import httpx
import pytest
from dashboards import Dashboard, configuration_file, dashboard
from event_streams import EventStream
from eventually import eventually
from lag_tables import group_row, lag_row, write_tables

CLIENTS = 5


@pytest.fixture
def tables(tmp_path: Path) -> str:
    folder = str(tmp_path / "east")
    write(folder, 5)
    return folder


@pytest.fixture
def server(tables: str, tmp_path: Path) -> Iterator[Dashboard]:
    with dashboard(tables, conf=configuration_file(tmp_path, {"dashboard": "poll_ms = 20\nmax_streams = 6"})) as running:
        yield running


def write(folder: str, end: int) -> None:
    """A batch in which billing has another log end, and shipping nothing new."""
    lag = [lag_row("billing", "orders", 0, 0, end), lag_row("shipping", "orders", 0, 2, 2)]
    groups = [group_row("billing", 1), group_row("shipping", 1)] if end == 5 else []
    write_tables(folder, lag=lag, groups=groups)


def loaded_batch(server: Dashboard) -> object:
    return server.get("/ready").json()["clusters"]["east"]["batch_id"]


@pytest.mark.long
def test_every_client_gets_every_batch(server: Dashboard, tables: str) -> None:
    with ExitStack() as stack:
        streams = [stack.enter_context(EventStream(server.url)).wait_until_open() for _ in range(CLIENTS)]
        for batch, end in ((1, 6), (2, 7)):
            write(tables, end)
            for stream in streams:
                events = stream.wait_for(batch)
                number, data = events[batch - 1]
                assert (number, data["batch_id"], data["groups"]) == (batch, batch, ["billing"])
                assert data["at"].startswith("2026-11-22T12:00:00")
        response = streams[0].response
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.headers["cache-control"] == "no-cache"
        assert streams[0].lines[0] == "retry: 2000"


@pytest.mark.long
def test_a_client_that_missed_batches_gets_one_event(server: Dashboard, tables: str) -> None:
    for batch, end in ((1, 6), (2, 7)):
        write(tables, end)
        eventually("the batch is loaded", lambda: loaded_batch(server), partial(eq, batch))
    with EventStream(server.url, last_event_id=0) as missed:
        assert missed.wait_for(1) == [(2, {"batch_id": 2, "at": "2026-11-22T12:00:00+00:00", "groups": ["billing"]})]
        write(tables, 8)
        assert [number for number, _ in missed.wait_for(2)] == [2, 3]
    with EventStream(server.url, after=1) as shown:
        assert [number for number, _ in shown.wait_for(1)] == [3]
    # an id that the server does not know: everything may have changed
    with EventStream(server.url, last_event_id=99) as unknown:
        assert [(number, data["groups"]) for number, data in unknown.wait_for(1)] == [(3, None)]
    with EventStream(server.url, last_event_id=3).wait_until_open() as current:
        assert current.events == []


@pytest.mark.long
def test_streams_are_limited_and_released(server: Dashboard) -> None:
    with ExitStack() as stack:
        streams = [stack.enter_context(EventStream(server.url)).wait_until_open() for _ in range(6)]
        refused = server.get("/c/east/events")
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "10")
        assert refused.json()["message"] == "6 streams of events are open (dashboard.max_streams): try again later"
        streams[0].close()

        def status() -> int:
            with httpx.stream("GET", f"{server.url}/c/east/events") as response:
                return response.status_code

        eventually("the stream is released", status, lambda code: code == 200)


def test_unknown_clusters(server: Dashboard) -> None:
    assert server.get("/c/west/events").status_code == 404


def test_streams_end_with_the_server(server: Dashboard) -> None:
    with ExitStack() as stack:
        streams = [stack.enter_context(EventStream(server.url)).wait_until_open() for _ in range(CLIENTS)]
        assert server.end() == 0
        for stream in streams:
            stream.wait_until_ended()
    # uvicorn reports responses that it has to cancel
    assert server.errors() == ""


@pytest.mark.slow
def test_a_comment_keeps_an_idle_stream_open(server: Dashboard) -> None:
    with EventStream(server.url) as stream:
        eventually("a comment", lambda: list(stream.lines), lambda lines: any(line.startswith(":") for line in lines))
        assert stream.events == []
