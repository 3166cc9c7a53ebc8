"""Tasks beside the partition loops: an unexpected error is logged, counted and shown by /health, and the task continues."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE_SECONDS
from served_coordinator import Served
from wire_connection import Wire

from coordinator_core.log.partitioner import partition_for
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.segment_log.errors import PartitionFailed
from coordinator_core.service.net.connection import Connection
from coordinator_core.service.runtime.background import backoff_seconds
from coordinator_core.service.settings import Fsync


def commit(at: Served, group: str) -> None:
    wire = Wire(at.address.port)
    assert wire.commit(1, group) is ErrorCode.NONE
    wire.close()


def group_in(partition: int) -> str:
    return next(group for group in map(str, range(100)) if partition_for(group, 2) == partition)


def broken(*_: Any) -> Any:
    raise RuntimeError("a bug")


def test_a_cleaner_that_raises_is_reported_and_goes_on(tmp_path: Path) -> None:
    served = Served(tmp_path, log_cleaner_interval_ms=5)
    clean, served.log.clean = served.log.clean, broken  # type: ignore[method-assign, assignment]  # fails on purpose

    async def work(at: Served) -> None:
        await at.eventually("two unexpected errors are logged", lambda: len(at.events("unexpected error")) >= 2)
        assert at.events("unexpected error")[0] | {"timestamp": ""} == {
            "event": "unexpected error",
            "level": "error",
            "where": "background task log-cleaner",
            "error": "RuntimeError: a bug",
            "timestamp": "",
        }
        code, health = await asyncio.to_thread(at.health)
        failing = {"log-cleaner": "RuntimeError: a bug"}
        assert (code, health) == (503, {"status": "degraded", "partitions": {"active": 4}, "failing_tasks": failing})
        assert await asyncio.to_thread(at.metric, "unexpected_errors_total") >= 2
        assert await asyncio.to_thread(at.metric, 'background_task_failing{task="log-cleaner"}') == 1
        at.log.clean = clean  # type: ignore[method-assign]  # repaired
        await at.eventually("the service is healthy", lambda: at.health() == (200, {"status": "ok", "partitions": {"active": 4}}))
        assert at.events("background task recovered")[0]["task"] == "log-cleaner"
        assert await asyncio.to_thread(at.metric, 'background_task_failing{task="log-cleaner"}') == 0

    served.run(work)


@pytest.mark.parametrize("failure", [RuntimeError("a bug"), OSError(5, "Input/output error")])
def test_a_flush_that_raises_ends_its_partition_and_the_others_are_still_synced(tmp_path: Path, failure: Exception) -> None:
    served = Served(tmp_path, fsync=Fsync.INTERVAL, fsync_interval_ms=5)
    flush = served.log.flush

    def flushed(partitions: Sequence[int]) -> list[PartitionFailed | None]:
        if 1 in partitions:
            raise failure
        return flush(partitions)

    served.log.flush = flushed  # type: ignore[method-assign]  # fails once

    async def work(at: Served) -> None:
        await asyncio.to_thread(commit, at, group_in(1))
        await at.eventually("the partition has failed", lambda: at.events("partition failed"))
        reason = at.events("partition failed")[0]["reason"]
        assert f"{type(failure).__name__}: {failure}" in reason
        assert at.events("unexpected error")[0]["where"] == "fsync of partition 1"
        found = {"partitions": {"active": 3, "failed": 1}, "failed_partitions": {"__consumer_offsets-1": reason}}
        assert await asyncio.to_thread(at.health) == (503, {"status": "failed", **found})
        before = at.log.partition(0).flushed_offset
        await asyncio.to_thread(commit, at, group_in(0))
        await at.eventually("the log is flushed", lambda: at.log.partition(0).flushed_offset > before)

    served.run(work)


def test_a_check_for_idle_connections_that_raises_is_reported_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Connection, "is_idle_since", broken)

    async def work(at: Served) -> None:
        reader, writer = await asyncio.open_connection(*at.address)
        await at.eventually("an unexpected error is logged", lambda: at.events("unexpected error"))
        assert at.events("unexpected error")[0]["where"] == "background task idle-connections"
        assert (await asyncio.to_thread(at.health))[1]["failing_tasks"] == {"idle-connections": "RuntimeError: a bug"}
        monkeypatch.undo()
        assert await asyncio.wait_for(reader.read(), PATIENCE_SECONDS) == b""
        await at.eventually("the service is healthy", lambda: at.health()[0] == 200)
        writer.close()

    Served(tmp_path, connections_max_idle_ms=100).run(work)


def test_an_error_in_a_callback_of_the_event_loop_is_reported(tmp_path: Path) -> None:
    async def work(at: Served) -> None:
        asyncio.get_running_loop().call_soon(broken)
        await at.eventually("an unexpected error is logged", lambda: at.events("unexpected error"))
        assert at.events("unexpected error")[0]["error"] == "RuntimeError: a bug"
        assert await asyncio.to_thread(at.metric, "unexpected_errors_total") == 1

    Served(tmp_path).run(work)


def test_an_error_while_metrics_are_made_is_reported_and_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(at: Served) -> None:
        monkeypatch.setattr("coordinator_core.service.node.metrics.generate_latest", broken)
        code, _ = await asyncio.to_thread(at.get, "/metrics")
        assert code == 500
        assert at.events("unexpected error")[0]["where"] == "/health and /metrics"
        assert (await asyncio.to_thread(at.health))[0] == 200

    Served(tmp_path).run(work)


def test_each_failure_doubles_the_wait_up_to_a_minute() -> None:
    assert [backoff_seconds(1.0, failures) for failures in (0, 1, 2, 5, 6, 9_999)] == [1, 2, 4, 32, 60, 60]
    assert [backoff_seconds(300.0, failures) for failures in (0, 1, 50)] == [300, 300, 300]
