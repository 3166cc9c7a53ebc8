"""An append updates the producers without reading its own bytes, as a later recovery does from them."""

import pytest

from coordinator_core.log.compression import Compression
from coordinator_core.log.entries import ControlType
from coordinator_core.log.record_batch import read_header
from coordinator_core.segment_log.append_batch import AppendBatch, batch_bytes
from coordinator_core.segment_log.producer_replay import data_batch_of, marker_of

RECORDS = [(b"key", b"value"), (b"key", None)]


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.LZ4])
def test_a_batch_of_data(compression: Compression) -> None:
    batch = AppendBatch(RECORDS, (7, 3))
    header = read_header(memoryview(batch_bytes(batch, 10, 0, 1_000, compression)))
    assert batch.of_producer(10, 1_000) == data_batch_of(header)


@pytest.mark.parametrize("kind", [ControlType.ABORT, ControlType.COMMIT])
def test_a_marker(kind: ControlType) -> None:
    batch = AppendBatch((), (7, 3), kind, 5)
    data = memoryview(batch_bytes(batch, 10, 0, 1_000, Compression.NONE))
    assert batch.of_producer(10, 1_000) == marker_of(data, read_header(data))


def test_a_batch_without_producer() -> None:
    assert AppendBatch(RECORDS).of_producer(10, 1_000) is None
