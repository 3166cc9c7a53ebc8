"""The history of samples in columns equals one that keeps a sample object per partition."""

from collections.abc import Sequence

import hypothesis.strategies as st
from hypothesis import given

from coordinator_core.health import END_OFFSETS_SCHEMA, EndOffsetSample, samples_table
from pipelines.lag.sampling.sample_history import SampleHistory

_STORED_EVERY_MS = 600_000


class HistoryByPartition:
    """The specification of `SampleHistory`."""

    def __init__(self) -> None:
        self.stored: list[EndOffsetSample] = []
        self.last_stored: dict[tuple[str, int], EndOffsetSample] = {}
        self.unfinished: dict[tuple[str, int], EndOffsetSample] = {}

    def add(self, samples: Sequence[EndOffsetSample]) -> list[EndOffsetSample]:
        rows: list[EndOffsetSample] = []
        for sample in samples:
            key = sample.topic, sample.partition
            last = self.last_stored.get(key)
            is_same = last is not None and last.values == sample.values
            if last is not None and is_same and sample.answered_at_ms - last.answered_at_ms < _STORED_EVERY_MS:
                self.unfinished[key] = sample
                continue
            end_of_run = self.unfinished.pop(key, None)
            if end_of_run is not None and not is_same:
                rows.append(end_of_run)
            rows.append(sample)
            self.last_stored[key] = sample
        self.stored += rows
        return rows


def rows(samples: Sequence[EndOffsetSample]) -> list[dict[str, object]]:
    return sorted(samples_table(samples).to_pylist(), key=lambda row: (row["topic"], row["partition"], row["answered_at"]))


KEYS = [("a", 0), ("a", 1), ("b", 0)]
OFFSETS = st.one_of(st.none(), st.integers(0, 2))
STEPS = st.lists(
    st.tuples(
        st.sampled_from([10, 30_000, 700_000]),
        st.dictionaries(st.sampled_from(KEYS), st.tuples(OFFSETS, OFFSETS, st.sampled_from([None, "x", "y"])), min_size=1),
    ),
    max_size=8,
)


@given(STEPS)
def test_columns_equal_objects(steps: list[tuple[int, dict[tuple[str, int], tuple[int | None, int | None, str | None]]]]) -> None:
    history, specification, now = SampleHistory(END_OFFSETS_SCHEMA.empty_table()), HistoryByPartition(), 0
    for wait, partitions in steps:
        now += wait
        samples = [
            EndOffsetSample(
                topic_id, topic, number, now, now + 5, 0, end, epoch, epoch, reason=None if end is not None else "unknown"
            )
            for (topic, number), (end, epoch, topic_id) in sorted(partitions.items())
        ]
        stored = history.add(samples_table(samples))
        times = ["topic", "partition", "answered_at"]
        expected = specification.add(samples)
        assert stored.sort_by([(name, "ascending") for name in times]).to_pylist() == rows(expected)
        everything = [*specification.stored, *specification.unfinished.values()]
        assert history.table().sort_by([(name, "ascending") for name in times]).to_pylist() == rows(everything)
