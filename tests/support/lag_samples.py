"""End offset samples and commits for tests of lag: builders, strategies, columns, a topic whose true ages are known."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st
from model_of_lag import AFTER_ALL_MS, NO_FACTS, Commit, LagRow, TopicFacts, partition_lag
from model_of_trends import GrowthStart, LagTrend

from coordinator_core.health import (
    NONE,
    AppendTime,
    CommitColumns,
    EndOffsetSample,
    FactColumns,
    RecordCount,
    SampleColumns,
    TrendColumns,
    lag_columns,
)

REASONS = ("topic_authorization_failed", "leader_not_available")


def sample(at_ms: int, log_end: int | None, log_start: int | None = 0, **values: Any) -> EndOffsetSample:
    """A sample of orders-0, answered 10 ms after `at_ms` unless `answered_at_ms` is given; without a log end it failed."""
    values = {"topic_id": "id", "answered_at_ms": at_ms + 10, "leader_epoch": 3, **values}
    if log_end is None:
        values = {"reason": REASONS[0], **values, "last_stable": None, "leader_epoch": None}
        log_start = None
    return EndOffsetSample(topic="orders", partition=0, asked_at_ms=at_ms, log_start=log_start, log_end=log_end, **values)


@dataclass(frozen=True)
class LagCase:
    """Arguments of one call of `partition_lag`."""

    commit: Commit | None
    samples: tuple[EndOffsetSample, ...]
    facts: TopicFacts = NO_FACTS
    counted: RecordCount | None = None
    append_time: AppendTime | None = None
    trend: LagTrend | None = None
    read_until_ms: int | None = AFTER_ALL_MS

    @property
    def committed_at_ms(self) -> int | None:
        return None if self.commit is None else self.commit.committed_at_ms

    def lag(self) -> LagRow:
        return partition_lag(
            self.commit,
            self.samples,
            self.facts,
            counted=self.counted,
            append_time=self.append_time,
            trend=self.trend,
            read_until_ms=self.read_until_ms,
        )


# -- strategies

times = st.integers(0, 60_000)
offsets = st.integers(0, 12)
#: Brokers store them as they are sent.
negative_offsets = st.sampled_from([-1, -(2**63) + 1])


def optional(values: st.SearchStrategy[int]) -> st.SearchStrategy[int | None]:
    return st.none() | values


#: Event, time until the request, duration of the request, and numbers that choose the other values.
_steps = st.tuples(
    st.sampled_from(["grow", "grow", "grow", "idle", "idle", "fail", "delete", "truncate", "recreate"]),
    st.integers(0, 40_000),
    st.integers(0, 50),
    st.integers(0, 11),
    st.integers(0, 11),
)


@st.composite
def sample_histories(draw: st.DrawFn, min_size: int = 0, max_size: int = 8) -> tuple[EndOffsetSample, ...]:
    """Samples of one topic partition, oldest first: growing, idle, failing, truncated and recreated, with ids or without."""
    with_ids = draw(st.booleans())
    at, topic, epoch, start, end = 0, 0, 3, 0, draw(offsets)
    found = []
    for event, pause, duration, choice, other in draw(st.lists(_steps, min_size=min_size, max_size=max_size)):
        at += pause
        if event == "grow":
            end += 1 + choice % 5
        elif event == "delete":
            start += choice % (end - start + 1)
        elif event == "truncate":
            end, epoch = start + choice % (end - start + 1), epoch + 1
        elif event == "recreate":
            topic, epoch, start, end = topic + 1, other % 4, 0, choice
        values: dict[str, Any] = {"answered_at_ms": at + duration, "topic_id": f"id{topic}" if with_ids else None}
        if event == "fail":
            found.append(sample(at, None, reason=REASONS[choice % 2], **values))
        else:
            # requested after the log end, so it may be greater
            values |= {"last_stable": start + other % (end - start + 2) if choice % 3 else None}
            values |= {"leader_epoch": epoch if (choice + other) % 4 else None}
            found.append(sample(at, end, start if (choice + 2 * other) % 5 else None, **values))
        at += duration
    return tuple(found)


commits = st.builds(Commit, offsets, optional(times), st.sampled_from([None, "id0", "id1"]), optional(times))


slopes = st.sampled_from([-2.0, -0.5, 0.0, 0.25, 3.0])
rates = st.sampled_from([0.0, 0.5, 4.0])
truths = st.none() | st.booleans()


@st.composite
def lag_cases(draw: st.DrawFn) -> LagCase:
    """Commits near the log of their samples, so that every method and reason occurs."""
    samples = draw(sample_histories())
    last = samples[-1] if samples else sample(0, 0)
    now, end = last.answered_at_ms, last.log_end or 0
    earlier_times = st.integers(0, now)
    offset = draw(st.integers(0, end) | offsets | negative_offsets)
    topic_id = draw(st.sampled_from([None, last.topic_id, last.topic_id, "id0"]))
    commit = Commit(offset, draw(optional(earlier_times)), topic_id, draw(optional(earlier_times)))
    counted, append_time, trend = None, None, None
    if draw(st.booleans()):
        to = draw(st.sampled_from([end, end, last.last_stable or end, offset + 1]))
        first = draw(optional(st.integers(offset, max(offset, to - 1))))
        counted = RecordCount(draw(st.sampled_from([offset, offset, offset + 1])), to, 0 if first is None else 1, first)
    if draw(st.booleans()):
        begin, until = sorted((draw(earlier_times), draw(earlier_times)))
        append_time = AppendTime(draw(st.sampled_from([offset, offset, offset + 1])), begin, until)
    if draw(st.booleans()):
        since = draw(optional(times))
        start = None if since is None else GrowthStart(since, draw(st.booleans()))
        trend = LagTrend(draw(slopes), draw(st.integers(60, 900)), *draw(st.tuples(rates, rates)), start)
    facts = TopicFacts(draw(truths), draw(truths), draw(optional(times)), draw(truths))
    read_until_ms = draw(st.just(AFTER_ALL_MS) | optional(st.integers(0, now + 1)))
    commit = commit._replace(pending_offset=draw(st.none() | st.integers(0, 25)))
    return LagCase(
        draw(st.sampled_from([commit, commit, commit, None])), samples, facts, counted, append_time, trend, read_until_ms
    )


# -- a topic whose true ages are known


@dataclass(frozen=True)
class SimulatedTopic:
    """`readable_at[k]` is the time at which the record at offset k becomes readable, in ms, not falling."""

    readable_at: tuple[int, ...]

    def log_end(self, at_ms: int) -> int:
        return sum(at <= at_ms for at in self.readable_at)

    def samples(self, requests: Sequence[tuple[int, int, int]]) -> tuple[EndOffsetSample, ...]:
        """One sample per request: asked, seen by the broker, answered."""
        return tuple(sample(asked, self.log_end(seen), answered_at_ms=answered) for asked, seen, answered in requests)

    def age_ms(self, offset: int, at_ms: int) -> int:
        """Time since the record became readable; 0 if it is not readable."""
        return max(0, at_ms - self.readable_at[offset]) if offset < len(self.readable_at) else 0


@st.composite
def simulations(draw: st.DrawFn) -> tuple[SimulatedTopic, tuple[tuple[int, int, int], ...]]:
    """A topic with bursts and pauses, and requests at irregular times."""
    gaps = draw(st.lists(st.sampled_from([0, 0, 1, 7, 500, 30_000]), min_size=1, max_size=25))
    readable_at = tuple(np.cumsum(gaps).tolist())
    requests, at = [], 0
    for _ in range(draw(st.integers(1, 10))):
        asked = at + draw(st.integers(1, 30_000))
        seen = asked + draw(st.integers(0, 200))
        at = seen + draw(st.integers(0, 200))
        requests.append((asked, seen, at))
    return SimulatedTopic(readable_at), tuple(requests)


# -- a topic with transactions


@dataclass(frozen=True)
class TransactionalLog:
    """A log whose records are data, markers, aborted records or records of open transactions (`dmao`), one per offset."""

    kinds: str

    @property
    def last_stable(self) -> int:
        """The first record of the oldest open transaction; the end if none is open."""
        return self.kinds.index("o") if "o" in self.kinds else len(self.kinds)

    def count(self, offset: int, until: int) -> RecordCount:
        """The data records from an offset up to another one, as a Fetch with read_committed finds them."""
        found = [at for at in range(offset, min(until, self.last_stable)) if self.kinds[at] == "d"]
        return RecordCount(offset, max(offset, min(until, self.last_stable)), len(found), found[0] if found else None)

    def is_blocked(self, offset: int) -> bool:
        """True if a consumer with read_committed gets nothing, because a transaction is open."""
        return (
            self.last_stable < len(self.kinds) and offset < len(self.kinds) and "d" not in self.kinds[offset : self.last_stable]
        )


# -- columns


def sample_columns(histories: Sequence[Sequence[EndOffsetSample]], names: dict[str, int] | None = None) -> SampleColumns:
    """Columns of histories that are not empty, each of a partition of its own; the numbers of topic ids are added to `names`."""
    numbers = {} if names is None else names
    rows = [s for samples in histories for s in samples]
    return SampleColumns(
        starts=np.concatenate([[0], np.cumsum([len(samples) for samples in histories], dtype=np.int64)]).astype(np.int64),
        **{name: _column([getattr(s, name) for s in rows]) for name in _SAMPLE_COLUMNS},
        topic_id=_column([None if s.topic_id is None else numbers.setdefault(s.topic_id, len(numbers)) for s in rows]),
        reason=_column([None if s.reason is None else REASONS.index(s.reason) for s in rows]),
        reasons=REASONS,
    )


def as_columns(cases: Sequence[LagCase]) -> pa.Table:
    """The result of `lag_columns` for the cases, one row each; each case has a partition of its own."""
    names: dict[str, int] = {}
    sampled = [case for case in cases if case.samples]
    columns = sample_columns([case.samples for case in sampled], names)
    facts = FactColumns(*(_column([getattr(case.facts, name) for case in sampled]) for name in TopicFacts._fields))
    numbers = iter(range(len(sampled)))
    commits = [case.commit or Commit(NONE) for case in cases]
    return lag_columns(
        CommitColumns(
            partition=_column([next(numbers) if case.samples else -1 for case in cases]),
            offset=_column([commit.offset for commit in commits]),
            committed_at_ms=_column([commit.committed_at_ms for commit in commits]),
            topic_id=_column([None if c.topic_id is None else names.setdefault(c.topic_id, len(names)) for c in commits]),
            moved_at_ms=_column([commit.moved_at_ms for commit in commits]),
            pending_offset=_column([commit.pending_offset for commit in commits]),
            read_until_ms=_column([case.read_until_ms for case in cases]),
            **_fields("counted", ("from", "to", "records", "first"), [case.counted for case in cases]),
            **_fields("append", ("offset", "from_ms", "until_ms"), [case.append_time for case in cases]),
        ),
        columns,
        facts,
        trend=trend_values([case.trend for case in cases]),
    )


def trend_values(trends: Sequence[LagTrend | None]) -> TrendColumns:
    """Trends as columns."""
    found = TrendColumns.unknown(len(trends))
    for row, trend in enumerate(trends):
        if trend is not None:
            columns = (found.slope, found.window_seconds, found.produce_rate, found.consume_rate)
            for column, value in zip(columns, trend[:4], strict=True):
                column[row] = value
            if trend.falls_behind is not None:
                found.falls_behind.at_ms[row], found.falls_behind.is_latest[row] = trend.falls_behind
    return found


def without_times(table: pa.Table) -> pa.Table:
    """A result of `lag_columns` with timestamps as numbers."""
    for name in ("sampled_at", "falls_behind_since", "committed_at"):
        table = table.set_column(table.schema.get_field_index(name), name, table[name].cast(pa.int64()))
    return table


def as_row(lag: LagRow, committed_at_ms: int | None = None) -> dict[str, Any]:
    """The scalar result, and the time of the commit, with the names and types of `lag_columns`."""
    row = {name: getattr(lag, name) for name in lag.__dataclass_fields__}
    sampled_at = row.pop("sampled_at_ms")
    row["sampled_at"] = None if sampled_at is None else sampled_at * 1000
    since = row.pop("falls_behind_since_ms")
    row["falls_behind_since"] = None if since is None else since * 1000
    row["committed_at"] = None if committed_at_ms is None else committed_at_ms * 1000
    row["lag_method"] = str(row["lag_method"])
    return row


_SAMPLE_COLUMNS = ("asked_at_ms", "answered_at_ms", "log_start", "log_end", "last_stable", "leader_epoch")


def _column(values: Sequence[int | None]) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array([NONE if value is None else int(value) for value in values], dtype=np.int64)


def _fields(prefix: str, names: Sequence[str], tuples: Sequence[tuple[Any, ...] | None]) -> dict[str, Any]:
    return {f"{prefix}_{name}": _column([t[k] if t else None for t in tuples]) for k, name in enumerate(names)}
