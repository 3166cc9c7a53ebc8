"""Settings of topics, counts of records and append times between samples: what is requested when, and what is kept."""

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa
import pytest

from coordinator_core.codec.arrays import Int64s
from coordinator_core.health import NONE, TimestampSearch
from coordinator_core.log.errors import LogUnreachable
from coordinator_core.sources.record_counts import DataRecords
from coordinator_core.sources.topic_settings import TopicSettings
from pipelines.lag.inputs.append_times import NarrowedAges
from pipelines.lag.inputs.counted_records import CountedRecords, ReadableEnds
from pipelines.lag.inputs.topic_facts import TopicFactsCache

MINUTE_MS = 60_000
DELETED_AFTER_A_DAY = TopicSettings(compacted=False, retention_ms=86_400_000, log_append_time=False)
COMPACTED = TopicSettings(compacted=True, retention_ms=None, log_append_time=True)


class Settings:
    """Settings by topic; requests are recorded."""

    def __init__(self, **topics: TopicSettings | str) -> None:
        self.topics = topics
        self.requests: list[list[str]] = []
        self.is_away = False

    def read(self, topics: Iterable[str]) -> dict[str, TopicSettings | str]:
        self.requests.append(list(topics))
        if self.is_away:
            raise LogUnreachable("no broker answers")
        return {name: self.topics[name] for name in topics}


def test_settings_are_requested_again_after_ten_minutes() -> None:
    settings = Settings(a=DELETED_AFTER_A_DAY, b=COMPACTED)
    facts = TopicFactsCache(settings.read, lambda _line: None)
    facts.refresh(["a"], 0)
    facts.refresh(["a", "b"], MINUTE_MS)
    facts.refresh(["a", "b"], 9 * MINUTE_MS)
    assert settings.requests == [["a"], ["b"]]
    columns = facts.columns(["a", "b"], np.array([0, 1, 1]))
    assert columns.retention_ms.tolist() == [86_400_000, NONE, NONE]
    assert columns.compacted.tolist() == [0, 1, 1]
    assert columns.transactional.tolist() == [NONE] * 3
    assert [facts.has_append_times(name) for name in ("a", "b", "c")] == [False, True, False]
    settings.topics["a"] = COMPACTED
    facts.refresh(["a", "b"], 10 * MINUTE_MS)
    assert settings.requests[2:] == [["a"]]
    assert facts.columns(["a"], np.array([0])).compacted.tolist() == [1]
    facts.refresh(["b"], 10 * MINUTE_MS)
    assert not facts.has_append_times("a")


def test_settings_that_cannot_be_read_are_unknown_and_reported_once() -> None:
    settings = Settings(a="topic_authorization_failed", b=COMPACTED)
    lines: list[str] = []
    facts = TopicFactsCache(settings.read, lines.append)
    for minutes in (0, 10, 20):
        facts.refresh(["a", "b"], minutes * MINUTE_MS)
    assert facts.columns(["a", "b"], np.array([0, 1])).compacted.tolist() == [NONE, 1]
    assert len(lines) == 1
    # an outage keeps what is known
    settings.is_away = True
    facts.refresh(["a", "b"], 30 * MINUTE_MS)
    assert facts.columns(["a", "b"], np.array([0, 1])).compacted.tolist() == [NONE, 1]


def positions(*rows: tuple[str, str, int, int | None]) -> pa.Table:
    names = ("group_id", "topic", "partition", "committed_offset")
    types = (pa.string(), pa.string(), pa.int32(), pa.int64())
    columns = zip(*rows, strict=True)
    return pa.table({name: pa.array(column, kind) for name, column, kind in zip(names, columns, types, strict=True)})


Ranges = Mapping[tuple[str, int], tuple[int, int]]


class Records:
    """Partitions whose only data records have offsets divisible by ten; a text is the reason why they cannot be read."""

    def __init__(self, **reasons: str) -> None:
        self.reasons = reasons
        self.requests: list[Ranges] = []

    def read(self, ranges: Ranges) -> dict[tuple[str, int], DataRecords | str]:
        self.requests.append(dict(ranges))
        return {
            key: self.reasons.get(key[0])
            or DataRecords(start, end, np.array([offset for offset in range(start, end) if offset % 10 == 0], np.int64))
            for key, (start, end) in ranges.items()
        }


