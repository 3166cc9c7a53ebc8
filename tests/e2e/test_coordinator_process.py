"""The coordinator as a process: how it ends, what it preserves, and how it withstands hostile clients."""

import json
import random
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Protocol

import pytest
from eventually import at_least, equal_to, eventually
from wire_connection import PLACE, Wire

from coordinator_core.protocol import apis
from coordinator_core.protocol.cluster import ApiVersionsRequest, FetchPartition, FetchRequest, MetadataRequest
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.membership import JoinGroupRequest
from coordinator_core.protocol.membership import Protocol as GroupProtocol
from coordinator_core.protocol.offsets import OffsetCommitRequest, OffsetToCommit
from pipelines.examples.private.private_coordinator import PrivateCoordinator

MIB = 1024 * 1024


class Begins(Protocol):
    def __call__(self, log: Path, **settings: int | str) -> PrivateCoordinator: ...


@pytest.fixture(scope="module")
def begun() -> Iterator[Begins]:
    """Starts coordinators that answer for every partition; those left at the end are killed."""
    with ExitStack() as running:

        def begin(log: Path, **settings: int | str) -> PrivateCoordinator:
            given: dict[str, Any] = {"group_initial_rebalance_delay_ms": 50, **settings}
            return running.enter_context(PrivateCoordinator(log, topics={"orders": 4}, **given))

        yield begin


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, begun: Begins) -> Iterator[PrivateCoordinator]:
    process = begun(
        tmp_path_factory.mktemp("served") / "log",
        socket_request_max_bytes=MIB,
        queued_max_request_bytes=8 * MIB,
        connections_max_idle_ms=60_000,
        write_buffer_bytes=16 * 1024,
    )
    yield process
    process.stop()


@pytest.fixture
def client(served: PrivateCoordinator) -> Iterator[Wire]:
    wire = Wire(served.port)
    yield wire
    wire.close()


def reasons(process: PrivateCoordinator) -> list[str]:
    return [str(line["reason"]) for line in process.events("connection ended")]


def mentions(words: str) -> Callable[[list[str]], bool]:
    return lambda lines: any(words in line for line in lines)


def join(group: str, member_id: str = "") -> JoinGroupRequest:
    return JoinGroupRequest(group, member_id, "consumer", (GroupProtocol("range", b""),), 10_000, 60_000)


# ---- answers


def test_health_and_metrics(served: PrivateCoordinator, client: Wire) -> None:
    assert client.commit(1, "counted") is ErrorCode.NONE
    assert served.get("/health") == (200, json.dumps({"status": "ok", "partitions": {"active": 100}}) + "\n")
    status, text = served.get("/metrics")
    assert status == 200
    for line in (
        'grouplake_coordinator_request_seconds_count{api="OFFSET_COMMIT"}',
        'grouplake_coordinator_groups{state="Empty",type="classic"}',
        'grouplake_coordinator_partitions{status="active",topic="__consumer_offsets"} 50.0',
        'grouplake_coordinator_partitions{status="active",topic="__transaction_state"} 50.0',
        "grouplake_coordinator_append_seconds_count",
    ):
        assert line in text
    assert served.get("/other")[0] == 404


def test_metadata_names_the_declared_topics(served: PrivateCoordinator, client: Wire) -> None:
    response = client.ask(apis.METADATA, 12, MetadataRequest())
    partitions = {topic.name: len(topic.partitions) for topic in response.topics}
    assert partitions == {"orders": 4, "__consumer_offsets": 50, "__transaction_state": 50}
    assert [(broker.host, broker.port) for broker in response.brokers] == [("127.0.0.1", served.port)]


def test_a_fetch_ends_where_it_was_asked(client: Wire) -> None:
    topic_id = next(topic.topic_id for topic in client.ask(apis.METADATA, 12, MetadataRequest()).topics if topic.name == "orders")
    asked = FetchPartition("orders", topic_id, 0, 42)
    (fetched,) = client.ask(apis.FETCH, 12, FetchRequest((asked,), max_wait_ms=10)).partitions
    assert (fetched.error, fetched.high_watermark) == (ErrorCode.NONE, 42)
    (unknown,) = client.ask(apis.FETCH, 12, FetchRequest((asked._replace(partition=9),), max_wait_ms=10)).partitions
    assert unknown.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_requests_of_a_connection_are_answered_in_their_order(client: Wire) -> None:
    frames = [
        client.frame(apis.OFFSET_COMMIT, 8, OffsetCommitRequest("pipelined", {PLACE: OffsetToCommit(offset)}))
        for offset in range(300)
    ]
    client.socket.sendall(b"".join(frames))
    assert [int.from_bytes(client.receive()[:4]) for _ in frames] == list(range(1, 301))
    assert client.committed("pipelined") == 299


