"""Topics with data: batches of producers, files of producer states, checkpoints, lists of topics, folders of partitions."""

import json
import struct
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import NamedTuple

from aborted_indexes import CorruptIndex, read_index
from crc32c import crc32c
from data_partitions import ABORT, COMMIT, EXPIRATION_MS, LIMITS, NOW_MS, batch
from fuzz_mutations import mutated, mutated_frame
from fuzz_target import Target

from coordinator_core.log.checkpoint_file import read_offsets
from coordinator_core.log.columns import parse_columns
from coordinator_core.log.compression import Compression
from coordinator_core.log.data_records import data_offsets
from coordinator_core.log.errors import LogError
from coordinator_core.log.leader_epochs import read_leader_epochs
from coordinator_core.log.record_batch import end_transaction_marker, read_header
from coordinator_core.producers.aborted_transactions import (
    AbortedTransaction,
    AbortedTransactions,
    write_index,
)
from coordinator_core.producers.entry import BatchMetadata, ProducerStateEntry
from coordinator_core.producers.rules import RULES
from coordinator_core.producers.snapshot import CorruptSnapshot, check_snapshot, read_snapshot, write_snapshot
from coordinator_core.producers.state_manager import ProducerStateManager
from coordinator_core.segment_log.cleaner_offsets import read_cleaner_offsets
from coordinator_core.segment_log.data_partition import DataPartition
from coordinator_core.segment_log.errors import LogDamaged
from coordinator_core.segment_log.topic_config import TopicConfig
from coordinator_core.segment_log.topics_file import is_topic_name, read_topics
from coordinator_core.service.topics.batch_check import BatchRefused, check_batch
from coordinator_core.service.transactions.producer_id_file import FILE, ProducerIdFile, ProducerIdFileDamaged
from coordinator_core.transaction_coordinator.producer_ids import BlocksExhausted

_SEGMENT_BASE = 20
_CRC_START = 6


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """A folder of this process, deleted when the process ends."""
    return tempfile.TemporaryDirectory()


# ---- batches of producers


@cache
def _batches() -> tuple[bytes, ...]:
    return tuple(
        batch(values, producer=producer, sequence=sequence, transactional=transactional, compression=compression)
        for values in ([b"a"], [b"a", None, b"c"], [bytes(300)] * 4)
        for producer, sequence, transactional in ((-1, -1, False), (7, 0, False), (7, (1 << 31) - 2, True))
        for compression in Compression
    )


def _make_batch(rng: Random) -> bytes:
    known = _batches()
    return mutated_frame(rng, known[int(rng.random() * len(known))], known)


def check_batches(batches: Sequence[bytes]) -> None:
    """Require a refusal, or a batch that is readable at any offset of a log."""
    for data in batches:
        try:
            checked = check_batch(data, LIMITS, NOW_MS)
        except BatchRefused as refused:
            if not str(refused):
                raise
            continue
        placed = checked.placed(1000, 7)
        columns = parse_columns(placed)
        assert not columns.damages
        assert columns.offset.tolist() == list(range(1000, 1000 + checked.header.count))
        assert read_header(memoryview(placed)).leader_epoch == 7


# ---- files of producer states


@cache
def _snapshots() -> tuple[bytes, ...]:
    entries = [
        ProducerStateEntry(7, 0, 5, NOW_MS, 12, (BatchMetadata(9, 19, 3, NOW_MS),)),
        ProducerStateEntry(8, 0, -1, NOW_MS, -1, (BatchMetadata((1 << 31) - 1, 5, 0, NOW_MS),)),
        ProducerStateEntry(9, 32767, 0, NOW_MS),
    ]
    return tuple(write_snapshot(entries[:count]) for count in range(4))


def _make_snapshot(rng: Random) -> bytes:
    known = _snapshots()
    data = bytearray(mutated(rng, known[int(rng.random() * len(known))], known))
    if rng.random() < 0.85 and len(data) > _CRC_START:
        struct.pack_into(">I", data, 2, crc32c(bytes(data[_CRC_START:])))
    return bytes(data)


