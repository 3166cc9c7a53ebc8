"""Lag as of any batch: those of records too, from their positions and the samples around them."""

from pathlib import Path
from typing import Any

import pytest
from status_story import Story

from pipelines.lag.lag_at import lag_at
from pipelines.query.engine import Snapshot
from pipelines.query.lag_report import LagReport


@pytest.fixture
def root(tmp_path: Path) -> str:
    """Samples at 0 s, 30 s and 60 s; a batch of records at 20 s, and one at 1,000 s without a later sample."""
    story = Story(str(tmp_path)).end(10)
    story.commit(10).sample()
    story.at(15).commit(14)
    story.at(20).batch()
    story.at(30).end(18).sample()
    story.at(60).sample()
    story.at(1_000).commit(18).batch()
    story.at(5_000).end(30).sample()
    return str(tmp_path)


def lags(root: str) -> list[dict[str, Any]]:
    newest = Snapshot.open(root)
    return [lag_at(newest.as_of(batch), newest).to_pylist()[0] for batch in range(newest.batch.batch_id + 1)]


def test_ends_are_read_after_the_commits_of_the_batch(root: str) -> None:
    rows = lags(root)
    assert [(row["group_offset"], row["latest_offset"], row["lag"]) for row in rows] == [
        (10, 10, 0),
        (10, 10, 0),
        (14, 18, 4),
        (14, 18, 4),
        (14, 18, 4),
        (18, 18, 0),
        (18, 30, 12),
    ]
    at = [(row["sampled_at"] - rows[0]["commits_read_until"]).total_seconds() for row in rows]
    # no sample was taken soon after the batch at 1,000 s: the last one before it counts
    assert at == [0, 0, 30, 30, 60, 60, 5_000]


def test_the_report_of_a_sample_is_that_of_its_table(root: str) -> None:
    newest = Snapshot.open(root)
    for batch in range(newest.batch.batch_id + 1):
        at = newest.as_of(batch)
        report = LagReport.of(at, ["billing"])
        is_sample = "write_lag" in at.batch.phase_ms
        expected = at.query("SELECT lag, sampled_at FROM lag").to_pylist() if is_sample else [lags(root)[batch]]
        (row,) = report.rows.to_pylist()
        assert (row["lag"], row["sampled_at"]) == (expected[0]["lag"], expected[0]["sampled_at"])
        assert row["leader_epoch"] == 3
