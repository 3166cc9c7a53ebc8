"""Opening, appending, flushing, rolling, and errors of the operating system."""

import errno
import os
import resource
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest
from appended_logs import NOW_MS, by_offset, commit, folder_of, opened
from hypothesis import given, settings
from hypothesis import strategies as st
from scalar_logs import read_log

from coordinator_core.log.compression import Compression
from coordinator_core.log.entries import ControlType, LogRecord
from coordinator_core.log.leader_epochs import EpochEntry, read_leader_epochs
from coordinator_core.log.record_batch import BatchRecord, end_transaction_marker, write_batch
from coordinator_core.segment_log.append_batch import AppendBatch, batch_bytes
from coordinator_core.segment_log.errors import AppendFailed, LogDamaged, LogInUse, PartitionFailed, PartitionsDiffer
from coordinator_core.segment_log.segment_log import SegmentLog
from coordinator_core.segment_log.settings import SegmentLogSettings

SETTINGS = SegmentLogSettings()
PAIRS = st.lists(st.tuples(st.binary(max_size=300), st.none() | st.binary(max_size=10_000)), min_size=1, max_size=5)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[SegmentLog]:
    log = opened(tmp_path, SETTINGS)
    yield log
    log.close()


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in folder_of(directory).glob("*.log*"))


def newest(directory: Path) -> Path:
    return max(folder_of(directory).glob("*.log"))


@settings(max_examples=50)
@given(
    PAIRS, st.integers(0, 1 << 40), st.integers(0, 1 << 20), st.integers(0, 1 << 42), st.sampled_from(Compression), st.booleans()
)
def test_batches_are_those_of_the_readable_writer(
    pairs: list[tuple[bytes, bytes | None]],
    base: int,
    leader_epoch: int,
    now: int,
    compression: Compression,
    in_transaction: bool,
) -> None:
    producer = (1 << 35, 12) if in_transaction else None
    batch = AppendBatch(pairs, producer)
    written = write_batch(
        [BatchRecord(base + delta, now, *pair) for delta, pair in enumerate(pairs)],
        producer_id=-1 if producer is None else producer[0],
        producer_epoch=-1 if producer is None else producer[1],
        base_sequence=0,
        leader_epoch=leader_epoch,
        compression=compression,
        transactional=in_transaction,
    )
    assert batch_bytes(batch, base, leader_epoch, now, compression) == written


def test_a_marker_is_that_of_the_readable_writer() -> None:
    marker = end_transaction_marker(
        9, ControlType.ABORT, producer_id=5, producer_epoch=2, timestamp=NOW_MS, coordinator_epoch=4, leader_epoch=3
    )
    assert batch_bytes(AppendBatch((), (5, 2), ControlType.ABORT, 4), 9, 3, NOW_MS, Compression.LZ4) == marker


@pytest.mark.parametrize("batch", [AppendBatch(()), AppendBatch((), None, ControlType.COMMIT)])
def test_batches_that_no_log_can_hold(log: SegmentLog, batch: AppendBatch) -> None:
    with pytest.raises(ValueError, match=r"at offset 0"):
        log.partition(0).append([batch], NOW_MS)
    assert log.partition(0).end_offset == 0


