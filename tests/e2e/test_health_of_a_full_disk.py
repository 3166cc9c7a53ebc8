"""/health while the log cannot grow: a limit on the size of files stands for a full disk."""

import asyncio
import json
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from eventually import equal_to, eventually
from wire_connection import PLACE, Wire

from coordinator_core.protocol import apis
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.offsets import OffsetCommitRequest, OffsetToCommit
from coordinator_core.service.node.refused_appends import RefusedAppends
from pipelines.examples.private.private_coordinator import PrivateCoordinator

#: The log's segment is above the limit, the log of events on standard error below it.
LIMIT = 128 * 1024


@pytest.fixture
def served(tmp_path: Path) -> Iterator[PrivateCoordinator]:
    with PrivateCoordinator(tmp_path / "log", topics={"orders": 1}, offsets_topic_num_partitions=1) as process:
        yield process


def health(served: PrivateCoordinator) -> tuple[int, Any]:
    code, text = served.get("/health")
    return code, json.loads(text)


def limit_files(served: PrivateCoordinator, size: int) -> None:
    _, hard = resource.prlimit(served.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(served.pid, resource.RLIMIT_FSIZE, (size, hard))


def test_health_follows_the_disk(served: PrivateCoordinator) -> None:
    wire = Wire(served.port)
    large = OffsetCommitRequest("g", {PLACE: OffsetToCommit(1, metadata="x" * 4000)})
    for _ in range(40):
        assert wire.ask(apis.OFFSET_COMMIT, 8, large).errors[PLACE] is ErrorCode.NONE
    assert health(served)[0] == 200
    limit_files(served, LIMIT)
    for offset in range(3):
        assert wire.commit(offset) is ErrorCode.NOT_COORDINATOR
    code, found = health(served)
    assert (code, found["status"]) == (503, "degraded")
    assert list(found["refused_appends"]) == ["__consumer_offsets-0"]
    assert "File too large" in found["refused_appends"]["__consumer_offsets-0"]
    limit_files(served, resource.RLIM_INFINITY)
    # without any request
    eventually("/health is ok again", lambda: health(served)[0], equal_to(200))
    assert "refused_appends" not in health(served)[1]
    assert wire.commit(9) is ErrorCode.NONE
    assert list(served.directory.glob(".grouplake-probe")) == []
    assert [each["partition"] for each in served.events("append refused")] == [0] * 3
    assert [each["partitions"] for each in served.events("appends accepted")] == [["__consumer_offsets-0"]]
    wire.close()


def test_refusals_stay_while_the_directory_takes_no_file(tmp_path: Path) -> None:
    now = 100.0
    accepted: list[str] = []
    refused = RefusedAppends(tmp_path / "missing", lambda: now, accepted.extend)
    refused.append_refused(3, 1, "full")
    refused.append_refused("orders-0", 1, "full")
    now += 60
    asyncio.run(refused.check())
    assert refused.reasons.keys() == {"__consumer_offsets-3", "orders-0"}
    (tmp_path / "missing").mkdir()
    refused.append_refused(3, 1, "full")
    asyncio.run(refused.check())
    assert refused.reasons, "the last refusal is too recent"
    now += 60
    asyncio.run(refused.check())
    assert refused.reasons == {}
    assert accepted == ["__consumer_offsets-3", "orders-0"]
