"""The greatest producer id of a log directory: batches, records of transactional ids, snapshots."""

from pathlib import Path
from typing import Any

import pytest

from coordinator_core.codec import TransactionRecord, encode_transaction
from coordinator_core.codec.messages.transactions import TransactionLogKey, TransactionLogValue
from coordinator_core.producers.entry import ProducerStateEntry
from coordinator_core.producers.rules import RULES
from coordinator_core.producers.snapshot import write_snapshot
from coordinator_core.protocol.internal_topics import OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from coordinator_core.segment_log.append_batch import AppendBatch
from coordinator_core.segment_log.segment_log import SegmentLog
from coordinator_core.segment_log.settings import SegmentLogSettings
from coordinator_core.segment_log.topic_config import TopicConfig
from coordinator_core.segment_log.topic_store import TopicStore
from coordinator_core.service.transactions.used_producer_ids import highest_in_logs, highest_in_snapshots

DAY_MS = 86_400_000


def state(producer_id: int, **fields: Any) -> tuple[bytes, bytes | None]:
    value = TransactionLogValue(producer_id, 0, 60_000, 0, None, 1, 1, **fields)
    return encode_transaction(TransactionRecord(TransactionLogKey("id"), value, 1))


def highest(folder: Path) -> int:
    """As after a restart."""
    offsets = SegmentLog.open(folder, OFFSETS_TOPIC, 2, SegmentLogSettings())
    transactions = SegmentLog.open(folder, TRANSACTION_STATE_TOPIC, 2, SegmentLogSettings(), is_locked=True)
    store = TopicStore(folder, {"data": (1, TopicConfig({}))}, RULES["4"], DAY_MS)
    try:
        return highest_in_logs(offsets, transactions, store)
    finally:
        store.close_files()
        transactions.close()
        offsets.close()


def append(folder: Path, topic: str, *batches: AppendBatch) -> None:
    log = SegmentLog.open(folder, topic, 2, SegmentLogSettings())
    log.partition(1).append(batches, 1)
    log.close()


def test_an_empty_directory(tmp_path: Path) -> None:
    assert highest_in_snapshots(tmp_path) == -1
    assert highest(tmp_path) == -1


def test_batches_of_offsets(tmp_path: Path) -> None:
    append(tmp_path, OFFSETS_TOPIC, AppendBatch(((b"k", b"v"),), (41, 0)), AppendBatch(((b"k", b"v"),), (7, 0)))
    assert highest(tmp_path) == 41


@pytest.mark.parametrize("fields", [{}, {"previous_producer_id": 90}, {"next_producer_id": 90}])
def test_records_of_transactional_ids(tmp_path: Path, fields: dict[str, int]) -> None:
    """Earlier records count, even if a tombstone has removed their id."""
    key, value = state(89, **fields)
    append(tmp_path, TRANSACTION_STATE_TOPIC, AppendBatch(((key, value),)), AppendBatch((state(3), (key, None), (b"?", b"?"))))
    assert highest(tmp_path) == max([89, *fields.values()])


def test_batches_of_data(tmp_path: Path) -> None:
    store = TopicStore(tmp_path, {"data": (1, TopicConfig({}))}, RULES["4"], DAY_MS)
    log = store.topics["data"].partitions[0].log
    log.append([AppendBatch(((b"k", b"v"),), (55, 0))], 1)
    store.close_files()
    assert highest(tmp_path) == 55


def test_snapshots_of_any_topic(tmp_path: Path) -> None:
    for name, producer_id in (("__consumer_offsets-0", 12), ("not-served-3", 130)):
        (tmp_path / name).mkdir()
        entry = ProducerStateEntry(producer_id)
        (tmp_path / name / f"{9:020}.snapshot").write_bytes(write_snapshot([entry]))
    (tmp_path / "not-served-3" / f"{10:020}.snapshot").write_bytes(b"damaged")
    assert highest_in_snapshots(tmp_path) == 130
