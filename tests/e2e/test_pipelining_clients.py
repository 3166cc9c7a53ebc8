"""Clients that send thousands of small requests at once: the commits of another member are answered meanwhile.

`bench_hostile_clients` measures how soon.
"""

import threading
import time
from collections.abc import Callable, Iterator

import pytest
from wire_connection import PLACE, Wire

from coordinator_core.protocol import apis
from coordinator_core.protocol.cluster import ApiVersionsRequest
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.offsets import OffsetCommitRequest, OffsetToCommit
from pipelines.examples.private.private_coordinator import PrivateCoordinator

CONNECTIONS, REQUESTS = 8, 12_000
#: Commits of the other member, one every 10 ms.
COMMITS = 200


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateCoordinator]:
    with PrivateCoordinator(tmp_path_factory.mktemp("flooded") / "log", topics={"orders": 1}) as process:
        yield process
        process.stop()


def api_versions(wire: Wire) -> bytes:
    return wire.frame(apis.API_VERSIONS, 3, ApiVersionsRequest("flood", "1"))


def commit(wire: Wire) -> bytes:
    return wire.frame(apis.OFFSET_COMMIT, 8, OffsetCommitRequest("flood", {PLACE: OffsetToCommit(1)}))


def flood(served: PrivateCoordinator, frame: Callable[[Wire], bytes], *, leave: bool) -> list[Wire]:
    """Clients that send all requests from threads, and read nothing but the responses' bytes or close at once."""
    wires = [Wire(served.port) for _ in range(CONNECTIONS)]

    def send(wire: Wire) -> None:
        try:
            wire.socket.sendall(frame(wire) * REQUESTS)
            if leave:
                wire.close()
            while not leave and wire.socket.recv(1 << 20):
                pass
        except OSError:
            # closed by the coordinator, or by the test
            pass

    for wire in wires:
        threading.Thread(target=send, args=(wire,), daemon=True).start()
    return wires


@pytest.mark.parametrize("leave", [False, True], ids=["reading", "gone"])
@pytest.mark.parametrize("frame", [api_versions, commit])
def test_another_member_is_answered(served: PrivateCoordinator, frame: Callable[[Wire], bytes], leave: bool) -> None:
    member = Wire(served.port)
    assert member.commit(0) is ErrorCode.NONE
    wires = flood(served, frame, leave=leave)
    for number in range(COMMITS):
        assert member.commit(number) is ErrorCode.NONE
        time.sleep(0.01)
    for wire in wires:
        wire.close()
    member.close()