def test_a_folder_as_a_broker_has_it(tmp_path: Path) -> None:
    log = opened(tmp_path, SETTINGS, 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", "__consumer_offsets-0", "__consumer_offsets-1"]
    files = {path.name: path.read_text() for path in folder_of(tmp_path, 1).iterdir()}
    metadata = files.pop("partition.metadata")
    assert files == {f"{0:020}.log": "", "leader-epoch-checkpoint": "0\n1\n0 0\n"}
    topic_id = log.topic_id
    log.close()
    log = opened(tmp_path, SETTINGS, 2)
    assert (log.topic_id, (folder_of(tmp_path) / "partition.metadata").read_text()) == (topic_id, metadata)
    log.close()


def test_one_writer(tmp_path: Path) -> None:
    log = opened(tmp_path, SETTINGS)
    with pytest.raises(LogInUse, match=r"another coordinator or a broker writes there \(\.lock is locked\)"):
        opened(tmp_path, SETTINGS)
    log.close()
    opened(tmp_path, SETTINGS).close()


@pytest.mark.parametrize("partitions", [1, 3])
def test_another_number_of_partitions(tmp_path: Path, partitions: int) -> None:
    log = opened(tmp_path, SETTINGS, 2)
    log.partition(0).append([commit(b"a", b"1")], NOW_MS)
    log.close()
    with pytest.raises(PartitionsDiffer, match=f"has 2 partitions, but {partitions} are configured"):
        opened(tmp_path, SETTINGS, partitions)
    opened(tmp_path, SETTINGS, 2).close()


def test_a_folder_whose_making_was_interrupted(tmp_path: Path) -> None:
    opened(tmp_path, SETTINGS, 2).close()
    log = opened(tmp_path, SETTINGS, 4)
    assert log.partitions == 4
    log.close()


def test_offsets_and_epochs(tmp_path: Path) -> None:
    for epoch, batches in enumerate([2, 1, 0, 0, 1]):
        log = opened(tmp_path, SETTINGS)
        partition = log.partition(0)
        end = partition.end_offset
        assert partition.leader_epoch == epoch
        assert partition.append([AppendBatch([(b"a", b"1"), (b"b", None)])] * batches, NOW_MS) == [
            end + 2 * number for number in range(batches)
        ]
        log.close()
    known = read_leader_epochs(folder_of(tmp_path))
    assert known == [EpochEntry(0, 0), EpochEntry(1, 4), EpochEntry(4, 6)]
    (folder_of(tmp_path) / "leader-epoch-checkpoint").unlink()
    log = opened(tmp_path, SETTINGS)
    assert log.partition(0).leader_epoch == 5
    log.close()


def test_rolling_by_size_and_by_time(tmp_path: Path) -> None:
    log = opened(tmp_path, replace(SETTINGS, segment_bytes=200, segment_ms=1000))
    partition = log.partition(0)
    for at in (0, 0, 0, 1, 1001):
        partition.append([commit(b"key", b"value")], NOW_MS + at)
    assert names(tmp_path) == [f"{base:020}.log" for base in (0, 2, 4)]
    assert (partition.roll_due(NOW_MS + 2001), partition.roll_due(NOW_MS + 2002)) == (False, True)
    for _ in range(2):
        partition.roll()
    assert names(tmp_path) == [f"{base:020}.log" for base in (0, 2, 4, 5)]
    assert not partition.roll_due(NOW_MS + 9999)
    log.close()
    log = opened(tmp_path, replace(SETTINGS, segment_bytes=200))
    assert log.partition(0).append([commit(b"key", b"value")], NOW_MS) == [5]
    assert len(by_offset(log.partition(0))) == 6
    log.close()


def test_flush_returns_the_end_offset(log: SegmentLog) -> None:
    partition = log.partition(0)
    partition.append([commit(b"a", b"1")], NOW_MS)
    assert partition.flushed_offset == 0
    assert partition.flush() == partition.flushed_offset == 1


# ---- errors of the operating system


def test_a_full_disk_leaves_everything_as_it_was(log: SegmentLog, tmp_path: Path) -> None:
    """A limit on file sizes stands for a full disk: the write is cut short, and the next one fails."""
    partition = log.partition(0)
    partition.append([commit(b"a", b"1")], NOW_MS)
    path = newest(tmp_path)
    content = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    for room in (0, 1, 61, len(content), len(content) + 1):
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(content) + room, hard))
        try:
            with pytest.raises(AppendFailed, match=r"append failed, nothing was written: File too large"):
                partition.append([commit(b"b", b"1")] * 3, NOW_MS)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert path.read_bytes() == content
    end = partition.end_offset
    assert partition.append([commit(b"c", b"1")], NOW_MS) == [end]
    assert [record[0] for record in by_offset(partition).values()] == [b"a", b"c"]