def ends_of(log_end: list[int], stable: list[int] | None = None, before: list[int] | None = None, start: int = 0) -> ReadableEnds:
    """Without a last stable offset, no transaction is open."""
    stables = (log_end if each is None else each for each in (stable, before))
    return ReadableEnds(np.full(len(log_end), start), np.array(log_end), *map(np.array, stables))


def counted(counts: CountedRecords, table: pa.Table, ends: list[int], now_ms: int = 0) -> list[int]:
    columns: dict[str, Int64s] = counts.columns(table, ends_of(ends), now_ms)
    found: list[int] = columns["counted_records"].tolist()
    return found


def test_an_unchanged_lag_is_counted_once() -> None:
    records = Records()
    counts = CountedRecords(records.read, 10)
    table = positions(("g", "a", 0, 5), ("h", "a", 0, 12), ("h", "b", 0, 1), ("h", "b", 1, None), ("h", "c", 0, 7))
    ends = [31, 31, 2_000, 5, 7]
    assert counted(counts, table, ends) == [NONE] * 5
    # one read of a partition serves all of its groups; a large lag, no commit and no lag are not counted
    assert counted(counts, table, ends) == [3, 2, NONE, NONE, NONE]
    assert records.requests == [{("a", 0): (5, 31)}]
    assert counted(counts, table, ends) == [3, 2, NONE, NONE, NONE]
    # another end is another lag
    ends[0] = ends[1] = 41
    assert counted(counts, table, ends) == [NONE] * 5
    assert counted(counts, table, ends) == [4, 3, NONE, NONE, NONE]
    assert len(records.requests) == 2


def test_a_lag_of_an_earlier_process_counts_as_a_sample() -> None:
    records = Records()
    counts = CountedRecords(records.read, 10)
    stored = positions(("g", "a", 0, 5)).rename_columns(["group_id", "topic", "partition", "group_offset"])
    counts.begin(stored.append_column("latest_offset", pa.array([31])))
    assert counted(counts, positions(("g", "a", 0, 5)), [31]) == [3]


def test_the_budget_takes_the_smallest_lags_first() -> None:
    records = Records()
    counts = CountedRecords(records.read, 2)
    table = positions(*(("g", "a", number, 0) for number in range(4)))
    ends = [40, 10, 30, 20]
    found = [counted(counts, table, ends) for _ in range(4)]
    assert found[1] == [NONE, 1, NONE, 2]
    assert found[2] == found[3] == [4, 1, 3, 2]
    assert [len(request) for request in records.requests] == [2, 2]


def test_a_range_that_cannot_be_read_is_tried_again_after_an_hour() -> None:
    records = Records(a="topic_authorization_failed")
    counts = CountedRecords(records.read, 10)
    table = positions(("g", "a", 0, 5))
    for minutes in (0, 1, 2, 59, 61, 62, 63):
        assert counted(counts, table, [31], minutes * MINUTE_MS) == [NONE]
    assert len(records.requests) == 2


def test_a_range_whose_leader_moves_is_tried_again_after_a_minute() -> None:
    records = Records(a="not_leader_or_follower")
    counts = CountedRecords(records.read, 10)
    table = positions(("g", "a", 0, 5))
    for seconds in (0, 30, 60, 91):
        counted(counts, table, [31], seconds * 1_000)
    assert len(records.requests) == 2


def test_lost_records_are_not_read() -> None:
    records = Records()
    counts = CountedRecords(records.read, 10)
    table = positions(("g", "a", 0, 5))
    for _ in range(2):
        columns = counts.columns(table, ends_of([31], start=15), 0)
    assert records.requests == [{("a", 0): (15, 31)}]
    assert [columns[name].tolist() for name in ("counted_from", "counted_to", "counted_records", "counted_first")] == [
        [5],
        [31],
        [2],
        [20],
    ]


