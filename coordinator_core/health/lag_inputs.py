"""Inputs of the lag of one partition besides its samples: the commit, facts about the topic, an earlier lag. Times in ms."""

from typing import NamedTuple


class Commit(NamedTuple):
    """A committed offset.

    - `committed_at_ms`: time of the commit on the coordinator; None if the record has none.
    - `topic_id`: id in the commit (value version 4); None for none.
    - `moved_at_ms`: time of the commit that moved the offset to its value; commits of the same offset do not change it.
    """

    offset: int
    committed_at_ms: int | None = None
    topic_id: str | None = None
    moved_at_ms: int | None = None


class RecordCount(NamedTuple):
    """Data records in `[from_offset, to_offset)`: without control batches, aborted transactions, records lost or compacted.

    `first_offset` is the offset of the first one; None if there is none. A Fetch of the range with read_committed counts them.
    """

    from_offset: int
    to_offset: int
    records: int
    first_offset: int | None = None


class TopicFacts(NamedTuple):
    """Properties of a topic; None for unknown.

    - `transactional`: the topic has had transactions, so it may hold markers.
    - `compacted`: `cleanup.policy` contains `compact`.
    - `retention_ms`: `retention.ms` of a topic whose policy contains `delete`; None also for unlimited.
    """

    transactional: bool | None = None
    compacted: bool | None = None
    retention_ms: int | None = None


#: A topic without known properties.
NO_FACTS = TopicFacts()


class EarlierLag(NamedTuple):
    """The lag of the same partition at an earlier sample: the start of the window of the slope."""

    sampled_at_ms: int
    group_offset: int
    lag: int


#: Longest window of the slope: boards that show the trend of lag use 5 to 15 minutes.
SLOPE_WINDOW_MS = 900_000

#: `data_lag` of at most this many offsets is counted by a Fetch. Greater lags are not made of markers alone.
COUNTED_LAG = 1_000


def window_start(earlier: tuple[EarlierLag, ...], at_ms: int, window_ms: int = SLOPE_WINDOW_MS) -> EarlierLag | None:
    """The oldest of the earlier lags within the window that ends at `at_ms`; None if there is none."""
    return min((e for e in earlier if 0 < at_ms - e.sampled_at_ms <= window_ms), default=None)


def count_is_due(
    lag: int | None, unchanged_samples: int, counted: RecordCount | None, group_offset: int, latest_offset: int
) -> bool:
    """True if the data records between commit and end should be counted once by a Fetch.

    The lag is small and unchanged for two samples, and no count of this range exists: markers and aborted records may be all
    that is left.
    """
    if lag is None or not 0 < lag <= COUNTED_LAG or unchanged_samples < 2:
        return False
    return counted is None or (counted.from_offset, counted.to_offset) != (group_offset, latest_offset)