def test_offsets_that_a_reader_may_have_seen_are_not_given_away(log: SegmentLog, monkeypatch: pytest.MonkeyPatch) -> None:
    partition = log.partition(0)
    real = os.pwrite
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", lambda *_: _refused(errno.ENOSPC))
        with pytest.raises(AppendFailed, match="No space left on device"):
            partition.append([commit(b"a", b"1")] * 2, NOW_MS)
    assert partition.end_offset == 0
    with monkeypatch.context() as patch:
        written: Iterator[Callable[..., int]] = iter(
            [lambda fd, data, at: real(fd, data[:100], at), lambda *_: _refused(errno.EIO)]
        )
        patch.setattr(os, "pwrite", lambda *arguments: next(written)(*arguments))
        with pytest.raises(AppendFailed, match="Input/output error"):
            partition.append([commit(b"a", b"1")] * 2, NOW_MS)
    assert partition.append([commit(b"b", b"1")], NOW_MS) == [2]
    assert list(by_offset(partition)) == [2]


def _refused(number: int) -> NoReturn:
    raise OSError(number, os.strerror(number))


def test_what_cannot_be_taken_back_ends_the_partition(log: SegmentLog, monkeypatch: pytest.MonkeyPatch) -> None:
    partition, real = log.partition(0), os.pwrite
    written: Iterator[Callable[..., int]] = iter([lambda fd, data, at: real(fd, data[:10], at), lambda *_: _refused(errno.EIO)])
    monkeypatch.setattr(os, "pwrite", lambda *arguments: next(written)(*arguments))
    monkeypatch.setattr(os, "ftruncate", lambda *_: _refused(errno.EIO))
    for call in (lambda: partition.append([commit(b"a", b"1")], NOW_MS), partition.flush, partition.roll):
        with pytest.raises(PartitionFailed, match=r"cannot truncate the file.*until it is reopened"):
            call()


@pytest.mark.parametrize("call", ["flush", "roll"])
def test_a_failed_fsync_ends_the_partition_although_the_next_would_succeed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    log = opened(tmp_path, SETTINGS)
    partition = log.partition(0)
    partition.append([commit(b"a", b"1")], NOW_MS)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: _refused(errno.EIO))
        with pytest.raises(PartitionFailed, match="fsync failed: Input/output error"):
            getattr(partition, call)()
    for again in (lambda: partition.append([commit(b"a", b"1")], NOW_MS), partition.flush, partition.roll):
        with pytest.raises(PartitionFailed, match="fsync failed: Input/output error"):
            again()
    assert partition.flushed_offset == 0
    log.close()
    log = opened(tmp_path, SETTINGS)
    assert log.partition(0).append([commit(b"b", b"1")], NOW_MS) == [1]
    log.close()


def test_no_new_segment(log: SegmentLog, tmp_path: Path) -> None:
    partition = log.partition(0)
    partition.append([commit(b"a", b"1")], NOW_MS)
    (folder_of(tmp_path) / f"{1:020}.log").mkdir()
    with pytest.raises(AppendFailed, match=r"00000000000000000001\.log: cannot create a new segment: Is a directory"):
        partition.roll()
    assert partition.append([commit(b"a", b"2")], NOW_MS) == [1]


# ---- recovery


@pytest.mark.parametrize(("behind", "step"), [(b"", 1), (b"\0" * 100, 5), (b"\xff" * 100, 5)], ids=["", "zeros", "garbage"])
def test_a_tail_cut_at_any_byte(tmp_path: Path, behind: bytes, step: int) -> None:
    log = opened(tmp_path, SETTINGS)
    for number in range(3):
        log.partition(0).append([commit(b"key", b"value-%d" % number)], NOW_MS)
    log.close()
    path = newest(tmp_path)
    whole = path.read_bytes()
    size = len(whole) // 3
    for kept in range(2 * size, 3 * size + 1, step):
        torn = whole[:kept] + behind
        path.write_bytes(torn)
        log = opened(tmp_path, SETTINGS)
        # zeros may be the rest of a write that was cut off
        batches = 3 if torn.startswith(whole[: 3 * size]) else 2
        assert log.partition(0).end_offset == batches
        cut = [(tail.path, tail.position, tail.size, tail.offset) for tail in log.cut_tails()]
        left_over = len(torn) - batches * size
        assert cut == ([(path, batches * size, left_over, batches)] if left_over else [])
        assert path.read_bytes() == whole[: batches * size]
        log.close()