def check_snapshots(files: Sequence[bytes]) -> None:
    """Require states that are written and read without change, or CorruptSnapshot."""
    for data in files:
        try:
            entries = read_snapshot(data)
        except CorruptSnapshot as error:
            if not str(error):
                raise
            continue
        assert read_snapshot(write_snapshot(entries)) == entries
        states = ProducerStateManager()
        try:
            check_snapshot(entries, _SEGMENT_BASE)
        except CorruptSnapshot:
            continue
        states.start_at(_SEGMENT_BASE, entries)
        states.first_unstable_offset()
        states.active_producers(NOW_MS, EXPIRATION_MS)
        assert all(entry.first_sequence >= -1 for entry in entries if not entry.batches)


@cache
def _indexes() -> tuple[bytes, ...]:
    rows = [AbortedTransaction(7, 20, 24, 22), AbortedTransaction(8, 22, 30, 31), AbortedTransaction(7, 32, 35, 36)]
    return tuple(write_index(rows[:count]) for count in range(4))


def _make_index(rng: Random) -> bytes:
    known = _indexes()
    return mutated(rng, known[int(rng.random() * len(known))], known)


def check_indexes(files: Sequence[bytes]) -> None:
    """Require rows in the order of their markers, or CorruptIndex."""
    for data in files:
        try:
            rows = read_index(data, _SEGMENT_BASE)
        except CorruptIndex as error:
            if not str(error):
                raise
            continue
        AbortedTransactions(rows).collect(0, 50)
        assert len(write_index(rows)) == len(data)


# ---- checkpoints and lists


@cache
def _texts() -> tuple[bytes, ...]:
    configs = {"retention.ms": "5000", "cleanup.policy": "compact,delete", "min.cleanable.dirty.ratio": "0.2"}
    topics = {
        "orders": {"topic_id": "AAAAAAAAAAAAAAAAAAAAAQ", "partitions": 3, "configs": {}},
        "prices": {"topic_id": "AAAAAAAAAAAAAAAAAAAAAg", "partitions": 1, "configs": configs},
    }
    return (
        json.dumps({"version": 1, "topics": topics}, indent=1).encode(),
        json.dumps({"version": 1, "broker": 1, "block_start": "1000", "block_end": "1999"}).encode(),
        b"0\n2\norders 0 17\nprices 12 9223372036854775807\n",
        b"0\n2\n0 0\n7 12345\n",
    )


#: Values in place of a number or a text.
_ODD = (
    b"-1", b"0", b"1e400", b"1.5", b"true", b"null", b"{}", b"[]", b'""', b'"../x"', b'"\\u0000"', b'"\\ud800"', b"NaN",
    b"9" * 30, b"9" * 5000, b"[" * 5000, b"\xb2", "²".encode(), b'"nan"', b"100001",
)  # fmt: skip


def _make_text(rng: Random) -> bytes:
    known = _texts()
    data = known[int(rng.random() * len(known))]
    if rng.random() < 0.6:
        separator = b": " if b": " in data else b" "
        parts = data.split(separator)
        at = 1 + int(rng.random() * (len(parts) - 1))
        ends = [position for position in map(parts[at].find, (b",", b"\n", b"}")) if position >= 0]
        parts[at] = rng.choice(_ODD) + parts[at][min(ends, default=len(parts[at])) :]
        data = separator.join(parts)
    return data if rng.random() < 0.4 else mutated(rng, data, known)


def check_texts(files: Sequence[bytes]) -> None:
    """Every reader of text files returns valid values, or raises its error."""
    folder = Path(_folder().name)
    for data in files:
        for name in ("topics.json", "log-start-offset-checkpoint", "cleaner-offset-checkpoint", "leader-epoch-checkpoint", FILE):
            (folder / name).write_bytes(data)
        try:
            topics = read_topics(folder / "topics.json")
        except LogDamaged as error:
            if "topics.json" not in str(error):
                raise
        else:
            for name, topic in topics.items():
                assert is_topic_name(name)
                assert topic.partitions >= 1
                topic.config.log_settings(EXPIRATION_MS)
        assert all(0 <= offset < 1 << 64 for offset in read_offsets(folder / "log-start-offset-checkpoint").values())
        read_cleaner_offsets(folder, "orders")
        assert all(0 <= entry.epoch < (1 << 31) - 1 for entry in read_leader_epochs(folder))
        try:
            block = ProducerIdFile(folder, 1).allocate()
        except (ProducerIdFileDamaged, BlocksExhausted) as error:
            if not str(error):
                raise
        else:
            assert 0 <= block.first <= block.last < 1 << 63


