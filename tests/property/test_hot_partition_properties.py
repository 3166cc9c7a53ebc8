"""Hot partitions in columns are those of the scalar rule, for topics that are written, added, recreated and fail at random."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from lag_samples import sample, sample_columns
from model_of_hot_partitions import hot_partitions

from coordinator_core.health import EndOffsetSample, HotPartition, StatusSettings, hot_columns

SETTINGS = StatusSettings(hot_ms=300_000, hot_deviations=2.0)


@st.composite
def partitions(draw: st.DrawFn) -> tuple[EndOffsetSample, ...]:
    """Samples of a partition at a rate that changes now and then, with gaps, failures and recreations."""
    at, end, topic_id, samples = draw(st.sampled_from([0, 0, 0, 200_000])), 0, 0, list[EndOffsetSample]()
    while at <= 600_000:
        rate, step = draw(st.sampled_from([0, 1, 10, 10, 100])), draw(st.sampled_from([20_000, 60_000, 90_000]))
        for _ in range(draw(st.integers(1, 12))):
            samples.append(sample(at, end, topic_id=f"id{topic_id}"))
            at, end = at + step, end + rate * step // 1000
        match draw(st.sampled_from(["failure", "recreation", "truncation", *["nothing"] * 7])):
            case "failure":
                samples.append(sample(at, None))
                at += 1_000
            case "recreation":
                end, topic_id = 0, topic_id + 1
            case "truncation":
                end //= 2
    return tuple(each for each in samples if each.asked_at_ms <= 600_000)


@given(st.lists(st.lists(partitions(), min_size=1, max_size=5), min_size=1, max_size=2))
def test_columns_agree_with_the_model(topics: list[list[tuple[EndOffsetSample, ...]]]) -> None:
    histories = [samples for topic in topics for samples in topic]
    number = np.repeat(np.arange(len(topics)), [len(topic) for topic in topics])
    found = hot_columns(sample_columns(histories), number, 600_000, SETTINGS)
    expected: dict[int, HotPartition] = {}
    first = 0
    for topic in topics:
        expected |= hot_partitions(dict(enumerate(topic, first)), 600_000, SETTINGS)
        first += len(topic)
    assert {int(partition): found.hot(row) for row, partition in enumerate(found.partition)} == expected