# ---- hostile clients


def test_garbage_ends_the_connection_and_no_other(served: PrivateCoordinator, client: Wire) -> None:
    random_bytes = random.Random(1).randbytes(200)
    for garbage in (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x00\x00\x00\x00", b"\x00\x00\x00\xc8" + random_bytes):
        wire, before = Wire(served.port), len(reasons(served))
        wire.socket.sendall(garbage)
        assert wire.receive() == b""
        eventually("the end of the connection is logged", lambda: len(reasons(served)), at_least(before + 1))
        wire.close()
    assert "socket.request.max.bytes, which is 1048576" in reasons(served)[0]
    assert client.commit(1) is ErrorCode.NONE


def test_an_unsupported_version_is_answered_once(client: Wire) -> None:
    frame = bytearray(client.frame(apis.API_VERSIONS, 3, ApiVersionsRequest("c", "1")))
    frame[6:8] = (99).to_bytes(2)
    client.socket.sendall(frame)
    assert client.receive()[4:6] == int(ErrorCode.UNSUPPORTED_VERSION).to_bytes(2)
    assert client.ask(apis.API_VERSIONS, 3, ApiVersionsRequest("c", "1")).error is ErrorCode.NONE


def test_a_half_closed_socket_gets_its_answers(served: PrivateCoordinator) -> None:
    wire = Wire(served.port)
    wire.send(apis.METADATA, 12, MetadataRequest())
    wire.send(apis.OFFSET_COMMIT, 8, OffsetCommitRequest("half", {PLACE: OffsetToCommit(1)}))
    wire.socket.shutdown(socket.SHUT_WR)
    assert wire.receive()
    assert wire.receive()
    assert wire.receive() == b""
    wire.close()


def flood(wire: Wire, frames: bytes) -> None:
    """Send more than the buffers of both ends may grow to."""
    for _ in range(20):
        wire.socket.sendall(frames)


def test_a_client_that_does_not_read_is_not_read_and_stops_no_other(served: PrivateCoordinator, client: Wire) -> None:
    with closing(Wire(served.port, receive_buffer=4096)) as slow:
        slow.socket.settimeout(0.2)  # runs out: the coordinator reads no more from it
        frame = slow.frame(apis.METADATA, 12, MetadataRequest())
        with pytest.raises(TimeoutError):
            flood(slow, frame * 200_000)
        assert client.commit(2) is ErrorCode.NONE


def test_unfinished_requests_of_all_connections_are_bounded(served: PrivateCoordinator, client: Wire) -> None:
    wires = [Wire(served.port) for _ in range(20)]
    for wire in wires:
        wire.socket.settimeout(1)  # runs out: the coordinator reads no more from some of them
        try:
            wire.socket.sendall(MIB.to_bytes(4) + bytes(MIB - 10))
        except OSError:
            continue
    eventually("the log says which request is too much", lambda: reasons(served), mentions("this connection holds the most"))
    for wire in wires:
        wire.close()
    eventually("commits go on", lambda: client.commit(3), equal_to(ErrorCode.NONE))


def commit_beside_a_crowd(served: PrivateCoordinator, count: int) -> None:
    """Open this many connections: idle ones, half of a frame, and parked joins. A commit on one more is answered."""
    wires = [Wire(served.port) for _ in range(count)]
    for number, wire in enumerate(wires):
        if number % 3 == 1:
            wire.socket.sendall(b"\x00\x00\x01\x00half")
        elif number % 3 == 2:
            wire.send(apis.JOIN_GROUP, 3, join(f"crowd-{number % 30}"))
    fresh = Wire(served.port)
    assert fresh.commit(4, "beside the crowd") is ErrorCode.NONE
    for wire in (*wires, fresh):
        wire.close()


def test_200_connections(served: PrivateCoordinator) -> None:
    commit_beside_a_crowd(served, 200)


@pytest.mark.slow
def test_5000_connections(served: PrivateCoordinator) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    commit_beside_a_crowd(served, 5000)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_limits_of_connections(tmp_path: Path, begun: Begins) -> None:
    process = begun(tmp_path / "few", max_connections_per_ip=2, connections_max_idle_ms=400)
    wires = [Wire(process.port) for _ in range(3)]
    assert wires[2].receive() == b""
    eventually("the third connection is refused", lambda: process.events("connection refused"))
    assert wires[0].receive() == b""
    eventually("the log names the limit of idle connections", lambda: reasons(process), mentions("connections.max.idle.ms"))
    for wire in wires:
        wire.close()
    process.stop()


# ---- ends


@pytest.mark.long
def test_sigterm_answers_waiting_requests_and_keeps_everything(tmp_path: Path, begun: Begins) -> None:
    process = begun(tmp_path / "one", group_initial_rebalance_delay_ms=60_000)
    wire, parked = Wire(process.port), Wire(process.port)
    assert wire.commit(7) is ErrorCode.NONE
    parked.send(apis.JOIN_GROUP, 3, join("parked"))
    eventually("a member has joined", lambda: process.events("member joined"))
    assert process.end(signal.SIGTERM) == 0
    assert parked.receive()[4:10] == b"\x00\x00\x00\x00" + int(ErrorCode.NOT_COORDINATOR).to_bytes(2)
    assert wire.receive() == b""
    assert [line["event"] for line in process.log_lines()[-2:]] == ["stopping", "stopped"]
    again = begun(tmp_path / "one")
    other = Wire(again.port)
    assert other.committed() == 7
    log = f"segments:{again.directory}"
    refused = subprocess.run(
        [Path(sys.executable).with_name("grouplake"), "coordinator", "--listen", "127.0.0.1:0", "--log", log],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("grouplake: ")
    assert "another coordinator" in refused.stderr
    for each in (wire, parked, other):
        each.close()
    assert again.end(signal.SIGINT) == 0


@pytest.mark.long
def test_a_kill_loses_no_commit_that_was_acknowledged(tmp_path: Path, begun: Begins) -> None:
    acknowledged: dict[str, int] = {}
    for life in range(2):
        process = begun(tmp_path / "killed")
        wires = {f"group-{number}": Wire(process.port) for number in range(8)}
        for group, wire in wires.items():
            assert wire.committed(group) >= acknowledged.get(group, -1)
        give_up = time.monotonic() + 0.5 + 0.3 * life
        offset = 1000 * life
        while time.monotonic() < give_up:
            offset += 1
            for group, wire in wires.items():
                assert wire.commit(offset, group) is ErrorCode.NONE
                acknowledged[group] = offset
        for group, wire in wires.items():
            wire.send(apis.OFFSET_COMMIT, 8, OffsetCommitRequest(group, {PLACE: OffsetToCommit(offset + 1)}))
        process.kill()
        for wire in wires.values():
            wire.close()
    process = begun(tmp_path / "killed")
    wire = Wire(process.port)
    for group, offset in acknowledged.items():
        assert wire.committed(group) in (offset, offset + 1)
    wire.close()
    process.stop()


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("--listen", "nowhere", "--log", "segments:x"), 2, "HOST:PORT"),
        (("--listen", "127.0.0.1:0", "--log", "x"), 2, "segments:DIR"),
        (("--listen", "127.0.0.1:0", "--log", "segments:x", "--conf", "none"), 2, "no configuration file"),
        (("--listen", "127.0.0.1:{taken}", "--log", "segments:x"), 1, "cannot listen on 127.0.0.1:{taken}"),
        (("--listen", "127.0.0.1:0", "--log", "segments:/proc/x"), 1, "/proc/x"),
    ],
)
def test_what_cannot_begin_says_why_in_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    code: int,
    says: str,
) -> None:
    from pipelines.cli.main import main

    monkeypatch.chdir(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert main(["coordinator", *(argument.replace("{taken}", port) for argument in arguments)]) == code
        (line,) = (line for line in capsys.readouterr().err.splitlines() if not line.startswith("{"))
        assert says.replace("{taken}", port) in line