def test_the_records_before_an_open_transaction_are_counted_once_while_others_arrive() -> None:
    records = Records()
    counts = CountedRecords(records.read, 10)
    table = positions(("g", "a", 0, 39), ("h", "a", 0, 5), ("i", "a", 0, 40))
    found = []
    # the first sample with this last stable offset, then a batch of records before each sample
    for before, end in ((30, 50), (40, 60), (40, 70), (40, 80)):
        columns = counts.columns(table, ends_of([end] * 3, [40] * 3, [before] * 3), 0)
        found.append([columns[name].tolist() for name in ("counted_to", "counted_records", "counted_first")])
    assert found[0] == [[NONE] * 3] * 3
    # at 39 nothing is left, and the position of i is the last stable offset itself
    assert found[1] == found[2] == found[3] == [[40, 40, NONE], [0, 3, NONE], [NONE, 10, NONE]]
    assert records.requests == [{("a", 0): (5, 40)}]
    # another process continues with the samples of this one
    assert CountedRecords(records.read, 10).columns(table, ends_of([90] * 3, [40] * 3, [40] * 3), 0)["counted_to"][0] == 40


def narrowed_lag(*ages: tuple[int, float | None]) -> pa.Table:
    """Rows of lag with an interval of 30 s; without an age the method is another one."""
    return pa.table(
        {
            "lag": pa.array([lag for lag, _ in ages], pa.int64()),
            "lag_method": ["none" if age is None else "interpolated" for _, age in ages],
            "lag_seconds_low": pa.array([age for _, age in ages], pa.float64()),
            "lag_seconds_high": pa.array([None if age is None else age + 30 for _, age in ages], pa.float64()),
            "sampled_at": pa.array([100_000_000] * len(ages), pa.timestamp("us", tz="UTC")),
        }
    )


def test_the_largest_lags_are_narrowed_once() -> None:
    requests: list[dict[tuple[str, int], TimestampSearch]] = []

    def search(searches: Mapping[tuple[str, int], TimestampSearch]) -> dict[tuple[str, int], TimestampSearch]:
        requests.append(dict(searches))
        return {key: TimestampSearch(each.offset, each.from_ms, each.from_ms + 1_000) for key, each in searches.items()}

    ages = NarrowedAges(search, 2)
    table = positions(("g", "a", 0, 5), ("g", "a", 1, 6), ("g", "a", 2, 7), ("g", "b", 0, 8), ("g", "a", 3, 9))
    lag, offsets = narrowed_lag((10, 20.0), (30, 10.0), (20, 0.0), (90, 5.0), (99, None)), np.array([5, 6, 7, 8, 9])
    for _ in range(2):
        columns = ages.columns(table, lag, offsets, ["a"])
        assert columns["append_offset"].tolist() == [NONE, 6, 7, NONE, NONE]
        assert columns["append_from_ms"].tolist() == [NONE, 60_000, 70_000, NONE, NONE]
        assert columns["append_until_ms"].tolist() == [NONE, 61_000, 71_000, NONE, NONE]
    assert requests == [{("a", 1): TimestampSearch(6, 60_000, 90_001), ("a", 2): TimestampSearch(7, 70_000, 100_001)}]
    # another record
    ages.columns(table, lag, offsets + 1, ["a"])
    assert [sorted(request) for request in requests[1:]] == [[("a", 1), ("a", 2)]]
    assert ages.columns(table, lag, offsets, []) == {}


def test_an_outage_leaves_the_interval_as_it_is() -> None:
    def search(_searches: object) -> dict[tuple[str, int], TimestampSearch]:
        raise LogUnreachable("no broker answers")

    assert NarrowedAges(search, 2).columns(positions(("g", "a", 0, 5)), narrowed_lag((1, 2.0)), np.array([5]), ["a"]) == {}


@pytest.mark.parametrize("ends", [[NONE], [31]])
def test_an_outage_leaves_records_uncounted(ends: list[int]) -> None:
    def read(_ranges: object) -> dict[tuple[str, int], DataRecords | str]:
        raise LogUnreachable("no broker answers")

    counts = CountedRecords(read, 10)
    table = positions(("g", "a", 0, 5))
    assert [counted(counts, table, ends) for _ in range(2)] == [[NONE], [NONE]]
