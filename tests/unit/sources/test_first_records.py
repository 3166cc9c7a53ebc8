"""The first record of a transaction, from the header of its batch."""

from typing import Any

import pytest

from coordinator_core.health import FirstRecord
from coordinator_core.log.record_batch import BatchRecord, write_batch
from coordinator_core.sources.first_records import first_record

RECORDS = [BatchRecord(40, 1_000, None, b"a"), BatchRecord(41, 2_000, None, b"b")]
OF_PRODUCER: dict[str, Any] = {"producer_id": 7, "producer_epoch": 3, "base_sequence": 0, "transactional": True}


@pytest.mark.parametrize(
    ("values", "offset", "expected"),
    [
        ({}, 40, FirstRecord(7, 3, 1_000)),
        ({"log_append_time": 9_000}, 40, FirstRecord(7, 3, 9_000)),
        # the log cleaner replaces the base timestamp
        ({"delete_horizon": 5_000}, 40, FirstRecord(7, 3, None)),
        ({"transactional": False}, 40, "no_transaction"),
        ({}, 39, "no_record"),
        ({}, 42, "no_record"),
    ],
)
def test_header_of_the_batch(values: dict[str, Any], offset: int, expected: FirstRecord | str) -> None:
    assert first_record(write_batch(RECORDS, **OF_PRODUCER | values), offset) == expected


def test_a_record_without_a_timestamp() -> None:
    batch = write_batch([BatchRecord(40, -1, None, b"a")], **OF_PRODUCER)
    assert first_record(batch, 40) == FirstRecord(7, 3, None)


def test_a_cut_batch_is_enough() -> None:
    assert first_record(write_batch(RECORDS, **OF_PRODUCER)[:61], 40) == FirstRecord(7, 3, 1_000)
