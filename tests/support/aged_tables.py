"""Tables whose batches were finished at given times, for tests of old data."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from created_tables import created_tables
from lag_tables import group_row, lag_row, write_tables

from pipelines.batch.without_records import finish_batch
from pipelines.runtime.phases import Phases
from pipelines.tables.store import Batch
from pipelines.tables.writer import TablesWriter


def aged(root: Path | str, at: datetime, interval_seconds: int = 30, *, seconds: float = 1.0) -> Batch:
    """Add an empty batch of a job that was finished at `at`, took `seconds`, and expects the next one in an interval."""
    return run_at(root, [at], interval_seconds, seconds=seconds)


def run_at(root: Path | str, times: Iterable[datetime], interval_seconds: int = 0, *, seconds: float = 0.0) -> Batch:
    """Add a run of the job with an empty batch finished at each of the times; returns the last one."""
    store = created_tables(root)
    writer = TablesWriter.claim(store, interval_seconds)
    for at in times:
        phases = Phases(at - timedelta(seconds=seconds))
        with phases.timed("read"):
            writer.begin()
        if writer.last is None:
            writer.finish(phases, at, era="4", retention_ms=1, next_offsets={})
        else:
            finish_batch(writer, writer.last, phases, at)
    assert writer.last is not None
    return writer.last


def stopped_group(
    root: Path | str, at: datetime, interval_seconds: int | None = 30, *, sampled_at: datetime | None = None
) -> Batch:
    """Write a batch at `at` in which group `billing` has stopped, 40 records behind, and `shop` is fine, as of a sample."""
    sampled = sampled_at or at
    rows = [lag_row("billing", "orders", 3, 10, 50, sampled_at=sampled), lag_row("shop", "orders", 3, 50, 50, sampled_at=sampled)]
    offsets = [
        {"group_id": group, "topic": "orders", "partition": 3, "committed_offset": offset, "commit_timestamp": sampled, **_OFFSET}
        for group, offset in (("billing", 10), ("shop", 50))
    ]
    return write_tables(
        str(root),
        at,
        interval_seconds=interval_seconds,
        offsets=offsets,
        groups=[group_row("billing", state="Empty"), group_row("shop")],
        lag=rows,
        group_status=[_status("billing", "STOP", sampled), _status("shop", "OK", sampled)],
    )


_OFFSET = {"metadata": "", "log_partition": 0, "log_offset": 7}


def _status(group: str, status: str, at: datetime) -> dict[str, Any]:
    is_fine = status == "OK"
    finding = {"rule": "burrow_2", "status": status, "topic": "orders", "partition": 3, "detail": "lag 40, 1 commits in 0 s"}
    return {
        "group_id": group,
        "status": status,
        "rule": None if is_fine else "burrow_2",
        "detail": "all is well" if is_fine else finding["detail"],
        "findings": [] if is_fine else [finding],
        "burrow_status": status if is_fine else "ERR",
        "partitions": 1,
        "unknown_partitions": 0,
        "complete": 1.0,
        "total_lag": 0 if is_fine else 40,
        "evaluated_at": at,
    }
