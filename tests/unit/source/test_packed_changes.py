"""Change rows packed for the JVM are unpacked without change."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pipelines.source import changes
from pipelines.source.changes import PACKED_SCHEMA, SCHEMA, ChangeKind, packed, rows, table_of


def commits(count: int) -> pa.RecordBatch:
    columns = {
        "group_id": pa.array([f"group-{number}" for number in range(count)]),
        "partition": pa.array(range(count), pa.int32()),
        "metadata": pa.array([None if number % 3 else "é" * number for number in range(count)]),
        "topic_id": pa.nulls(count, pa.string()),
        "rewound": pa.array([number % 2 == 0 for number in range(count)]),
    }
    return rows(ChangeKind.COMMIT, 7, columns)


def records(*values: bytes | None) -> pa.RecordBatch:
    return rows(ChangeKind.RECORD, 7, {"log_offset": pa.array(range(len(values))), "value": pa.array(values, pa.binary())})


@pytest.mark.parametrize("size", [1, 1000, 128 * 1024])
def test_packed_rows_are_unpacked_unchanged(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "_PACKED_BYTES", size)
    batches = [commits(300), records(None, b"", b"x" * 5000, b"y"), commits(1), commits(200).slice(50, 100)]
    through = pa.Table.from_batches(packed(batches), PACKED_SCHEMA)
    assert table_of(through).equals(pa.Table.from_batches(batches, SCHEMA))
    # Spark also passes on a part of them, in other pieces
    some = table_of(through.filter(pc.equal(through["kind"], "record")).combine_chunks())
    assert some.equals(pa.Table.from_batches(batches[1:2], SCHEMA))


def test_nothing_is_packed_as_nothing() -> None:
    assert list(packed([])) == []
    assert table_of(PACKED_SCHEMA.empty_table()).num_rows == 0


def test_packed_rows_are_small_beside_the_limits_of_arrow() -> None:
    (batch,) = packed([records(*[b"x" * 1000] * 5000)])
    lengths = [len(each) for each in batch["rows"].to_pylist()]
    assert max(lengths) < 200_000
    assert len(lengths) < 60