def test_the_text_of_a_cut_tail(tmp_path: Path) -> None:
    log = opened(tmp_path, SETTINGS)
    log.partition(0).append([commit(b"key", b"value")] * 2, NOW_MS)
    log.close()
    path = newest(tmp_path)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    log = opened(tmp_path, SETTINGS)
    size = len(data) // 2
    assert [str(tail) for tail in log.cut_tails()] == [
        f"{path}: {size} bytes cut off from byte {size}, offset 1 on: checksum does not match"
    ]
    log.close()


@pytest.mark.parametrize("damage", ["bit", "cut", "behind"])
def test_damage_in_an_older_segment_is_not_cut_off(tmp_path: Path, damage: str) -> None:
    log = opened(tmp_path, SETTINGS)
    for number in range(3):
        log.partition(0).append([commit(b"key", b"value-%d" % number)] * 2, NOW_MS)
        log.partition(0).roll()
    log.close()
    path = folder_of(tmp_path) / f"{2:020}.log"
    whole = path.read_bytes()
    path.write_bytes({"bit": whole[:-1] + b"!", "cut": whole[:-1], "behind": whole + b"!"}[damage])
    now = path.read_bytes()
    with pytest.raises(LogDamaged, match=r"00000000000000000002\.log: damaged at byte \d+, offset [34]: .*Nothing was cut off"):
        opened(tmp_path, SETTINGS)
    assert path.read_bytes() == now
    path.write_bytes(whole)
    opened(tmp_path, SETTINGS).close()


def test_segments_that_overlap(tmp_path: Path) -> None:
    log = opened(tmp_path, SETTINGS)
    log.partition(0).append([commit(b"key", b"value")] * 3, NOW_MS)
    log.close()
    (folder_of(tmp_path) / f"{2:020}.log").touch()
    with pytest.raises(LogDamaged, match=r"begins at offset 2, but the previous segment ends at offset 2"):
        opened(tmp_path, SETTINGS)


def test_a_batch_from_elsewhere_at_the_end(tmp_path: Path) -> None:
    log = opened(tmp_path, SETTINGS)
    log.partition(0).append([commit(b"key", b"value")] * 3, NOW_MS)
    log.close()
    with newest(tmp_path).open("ab") as file:
        file.write(write_batch([BatchRecord(1, NOW_MS, b"x", b"y")]))
    log = opened(tmp_path, SETTINGS)
    assert "offsets do not follow the previous batch" in str(log.cut_tails()[0])
    assert log.partition(0).end_offset == 3
    log.close()


def test_what_a_broker_derives_from_segments_is_removed(tmp_path: Path) -> None:
    opened(tmp_path, SETTINGS).close()
    made = [folder_of(tmp_path) / f"{0:020}{suffix}" for suffix in (".index", ".timeindex", ".txnindex", ".snapshot")]
    for path in made:
        path.touch()
    opened(tmp_path, SETTINGS).close()
    assert not any(path.exists() for path in made)


def test_a_log_that_is_large_enough_for_several_pieces(tmp_path: Path) -> None:
    log = opened(tmp_path, SETTINGS)
    large = [commit(b"a", bytes(700_000)), commit(b"b", bytes(3_000_000)), commit(b"c", b"1")] * 2
    log.partition(0).append(large, NOW_MS)
    log.close()
    path = newest(tmp_path)
    read = read_log(path.read_bytes(), 0)
    records = [record for record in read if isinstance(record, LogRecord)]
    log = opened(tmp_path, SETTINGS)
    assert log.cut_tails() == ()
    assert list(log.partition(0).read()) == records
    assert [record.offset for record in log.partition(0).read(4)] == [4, 5]
    log.partition(0).roll()
    log.partition(0).clean(NOW_MS)
    assert list(log.partition(0).read()) == records[3:]
    log.close()


@pytest.mark.parametrize("change", [{"segment_bytes": 0}, {"segment_bytes": 1 << 31}, {"min_cleanable_dirty_ratio": 1.5}])
def test_settings_out_of_range(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(change))):
        SegmentLogSettings(**change)
