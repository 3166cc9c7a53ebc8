"""Lost records in the tables: in `lag`, its history, statuses and alerts, in the sample that proves the loss and not before."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from shop_pages import ShopPages
from status_story import Story

from pipelines.lag.past.lag_at import lag_at, recorded_lag
from pipelines.lag.past.status_at import group_status_at
from pipelines.query.engine import Snapshot
from pipelines.tables.reached_position import ReachedPosition


def row_of(story: Story) -> dict[str, Any]:
    rows: list[dict[str, Any]] = Snapshot.open(story.root).query("SELECT * FROM lag").to_pylist()
    (row,) = rows
    return row


def lost(story: Story) -> tuple[int | None, str | None]:
    row = row_of(story)
    return row["messages_lost"], row["lag_reason"]


def rules(status: dict[str, Any]) -> set[str]:
    return {finding["rule"] for finding in status["findings"]}


@pytest.fixture
def story(tmp_path: Path) -> Story:
    """A group that reads 100 records every ten seconds, and commits each time."""
    story = Story(str(tmp_path)).end(100)
    story.commit(100).sample()
    return story


def purged(story: Story, until: int) -> None:
    """Every ten seconds: 100 records, a commit, a deletion up to it. The job read the commits just before the last one."""
    for number in range(1, until + 1):
        story.at(10 * number).end(100 * (number + 1), start=100 * (number + 1))
        story.commit(100 * (number + 1) - 50).batch()
        # committed after the batch, before the log start is sampled
        status = story.at(10 * number + 1).sample()
        assert not rules(status) & {"data_lost", "near_retention"}, number
        found, reason = lost(story)
        assert (found, reason) in ((None, "loss_unknown"), (None, "first_sample")), number
        story.at(10 * number + 2).commit(100 * (number + 1))
    story.expect_same_from_histories()


def test_deletion_up_to_the_commit_is_no_loss(story: Story) -> None:
    """As a Kafka Streams application does with its repartition topics: 15 of 18 samples stated a loss."""
    purged(story, 8)
    snapshot = Snapshot.open(story.root)
    assert snapshot.query("SELECT max(messages_lost) AS lost FROM lag_history").to_pylist() == [{"lost": 0}]
    assert snapshot.query("SELECT messages_lost FROM lag_by_group").to_pylist() == [{"messages_lost": None}]
    pages = ShopPages(story.root)
    assert "before the group read" not in pages.html("groups/billing").text


def paused(story: Story) -> list[tuple[int | None, str | None]]:
    """A group that has stopped at 100, while retention deletes up to 180 and then up to 200."""
    found = []
    for seconds, start, end in ((30, 0, 150), (60, 180, 300), (90, 180, 300), (120, 200, 400), (150, 200, 400), (180, 200, 400)):
        story.at(seconds).end(end, start=start).sample()
        found.append(lost(story))
    return found


def test_a_loss_is_stated_in_the_sample_that_proves_it(story: Story) -> None:
    found = paused(story)
    unknown, none = (None, "loss_unknown"), (0, None)
    assert found[:2] == [none, unknown]
    assert found[-1] == (100, "records_lost")
    losses = [number for number, _ in found if number]
    assert losses == sorted(losses)
    assert set(losses) <= {80, 100}
    row = row_of(story)
    assert (row["earliest_offset"], row["group_offset"], row["retention_margin_seconds"]) == (200, 100, 0)
    assert rules(story.written[-1][1][0]) >= {"data_lost"}
    story.expect_same_from_histories()


def test_a_loss_begins_with_the_sample_that_showed_it(story: Story) -> None:
    """The proof is later than the loss."""
    paused(story)
    (status,) = story.written[-1][1]
    (finding,) = (each for each in status["findings"] if each["rule"] == "data_lost")
    assert finding["since"] == story.clock() - timedelta(seconds=120)
    assert finding["amount"] == 100


def test_past_samples_state_what_they_stated_then(story: Story) -> None:
    paused(story)
    newest = Snapshot.open(story.root)
    for batch in range(1, newest.batch.batch_id + 1):
        names = ["messages_lost", "lag_reason", "earliest_offset"]
        recorded = recorded_lag(newest.as_of(batch), newest).select(names).to_pylist()
        computed = lag_at(newest, batch).select(names).to_pylist()
        # a computed row knows no trend
        for row in (*recorded, *computed):
            row["lag_reason"] = None if row["lag_reason"] == "stopped" else row["lag_reason"]
        assert computed == recorded, batch


@pytest.mark.parametrize(("milliseconds", "expected"), [(-1, (None, "loss_unknown")), (0, (80, "records_lost"))])
def test_a_request_for_the_end_of_the_log_after_the_sample_proves_a_loss_at_once(
    story: Story, milliseconds: int, expected: tuple[int | None, str]
) -> None:
    """Log starts were answered before it, so commits until then are known."""
    sampling, writer = story.sampling, story.writer()
    story.at(30).end(300, start=180)
    assert writer.last is not None
    samples = sampling.ask(story.root, writer.last)
    reached = ReachedPosition(story.clock() + timedelta(milliseconds=milliseconds), 0)
    prepared = sampling.prepare(story.root, writer.last, samples, reached)
    assert prepared is not None
    batch = sampling.write(writer, prepared)
    assert lost(story) == expected
    newest = Snapshot.open(story.root)
    (computed,) = lag_at(newest, batch.batch_id).to_pylist()
    assert (computed["messages_lost"], computed["lag_reason"]) == expected
    (status,) = group_status_at(newest, story.clock(), ["billing"]).to_pylist()
    assert ("data_lost" in rules(status)) == (expected[0] is not None)


def test_a_commit_that_waits_for_its_marker_may_cover_a_deletion(story: Story) -> None:
    """EndTxn is answered before the marker is in the log, and Kafka Streams deletes after the answer."""
    story.at(10).end(300).commit(300, producer=7)
    story.at(20).end(300, start=300).sample()
    for seconds in (30, 40, 50):
        status = story.at(seconds).sample()
        assert lost(story) == (None, "loss_unknown"), seconds
        assert "data_lost" not in rules(status)
    story.expect_same_from_histories()
    # the log start went on without a commit
    for seconds in (60, 70, 80):
        status = story.at(seconds).end(400, start=320).sample()
    assert lost(story) == (20, "records_lost")
    assert "data_lost" in rules(status)
    story.expect_same_from_histories()
