"""Samples to an Arrow table and back to numbered partitions, whose lag equals the scalar version."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from lag_samples import as_row, sample
from model_of_lag import Commit, partition_lag

from coordinator_core.health import (
    END_OFFSETS_SCHEMA,
    NONE,
    CommitColumns,
    EndOffsetSample,
    SampledPartitions,
    lag_columns,
    samples_table,
)

ORDERS = (sample(0, 100), sample(30_000, None), sample(60_000, 300, 20, last_stable=250))
PAYMENTS = tuple(
    EndOffsetSample("other", "payments", 7, at, at + 5, 0, end, leader_epoch=None) for at, end in ((1_000, 40), (31_000, 90))
)


def texts(*values: str | None) -> "pa.ChunkedArray[pa.StringScalar]":
    return pa.chunked_array([pa.array(values, pa.string())])


def numbers(*values: int | None) -> "pa.ChunkedArray[pa.Int32Scalar]":
    return pa.chunked_array([pa.array(values, pa.int32())])


def test_a_table_of_samples() -> None:
    table = samples_table(ORDERS)
    assert table.schema == END_OFFSETS_SCHEMA
    failed = table.slice(1, 1).to_pylist()[0]
    assert (failed["reason"], failed["log_end"], failed["topic"], failed["partition"]) == (ORDERS[1].reason, None, "orders", 0)
    assert table["answered_at"].cast(pa.int64()).to_pylist() == [10_000, 30_010_000, 60_010_000]


@given(st.permutations([*ORDERS, *PAYMENTS]))
def test_lag_from_a_table_in_any_order(samples: list[EndOffsetSample]) -> None:
    sampled = SampledPartitions(samples_table(samples))
    topic, partition = texts("payments", "orders", "orders", "unknown"), numbers(7, 0, 1, 0)
    offset, ids = (50, 150, 5, 5), ("other", "id", "id", None)
    commits = CommitColumns(
        sampled.partition_numbers(topic, partition), np.array(offset), topic_id=sampled.topic_id_numbers(texts(*ids))
    )
    table = lag_columns(commits, sampled.columns)
    at = table.schema.get_field_index("sampled_at")
    rows = table.set_column(at, "sampled_at", table["sampled_at"].cast(pa.int64())).to_pylist()
    histories: tuple[tuple[EndOffsetSample, ...], ...] = (PAYMENTS, ORDERS, (), ())
    expected = [partition_lag(Commit(o, topic_id=i), s) for o, i, s in zip(offset, ids, histories, strict=True)]
    assert rows == [as_row(lag) for lag in expected]


def test_partitions_and_topic_ids_without_samples() -> None:
    sampled = SampledPartitions(samples_table([*ORDERS, *PAYMENTS]))
    assert sampled.partition_numbers(texts("payments", "payments", "orders"), numbers(7, 0, 7)).tolist() == [1, -1, -1]
    known, other, missing = sampled.topic_id_numbers(texts("id", "never seen", None)).tolist()
    assert missing == NONE
    assert other not in {known, NONE, *sampled.columns.topic_id.tolist()}


def test_a_table_without_samples() -> None:
    sampled = SampledPartitions(samples_table([]))
    number = sampled.partition_numbers(texts("orders"), numbers(0))
    assert number.tolist() == [-1]
    assert lag_columns(CommitColumns(number, np.array([5])), sampled.columns)["lag_reason"].to_pylist() == ["no_sample"]
