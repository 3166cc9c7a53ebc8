"""Cost of hostile clients: memory of many, unfinished and unread connections, and the delay of another member.

`python -m benchmarks.bench_hostile_clients [--connections 200,5000] [--requests 12k] [--commits 200]`. Eight connections
flood the coordinator with commits; the other member commits every 10 ms. Tests check responses and closed connections.
"""

import resource
import socket
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from benchmarks.arguments import count, counts, parser
from benchmarks.processes import resident_mib
from benchmarks.report import print_machine, print_table
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.protocol import apis
from coordinator_core.protocol.membership import JoinGroupRequest, Protocol
from coordinator_core.protocol.offsets import OffsetCommitRequest, OffsetToCommit
from coordinator_core.wire import write_request
from pipelines.examples.private.private_coordinator import PrivateCoordinator

_MIB = 1024 * 1024
_TOPIC = "orders"
_FLOODING, _UNFINISHED = 8, 20
_PAUSE_SECONDS = 0.01
_LIMIT_SECONDS = 120


def main(arguments: list[str] | None = None) -> None:
    parsing = parser(__doc__, records="0", keys="0", rounds=1)
    parsing.add_argument("--connections", type=counts, default=counts("200,5k"), help="sizes of crowds (default 200,5k)")
    parsing.add_argument("--requests", type=count, default=12_000, help="requests of each flooding client (default 12k)")
    parsing.add_argument("--commits", type=count, default=200, help="commits of the other member (default 200)")
    options = parsing.parse_args(arguments)
    print_machine()
    with _many_files(), tempfile.TemporaryDirectory(prefix="grouplake-benchmark-") as scratch:
        memory = [_crowd(Path(scratch, str(size)), size) for size in options.connections]
        memory += [_unfinished(Path(scratch, "unfinished")), _unread(Path(scratch, "unread"))]
        floods = [_flood(Path(scratch, name), name, options.requests, options.commits) for name in ("reading", "gone")]
    print_table(("clients", "growth of resident memory, MiB"), memory)
    print_table(("flooding clients", "median commit, ms", "98 %, ms", "slowest, ms"), floods)


@contextmanager
def _many_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class _Member:
    """One connection, whose requests are commits."""

    def __init__(self, port: int, receive_buffer: int | None = None) -> None:
        self.socket = socket.socket()
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(_LIMIT_SECONDS)
        self.socket.connect(("127.0.0.1", port))

    def commit(self, offset: int) -> None:
        """Commit, and wait for the response. Raises ConnectionError if the coordinator hangs up."""
        self.socket.sendall(_commit(offset))
        size = self.socket.recv(4, socket.MSG_WAITALL)
        if len(size) < 4 or not self.socket.recv(int.from_bytes(size), socket.MSG_WAITALL):
            raise ConnectionError("the coordinator closed the connection of a member")


@contextmanager
def _served(log: Path, connections: int, receive_buffer: int | None = None) -> Iterator[tuple[PrivateCoordinator, list[_Member]]]:
    """A coordinator that takes requests of 1 MiB and 8 MiB of unfinished ones, a member that has committed, and other clients."""
    with ExitStack() as opened:
        running = opened.enter_context(
            PrivateCoordinator(
                log,
                topics={_TOPIC: 4},
                socket_request_max_bytes=_MIB,
                queued_max_request_bytes=8 * _MIB,
                write_buffer_bytes=16 * 1024,
            )
        )
        members = [_Member(running.port, receive_buffer if number else None) for number in range(connections + 1)]
        for each in members:
            opened.enter_context(each.socket)
        members[0].commit(0)
        yield running, members
        running.stop()


def _crowd(log: Path, size: int) -> tuple[str, str]:
    """Idle connections, half of a frame, and parked joins."""
    with _served(log, 0) as (running, members), ExitStack() as opened:
        before = resident_mib(running.pid)
        for number in range(size):
            wire = opened.enter_context(_Member(running.port).socket)
            if number % 3 == 1:
                wire.sendall(b"\x00\x00\x01\x00half")
            elif number % 3 == 2:
                wire.sendall(_join(f"crowd-{number % 30}"))
        members[0].commit(1)
        return f"{size:,} connections", f"{resident_mib(running.pid) - before:.0f}"


def _unfinished(log: Path) -> tuple[str, str]:
    with _served(log, _UNFINISHED) as (running, members):
        before = resident_mib(running.pid)
        for each in members[1:]:
            with suppress(OSError):
                each.socket.sendall(_MIB.to_bytes(4) + bytes(_MIB - 10))
        members[0].commit(1)
        return f"{_UNFINISHED} unfinished requests of 1 MiB", f"{resident_mib(running.pid) - before:.0f}"


def _unread(log: Path) -> tuple[str, str]:
    with _served(log, 1, receive_buffer=4096) as (running, members):
        before = resident_mib(running.pid)
        members[1].socket.settimeout(1)
        with suppress(TimeoutError):
            for _ in range(20):
                members[1].socket.sendall(_commit(1) * 200_000)
        members[0].commit(2)
        return "a client that reads no response", f"{resident_mib(running.pid) - before:.0f}"


def _flood(log: Path, name: str, requests: int, commits: int) -> tuple[str, ...]:
    """Delays of a member beside clients that send all requests at once, and read the responses' bytes or close."""

    def send(wire: socket.socket) -> None:
        with suppress(OSError):
            wire.sendall(_commit(1) * requests)
            if name == "gone":
                wire.close()
            while name == "reading" and wire.recv(1 << 20):
                pass

    with _served(log, _FLOODING) as (_, members):
        threads = [threading.Thread(target=send, args=(each.socket,), daemon=True) for each in members[1:]]
        for thread in threads:
            thread.start()
        seconds = []
        for offset in range(commits):
            started = time.perf_counter()
            members[0].commit(offset)
            seconds.append(time.perf_counter() - started)
            time.sleep(_PAUSE_SECONDS)
        for each in members[1:]:
            with suppress(OSError):
                each.socket.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join(_LIMIT_SECONDS)
    return name, *(f"{each * 1000:.1f}" for each in _quantiles(sorted(seconds)))


def _quantiles(ordered: Sequence[float]) -> tuple[float, float, float]:
    return ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.98)], ordered[-1]


def _commit(offset: int) -> bytes:
    request = OffsetCommitRequest("benchmark", {TopicPartition(_TOPIC, 0): OffsetToCommit(offset)})
    return _framed(write_request(apis.OFFSET_COMMIT, 8, (request,), offset, "benchmark"))


def _join(group: str) -> bytes:
    request = JoinGroupRequest(group, "", "consumer", (Protocol("range", b""),), 10_000, 60_000)
    return _framed(write_request(apis.JOIN_GROUP, 3, (request,), 1, "benchmark"))


def _framed(request: bytes) -> bytes:
    return len(request).to_bytes(4) + request


if __name__ == "__main__":
    main()
