"""Lag as of any batch: that of the last sample until then, with the commits that the sample had."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from shop_pages import ShopPages
from status_story import Story

from pipelines.cli import main
from pipelines.lag.past.lag_at import lag_at, recorded_lag
from pipelines.lag.reports.lag_report import LagReport
from pipelines.query.engine import Snapshot
from pipelines.query.output import plain
from pipelines.tables import definitions
from pipelines.tables.store import TableStore


@pytest.fixture
def root(tmp_path: Path) -> str:
    """Samples at 0 s, 30 s, 60 s and 5,000 s; batches of records at 20 s and 1,000 s, the latter beyond the known log end."""
    story = Story(str(tmp_path)).end(10)
    story.commit(10).sample()
    story.at(15).commit(14)
    story.at(20).batch()
    story.at(30).end(18).sample()
    story.at(60).sample()
    story.at(1_000).commit(26).batch()
    story.at(5_000).end(30).sample()
    return str(tmp_path)


#: Committed offset, log end and lag at each batch, and the time of the sample.
EXPECTED = [
    # before the first sample there are no log ends
    (10, None, None, None),
    (10, 10, 0, 0),
    # the commit of 14 was read after the sample: its log end is not known yet
    (10, 10, 0, 0),
    (14, 18, 4, 30),
    (14, 18, 4, 60),
    # not 18 − 26 = −8
    (14, 18, 4, 60),
    (26, 30, 4, 5_000),
]


def seconds(row: dict[str, Any], start: datetime) -> float | None:
    return None if row["sampled_at"] is None else (row["sampled_at"] - start).total_seconds()


READERS = {"recorded": recorded_lag, "computed": lambda batch, newest: lag_at(newest, batch.batch.batch_id)}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_commits_and_log_ends_are_those_of_one_sample(root: str, read: Any) -> None:
    newest = Snapshot.open(root)
    start = newest.as_of(0).batch.finished_at
    rows = [read(newest.as_of(batch), newest).to_pylist()[0] for batch in range(newest.batch.batch_id + 1)]
    found = [(row["group_offset"], row["latest_offset"], row["lag"], seconds(row, start)) for row in rows]
    assert found == EXPECTED


def test_the_report_and_the_page_of_a_batch_have_the_same_lag(root: str) -> None:
    newest, pages = Snapshot.open(root), ShopPages(root)
    for batch, (offset, end, lag, _) in enumerate(EXPECTED):
        (row,) = LagReport.of(newest.as_of(batch), ["billing"]).rows.to_pylist()
        (shown,) = pages.json(f"groups/billing?as_of={batch}")["offsets"]
        assert row["leader_epoch"] == 3
        assert (row["group_offset"], row["latest_offset"], row["lag"]) == (offset, end, lag)
        assert (shown["group_offset"], shown["latest_offset"], shown["lag"]) == (offset, end, lag)


def test_the_lag_of_a_batch_is_the_same_after_its_tables_were_removed(root: str) -> None:
    for name in (*definitions.KEYS, *definitions.REPLACED):
        TableStore(root).table(name).vacuum(0, dry_run=False, enforce_retention_duration=False)
    pages = ShopPages(root)
    for batch, (offset, end, lag, _) in enumerate(EXPECTED):
        (shown,) = pages.json(f"groups/billing?as_of={batch}")["offsets"]
        assert (shown["group_offset"], shown["latest_offset"], shown["lag"]) == (offset, end, lag)


def test_the_command_says_which_sample_it_prints(root: str, capsys: pytest.CaptureFixture[str]) -> None:
    def said(*as_of: str) -> str:
        assert main(["lag", "--tables", root, "--group", "billing", *as_of]) == 0
        return capsys.readouterr().err.partition("\n")[0]

    start = Snapshot.open(root).as_of(0).batch.finished_at
    sampled = plain(start + timedelta(seconds=60))
    assert said("--as-of", "5") == f"lag of the last sample until then, at {sampled}, 940 s earlier"
    at = plain(start + timedelta(seconds=61))
    assert said("--as-of", at) == f"lag of the last sample until then, at {sampled}, 1 s earlier"
    assert said("--as-of", "0") == "no sample of log ends until then, so lag is unknown"
    for as_of in (("--as-of", sampled), ("--as-of", "4"), ()):
        assert not said(*as_of).startswith(("lag of", "no sample"))


@pytest.mark.parametrize("removed", [False, True], ids=["recorded", "computed"])
def test_statuses_of_an_earlier_batch_know_no_later_commits_than_its_sample(root: str, removed: bool) -> None:
    """As for a reader that opened a batch just before a job wrote the next one: a commit beyond the log end is no defect."""
    newest = Snapshot.open(root)
    if removed:
        for name in ("group_status", "lag"):
            TableStore(root).table(name).vacuum(0, dry_run=False, enforce_retention_duration=False)
    reports = (LagReport.of(newest.as_of(batch), ["billing"], with_status=True) for batch in range(len(EXPECTED)))
    found = [row["status"] for report in reports for row in report.rows.to_pylist()]
    assert found == ["UNKNOWN", "OK", "OK", "OK", "OK", "OK", "STOP"]