# ---- folders of partitions


class Files(NamedTuple):
    """Two segments of a partition, the snapshot at the first one, and the index of the second one."""

    first: bytes
    second: bytes
    snapshot: bytes
    aborted: bytes


@cache
def _segments() -> tuple[bytes, ...]:
    """Frames from offset 20 on: records of three producers, transactions that commit and abort."""
    frames: list[bytes] = []
    offset = _SEGMENT_BASE

    def add(data: bytes, count: int) -> None:
        nonlocal offset
        frames.append(struct.pack(">q", offset) + data[8:])
        offset += count

    for producer, kind in ((7, COMMIT), (8, ABORT), (7, ABORT), (9, COMMIT)):
        for sequence in (0, 2):
            add(batch([b"a", b"b"], producer=producer, sequence=sequence, transactional=True), 2)
        add(batch([b"plain"], compression=Compression.GZIP), 1)
        add(end_transaction_marker(0, kind, producer_id=producer, producer_epoch=0, timestamp=NOW_MS), 1)
    return tuple(frames)


def _make_files(rng: Random) -> Files:
    frames = list(_segments())
    for _ in range(1 + int(2 * rng.random())):
        at = int(rng.random() * len(frames))
        kind = rng.random()
        if kind < 0.2:
            del frames[at]
        elif kind < 0.4:
            frames.insert(at, frames[int(rng.random() * len(frames))])
        else:
            frames[at] = mutated_frame(rng, frames[at], _segments())
    border = int(rng.random() * len(frames))
    return Files(b"".join(frames[:border]), b"".join(frames[border:]), _make_snapshot(rng), _make_index(rng))


def check_partitions(given: Sequence[Files]) -> None:
    """Require a partition whose records are all readable, also after a restart, or an error of the log."""
    folder = Path(_folder().name) / "orders-0"
    folder.mkdir(exist_ok=True)
    for files in given:
        for path in folder.iterdir():
            path.unlink()
        (folder / f"{_SEGMENT_BASE:020}.log").write_bytes(files.first)
        (folder / f"{_SEGMENT_BASE:020}.snapshot").write_bytes(files.snapshot)
        if files.second:
            second = max(int.from_bytes(files.second[:8], "big"), _SEGMENT_BASE + 1) % (1 << 60)
            (folder / f"{second:020}.log").write_bytes(files.second)
            (folder / f"{second:020}.txnindex").write_bytes(files.aborted)
        try:
            before = _contents(folder)
        except LogError as error:
            if not str(error):
                raise
            continue
        assert _contents(folder) == before


def _contents(folder: Path) -> tuple[list[int], list[int], int, list[AbortedTransaction]]:
    """Offsets of all records and of the committed ones, the last stable offset, and the aborted transactions."""
    partition = DataPartition(folder, TopicConfig({}), RULES["4"], EXPIRATION_MS)
    try:
        found: list[list[int]] = []
        for end, committed in ((partition.high_watermark, False), (partition.last_stable_offset, True)):
            offsets: list[int] = []
            position = partition.log_start_offset
            while (read := partition.read(position, 1 << 20, end)).data:
                assert read.next_offset > position
                rows = partition.aborted(position, read.next_offset) if committed else []
                columns = parse_columns(bytes(read.data), position)
                offsets += data_offsets(columns, [(row.producer_id, row.first_offset) for row in rows]).tolist()
                position = read.next_offset
            found.append(offsets)
        partition.find_timestamp(NOW_MS, partition.high_watermark)
        partition.largest_timestamp()
        return found[0], found[1], partition.last_stable_offset, list(partition.aborted_transactions)
    finally:
        partition.log.close()


TARGETS = (
    Target("produced-batches", _make_batch, check_batches, share=60, chunk=32, compiled=True),
    Target("producer-snapshots", _make_snapshot, check_snapshots, share=60, chunk=64),
    Target("aborted-indexes", _make_index, check_indexes, share=30, chunk=64),
    Target("topic-files", _make_text, check_texts, share=6, chunk=16),
    Target("data-partitions", _make_files, check_partitions, share=2, chunk=4, compiled=True),
)
