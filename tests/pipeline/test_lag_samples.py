"""Samples of end offsets in the tables, and the lag from them: across restarts, kills, and folders of other versions."""

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from created_tables import created_tables
from jobs import run_options
from log_builder import TOPIC, Log, member
from sampled_topics import START_MS, SampledTopics, sampled
from segment_builder import LogBuilder
from table_logs import applied

from coordinator_core.state.era import Era
from pipelines.job.run_options import RunOptions
from pipelines.job.source_sampling import open_sampling
from pipelines.lag.sampling.sampling import LagSampling
from pipelines.query.check import check
from pipelines.query.engine import Snapshot
from pipelines.runtime.errors import UsageError
from pipelines.tables import definitions
from pipelines.tables.store import TableStore
from pipelines.tables.writer import TablesWriter


@pytest.fixture
def root(tmp_path: Path) -> str:
    """Tables of two groups: one behind, and one with a member that has committed nothing."""
    log = Log()
    log.commit(4, 5, group="behind", topic="orders")
    log.group([member()], group="live")
    applied(log, Era.named("4"), [], str(tmp_path))
    return str(tmp_path)


def query(root: str, sql: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = Snapshot.open(root).query(sql).to_pylist()
    return rows


def lag_of(root: str, group: str = "behind") -> dict[str, Any]:
    (row,) = query(root, f"SELECT * FROM lag WHERE group_id = '{group}' AND topic = 'orders'")
    return row


def test_lag_and_its_times(root: str) -> None:
    topics = SampledTopics(orders=9, **{TOPIC: 3})
    read_until = Snapshot.open(root).batch.finished_at
    batch = sampled(root, topics)
    assert topics.requests == [{"orders": [4], TOPIC: [0]}]
    assert (batch.records_read, batch.next_offsets) == (0, {0: 2})
    row = lag_of(root)
    assert (row["group_offset"], row["latest_offset"], row["earliest_offset"], row["lag"]) == (5, 9, 0, 4)
    assert (row["lag_seconds"], row["lag_method"], row["lag_reason"]) == (None, "none", "first_sample")
    assert row["commits_read_until"] == read_until
    assert row["sampled_at"] == datetime.fromtimestamp((START_MS + 10) / 1000, UTC)
    assert (row["consumer_id"], row["batch_id"]) == (None, batch.batch_id)
    (owned,) = query(root, "SELECT * FROM lag WHERE group_id = 'live'")
    assert (owned["consumer_id"], owned["group_offset"], owned["lag"], owned["lag_reason"]) == ("m1", None, None, "no_commit")
    assert owned["latest_offset"] == 3
    assert check(root) == []


def test_nothing_is_sampled_before_the_first_batch(tmp_path: Path) -> None:
    store = created_tables(tmp_path)
    topics = SampledTopics()
    assert LagSampling(topics.sample, topics.clock).sample(TablesWriter.claim(store)) is None
    assert topics.requests == []


def test_an_age_spans_restarts(root: str) -> None:
    """The record at offset 5 became readable between two samples that different processes took."""
    topics = SampledTopics(orders=5)
    sampled(root, topics)
    assert (lag_of(root)["lag_seconds"], lag_of(root)["lag_method"]) == (0, "exact")
    topics.now_ms += 30_000
    topics.ends["orders"] = 9
    sampled(root, topics)
    topics.now_ms += 60_000
    sampled(root, topics)
    row = lag_of(root)
    assert row["lag_method"] == "interpolated"
    assert (row["lag_seconds_low"], row["lag_seconds_high"]) == (60.0, 90.01)
    # the group commits nothing, so its lag grows with the log, from the first sample of an earlier process on
    assert (row["lag_slope_per_second"], row["slope_window_seconds"]) == (
        pytest.approx(4 / 90, rel=1e-3),
        pytest.approx(90, abs=0.1),
    )
    assert row["lag_reason"] == "stopped"


def test_the_slope_of_a_position_that_stands_still(root: str) -> None:
    """It is that of the last quarter of an hour, and begins after a gap in the samples."""
    topics = SampledTopics(orders=5)
    sampling, writer = LagSampling(topics.sample, topics.clock), TablesWriter.claim(TableStore(root))
    slopes, windows = [], []
    for minutes, end in ((0, 5), (1, 11), (14, 19), (16, 29)):
        topics.now_ms, topics.ends["orders"] = START_MS + minutes * 60_000, end
        sampling.sample(writer)
        slopes.append(lag_of(root)["lag_slope_per_second"])
        windows.append(lag_of(root)["slope_window_seconds"])
    assert slopes == [None, pytest.approx(6 / 60, rel=1e-3), pytest.approx(14 / 840, rel=1e-3), pytest.approx(10 / 120, rel=1e-3)]
    assert windows == [None, *(pytest.approx(seconds, abs=0.1) for seconds in (60, 840, 120))]


def test_runs_of_equal_samples_are_stored_at_their_ends(root: str) -> None:
    topics = SampledTopics(orders=5)
    writer = TablesWriter.claim(TableStore(root))
    sampling = LagSampling(topics.sample, topics.clock)
    for seconds, end in ((0, 5), (30, 5), (60, 5), (90, 9), (120, 9), (800, 9)):
        topics.now_ms, topics.ends["orders"] = START_MS + seconds * 1000, end
        sampling.sample(writer)
        seen = lag_of(root)["sampled_at"]
        assert seen == datetime.fromtimestamp((topics.now_ms + 10) / 1000, UTC)
    stored = query(root, "SELECT asked_at, log_end FROM end_offsets WHERE topic = 'orders' ORDER BY asked_at")
    start = datetime.fromtimestamp(START_MS / 1000, UTC)
    assert [(row["asked_at"] - start, row["log_end"]) for row in stored] == [
        (timedelta(seconds=0), 5),
        (timedelta(seconds=60), 5),
        (timedelta(seconds=90), 9),
        (timedelta(seconds=800), 9),
    ]
    # bounds of the unstored sample: the end was still 5 at 60 s
    assert (lag_of(root)["lag_seconds_low"], lag_of(root)["lag_seconds_high"]) == (710.0, 740.01)


def test_a_topic_without_an_answer_has_the_reason_and_no_lag(root: str) -> None:
    topics = SampledTopics(orders="topic_authorization_failed", **{TOPIC: 3})
    sampled(root, topics)
    row = lag_of(root)
    assert (row["group_offset"], row["lag"], row["lag_seconds"]) == (5, None, None)
    assert row["lag_reason"] == "topic_authorization_failed"
    (sample,) = query(root, "SELECT log_end, reason FROM end_offsets WHERE topic = 'orders'")
    assert sample == {"log_end": None, "reason": "topic_authorization_failed"}


def test_samples_compact_the_appended_tables_too(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.lag.sampling.sampling.COMPACT_EVERY", 5)
    topics = SampledTopics()
    sampling, writer = LagSampling(topics.sample, topics.clock), TablesWriter.claim(TableStore(root))
    files = []
    for end in range(5, 12):
        topics.ends["orders"] = end
        topics.now_ms += 30_000
        sampling.sample(writer)
        files.append(len(TableStore(root).table("end_offsets").file_uris()))
    assert files == [1, 2, 3, 2, 3, 4, 5]
    assert len(query(root, "SELECT * FROM end_offsets WHERE topic = 'orders'")) == 7


class Killed(Exception):
    pass


@pytest.mark.parametrize("step", ["sample:after:end_offsets", "sample:after:lag", "before:batches"])
def test_a_kill_leaves_no_part_of_a_sample(step: str, root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    topics = SampledTopics(orders=5)
    sampled(root, topics)
    complete = {name: query(root, f"SELECT * FROM {name}") for name in definitions.SAMPLED}

    def die(reached: str) -> None:
        if reached == step:
            raise Killed

    topics.now_ms += 30_000
    topics.ends["orders"] = 9
    with monkeypatch.context() as patch:
        for module in ("pipelines.lag.sampling.sampling", "pipelines.tables.writer"):
            patch.setattr(f"{module}.failpoint", die)
        with pytest.raises(Killed):
            sampled(root, topics)
    assert {name: query(root, f"SELECT * FROM {name}") for name in definitions.SAMPLED} == complete
    sampled(root, topics)
    assert lag_of(root)["lag"] == 4
    ends = query(root, "SELECT log_end FROM end_offsets WHERE topic = 'orders' ORDER BY asked_at")
    assert [row["log_end"] for row in ends] == [5, 9]
    assert check(root) == []


@pytest.fixture
def earlier_version(monkeypatch: pytest.MonkeyPatch) -> Callable[[], pytest.MonkeyPatch]:
    """Turns this program into a version without the tables of samples, until the patch is undone."""

    def turn() -> pytest.MonkeyPatch:
        monkeypatch.setattr(definitions, "WRITE_ORDER", definitions.FROM_RECORDS)
        return monkeypatch

    return turn


def test_tables_of_an_earlier_version_get_the_new_ones(tmp_path: Path, earlier_version: Callable[[], pytest.MonkeyPatch]) -> None:
    patch = earlier_version()
    log = Log()
    log.commit(4, 5, group="behind", topic="orders")
    root = str(tmp_path)
    applied(log, Era.named("4"), [], root)
    patch.undo()
    assert not (tmp_path / "lag").exists()
    with pytest.raises(UsageError, match="has no table lag: an earlier version of Grouplake wrote it; the next `grouplake run`"):
        Snapshot.open(root).query("SELECT * FROM lag")
    assert check(root) == []
    sampled(root, SampledTopics(orders=9))
    assert lag_of(root)["lag"] == 4
    assert check(root) == []


def test_tables_of_a_newer_version_are_refused(root: str, earlier_version: Callable[[], pytest.MonkeyPatch]) -> None:
    sampled(root, SampledTopics(orders=9))
    patch = earlier_version()
    with pytest.raises(UsageError, match=r"have brokers, end_offsets, .*lag.*, written by a newer version of Grouplake"):
        TablesWriter.claim(TableStore(root))
    patch.undo()
    TablesWriter.claim(TableStore(root))


def run_options_of(source: str, root: str) -> RunOptions:
    return run_options(source, root, lag_interval_seconds=30)


def test_a_source_without_cluster_has_rows_with_the_reason(root: str, tmp_path: Path) -> None:
    sampling = open_sampling(run_options_of(f"jsonl:{tmp_path}/log.jsonl", root), lambda _line: None, lambda: START_MS)
    assert sampling is not None
    writer = TablesWriter.claim(TableStore(root))
    assert sampling.lag.sample(writer) is not None
    row = lag_of(root)
    assert (row["group_offset"], row["latest_offset"], row["lag"], row["lag_seconds"]) == (5, None, None, None)
    assert (row["lag_method"], row["lag_reason"], row["sampled_at"]) == ("none", "source_without_cluster", None)
    assert query(root, "SELECT * FROM end_offsets") == []
    assert check(root) == []
    # nothing has changed since: neither in this process nor in the next one
    assert sampling.lag.sample(writer) is None
    again = open_sampling(run_options_of(f"jsonl:{tmp_path}/log.jsonl", root), lambda _line: None, lambda: START_MS)
    assert again is not None
    assert again.lag.sample(TablesWriter.claim(TableStore(root))) is None


def test_ends_from_a_copy_of_a_log_directory(root: str, tmp_path: Path) -> None:
    directory = tmp_path / "copy"
    log = LogBuilder(directory, "orders")
    log.skip(4, 3)
    log.append(4, [(b"k", b"v")] * 6)
    sampling = open_sampling(run_options_of(f"segments:{directory}", root), lambda _line: None, lambda: START_MS * 2)
    assert sampling is not None
    writer = TablesWriter.claim(TableStore(root))
    assert sampling.lag.sample(writer) is not None
    row = lag_of(root)
    assert (row["earliest_offset"], row["latest_offset"], row["lag"], row["lag_reason"]) == (3, 9, 4, "first_sample")
    # a topic whose segments are not in the directory
    (other,) = query(root, "SELECT * FROM lag WHERE group_id = 'live'")
    assert (other["latest_offset"], other["lag"], other["lag_reason"]) == (None, None, "source_without_cluster")
    assert sampling.lag.sample(writer) is None
    log.append(4, [(b"k", b"v")])
    os.utime(log.segment(4), ns=(0, int(row["sampled_at"].timestamp() * 1000 + 5_000) * 1_000_000))
    assert sampling.lag.sample(writer) is not None
    assert (lag_of(root)["lag"], lag_of(root)["lag_method"], lag_of(root)["lag_seconds"]) == (5, "lower_bound", 5.0)


#: Tables that every sample replaces.
_OF_GROUPS = ("lag", "group_status", "partition_status")


def test_files_of_earlier_samples_are_removed_by_the_job(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.lag.sampling.sampling.COMPACT_EVERY", 5)
    monkeypatch.setattr(definitions, "SAMPLED_HOURS", 0)
    topics = SampledTopics()
    sampling, writer = LagSampling(topics.sample, topics.clock), TablesWriter.claim(TableStore(root))
    files = []
    for end in range(5, 12):
        topics.ends["orders"], topics.now_ms = end, topics.now_ms + 30_000
        batch = sampling.sample(writer)
        assert batch is not None
        files.append({name: len(list(Path(root, name).glob("*.parquet"))) for name in _OF_GROUPS})
    assert [found["lag"] for found in files] == [1, 2, 3, 4, 1, 2, 3]
    assert all(len(set(found.values())) == 1 for found in files)
    assert lag_of(root)["latest_offset"] == 11
    with pytest.raises(UsageError, match=r"table lag of batch 2 can no longer be read: .*grouplake lag --as-of"):
        Snapshot.open(root, "2").query("SELECT * FROM lag")
    ends = Snapshot.open(root, "2").query("SELECT max(log_end) AS newest FROM end_offsets").to_pylist()
    assert ends == [{"newest": 6}], "rows of a history are in its newest version"
    # nothing to roll back: the versions of a vacuum are known
    topics.now_ms += 30_000
    again = sampled(root, topics)
    assert batch is not None
    assert {name: again.versions[name] - batch.versions[name] for name in _OF_GROUPS} == dict.fromkeys(_OF_GROUPS, 1)
    assert check(root) == []
