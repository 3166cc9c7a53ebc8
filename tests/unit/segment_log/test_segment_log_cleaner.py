"""The cleaner, rule by rule, and a kill at every step of it."""

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest
from appended_logs import NOW_MS, by_offset, commit, folder_of, opened
from expecting import expect

from coordinator_core.log.columns import to_log_records
from coordinator_core.log.compression import Compression
from coordinator_core.log.entries import ControlType
from coordinator_core.log.record_batch import BatchHeader, read_header
from coordinator_core.segment_log import segment_swap
from coordinator_core.segment_log.append_batch import AppendBatch
from coordinator_core.segment_log.cleaner import CleanResult
from coordinator_core.segment_log.errors import CleanFailed
from coordinator_core.segment_log.segment_log import SegmentLog
from coordinator_core.segment_log.settings import SegmentLogSettings
from coordinator_core.sources.segments import SegmentSource

RETENTION_MS = 1000
SETTINGS = SegmentLogSettings(delete_retention_ms=RETENTION_MS)
PRODUCER = (7, 3)
COMMIT = AppendBatch((), PRODUCER, ControlType.COMMIT)
ABORT = AppendBatch((), PRODUCER, ControlType.ABORT)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[SegmentLog]:
    log = opened(tmp_path, SETTINGS)
    yield log
    log.close()


def append(log: SegmentLog, *batches: AppendBatch, now: int = NOW_MS, roll: bool = True) -> None:
    partition = log.partition(0)
    partition.append(batches, now)
    if roll:
        partition.roll()


def in_transaction(*pairs: tuple[bytes, bytes]) -> AppendBatch:
    return AppendBatch(pairs, PRODUCER)


def left(log: SegmentLog) -> list[int]:
    """Remaining offsets."""
    return sorted(by_offset(log.partition(0)))


def headers(directory: Path) -> list[BatchHeader]:
    found = []
    for path in sorted(folder_of(directory).glob("*.log")):
        data, position = memoryview(path.read_bytes()), 0
        while position < len(data):
            found.append(read_header(data, position))
            position += 12 + found[-1].length
    return found


@pytest.mark.parametrize("compression", Compression)
def test_the_last_record_of_each_key_keeps_its_offset(tmp_path: Path, compression: Compression) -> None:
    log = opened(tmp_path, replace(SETTINGS, compression=compression))
    append(log, AppendBatch([(b"a", b"1"), (b"b", b"1"), (b"c", b"1")]), commit(b"a", b"2"))
    append(log, commit(b"b", b"2"))
    append(log, commit(b"c", b"active"), roll=False)
    result = log.partition(0).clean(NOW_MS)
    assert left(log) == [2, 3, 4, 5]
    assert (result.segments_before, result.segments_after) == (2, 1)
    assert result.bytes_after < result.bytes_before
    first = headers(tmp_path)[0]
    assert (first.base_offset, first.last_offset, first.count) == (0, 2, 1)
    log.close()


def test_the_active_segment_is_never_cleaned(log: SegmentLog) -> None:
    append(log, commit(b"a", b"1"), commit(b"a", b"2"), roll=False)
    assert log.partition(0).clean(NOW_MS).segments_before == 0
    assert left(log) == [0, 1]


def test_a_tombstone_is_removed_when_it_was_clean_for_delete_retention_ms(log: SegmentLog) -> None:
    append(log, commit(b"a", b"1"), commit(b"a", None))
    append(log, commit(b"b", b"1"), roll=False)
    for at, offsets in [(0, [1, 2]), (RETENTION_MS - 1, [1, 2]), (RETENTION_MS, [2])]:
        log.partition(0).clean(NOW_MS + at)
        assert left(log) == offsets


def test_the_delete_horizon_is_in_the_batch_and_timestamps_are_kept(log: SegmentLog, tmp_path: Path) -> None:
    append(log, commit(b"a", None), now=NOW_MS)
    log.partition(0).clean(NOW_MS + 5)
    log.partition(0).clean(NOW_MS + 9)
    assert [header.delete_horizon for header in headers(tmp_path)] == [NOW_MS + 5 + RETENTION_MS]
    assert [record.timestamp for record in log.partition(0).read()] == [NOW_MS]


def test_a_committed_transaction_keeps_its_marker_until_its_data_is_gone(log: SegmentLog) -> None:
    append(log, in_transaction((b"a", b"1")), COMMIT)
    append(log, commit(b"b", b"1"))
    for at in (0, RETENTION_MS, 2 * RETENTION_MS):
        log.partition(0).clean(NOW_MS + at)
        assert left(log) == [0, 1, 2]
    append(log, commit(b"a", b"2"), now=NOW_MS + 2 * RETENTION_MS)
    day = SETTINGS.producer_id_expiration_ms
    for at, offsets in [
        (day, [1, 2, 3]),
        (day + 1, [1, 2, 3]),
        (day + RETENTION_MS, [1, 2, 3]),
        (day + 1 + RETENTION_MS, [2, 3]),
    ]:
        log.partition(0).clean(NOW_MS + at)
        assert left(log) == offsets, at


def test_an_aborted_transaction_is_removed_and_hides_no_earlier_record(log: SegmentLog) -> None:
    append(log, commit(b"a", b"1"), in_transaction((b"a", b"2"), (b"b", b"1")), ABORT)
    log.partition(0).clean(NOW_MS)
    assert left(log) == [0, 3]


def test_an_open_transaction_stops_the_cleaning(log: SegmentLog) -> None:
    append(log, commit(b"a", b"1"), commit(b"a", b"2"))
    append(log, in_transaction((b"a", b"3")), commit(b"b", b"1"), commit(b"b", b"2"))
    log.partition(0).clean(NOW_MS)
    assert left(log) == [1, 2, 3, 4]
    append(log, COMMIT)
    log.partition(0).clean(NOW_MS)
    assert left(log) == [2, 4, 5]


def test_a_transaction_that_ends_after_the_cleaned_segments_is_kept(log: SegmentLog) -> None:
    append(log, commit(b"a", b"1"), in_transaction((b"a", b"2"), (b"b", b"1")), commit(b"b", b"2"))
    append(log, ABORT, roll=False)
    log.partition(0).clean(NOW_MS)
    assert left(log) == [0, 1, 2, 3, 4]
    log.partition(0).roll()
    log.partition(0).clean(NOW_MS)
    assert left(log) == [0, 3, 4]


def test_the_last_batch_of_an_active_producer_is_kept_without_records(log: SegmentLog, tmp_path: Path) -> None:
    append(log, in_transaction((b"a", b"1")), COMMIT, commit(b"a", b"2"))
    log.partition(0).clean(NOW_MS)
    empty = headers(tmp_path)[0]
    assert (empty.count, empty.producer_id, empty.producer_epoch, empty.max_timestamp) == (0, *PRODUCER, NOW_MS)
    assert left(log) == [1, 2]
    log.partition(0).clean(NOW_MS + SETTINGS.producer_id_expiration_ms)
    assert [header.base_offset for header in headers(tmp_path)] == [1, 2]


def test_only_segments_older_than_the_compaction_lag(tmp_path: Path) -> None:
    log = opened(tmp_path, replace(SETTINGS, min_compaction_lag_ms=100))
    append(log, commit(b"a", b"1"), commit(b"a", b"2"))
    append(log, commit(b"a", b"3"), commit(b"a", b"4"), now=NOW_MS + 50)
    log.partition(0).clean(NOW_MS + 120)
    assert left(log) == [1, 2, 3]
    log.close()


def test_the_dirtiest_partition_first_and_none_below_the_ratio(tmp_path: Path) -> None:
    log = opened(tmp_path, SETTINGS, 2)
    for number, count in ((0, 1), (1, 4)):
        partition = log.partition(number)
        partition.append([commit(b"a", b"1")], NOW_MS)
        partition.roll()
        partition.clean(NOW_MS)
        partition.append([commit(b"a", b"1")] * count, NOW_MS)
        partition.roll()
    assert log.dirtiest(NOW_MS) is log.partition(1)
    assert expect(CleanResult, log.clean(NOW_MS)).partition == 1
    assert log.clean(NOW_MS) is None
    dirty = [log.partition(number).first_dirty_offset for number in (0, 1)]
    log.close()
    log = opened(tmp_path, SETTINGS, 2)
    assert [log.partition(number).first_dirty_offset for number in (0, 1)] == dirty == [1, 5]
    log.close()


def test_damage_stops_the_cleaning_and_changes_nothing(log: SegmentLog, tmp_path: Path) -> None:
    append(log, commit(b"a", b"1"), commit(b"a", b"2"))
    append(log, commit(b"a", b"3"))
    path = sorted(folder_of(tmp_path).glob("*.log"))[1]
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    for _ in range(2):
        with pytest.raises(CleanFailed, match=r"00000000000000000002\.log: byte 0: checksum does not match"):
            log.partition(0).clean(NOW_MS)
    assert log.partition(0).append([commit(b"b", b"1")], NOW_MS) == [3]
    assert not list(folder_of(tmp_path).glob("*.cleaned"))
    path.write_bytes(bytes(data[:-1]) + bytes([data[-1] ^ 1]))


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), RuntimeError("a bug")])
def test_a_partition_whose_cleaning_stops_keeps_no_other_from_being_cleaned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    log = opened(tmp_path, SETTINGS, 2)
    for number, count in ((0, 9), (1, 4)):
        log.partition(number).append([commit(b"a", b"1")] * count, NOW_MS)
        log.partition(number).roll()
        log.partition(number).append([commit(b"a", b"1")], NOW_MS)
    first = log.dirtiest(NOW_MS)
    assert first is not None
    monkeypatch.setattr("coordinator_core.segment_log.partition_log.clean_in_slices", raising(error))
    with pytest.raises((CleanFailed, RuntimeError), match=str(error.args[-1])):
        log.clean(NOW_MS)
    monkeypatch.undo()
    cleaned = log.clean(NOW_MS)
    assert cleaned is not None
    assert {first.partition, cleaned.partition} == {0, 1}
    with pytest.raises(CleanFailed, match=str(error.args[-1])):
        first.clean(NOW_MS)
    assert log.clean(NOW_MS) is None
    log.close()


def raising(error: Exception) -> Callable[..., NoReturn]:
    def raises(*_: object) -> NoReturn:
        raise error

    return raises


class Killed(BaseException):
    """The process ends here."""


STEPS = ("replace", "link", "unlink", "fsync")


@pytest.mark.parametrize("links", [True, False])
def test_a_kill_at_any_step_of_the_swap_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool) -> None:
    step = 0
    while True:
        directory = tmp_path / str(step)
        log = opened(directory, SETTINGS)
        for value in (b"1", b"2", b"3"):
            append(
                log, commit(b"a", value), commit(b"gone", None if value == b"3" else value), in_transaction((b"t", value)), COMMIT
            )
        append(log, commit(b"z", b"1"))
        before = {r.key: r.value for r in log.partition(0).read() if not r.is_control}
        end = log.partition(0).end_offset
        with monkeypatch.context() as patch:
            calls = _kill_at(patch, step, links=links)
            try:
                log.partition(0).clean(NOW_MS)
            except Killed:
                killed = True
            else:
                killed = False
        # the lock and the files are released with the process
        log.close()
        source = SegmentSource(directory)
        followed = {r.key: r.value for c in source.read_columns(0, 0) for r in to_log_records(c, 0) if not r.is_control}
        if links:
            assert followed == before
        log = opened(directory, SETTINGS)
        partition = log.partition(0)
        assert {r.key: r.value for r in partition.read() if not r.is_control} == before
        assert [r.offset for r in partition.read()] == sorted({r.offset for r in partition.read()})
        assert partition.end_offset == end
        assert not [path for path in folder_of(directory).iterdir() if path.suffix in (".cleaned", ".swap", ".deleted")]
        partition.clean(NOW_MS)
        assert {r.key: r.value for r in partition.read() if not r.is_control} == before
        log.close()
        if not killed:
            assert calls[0] > 8
            return
        step += 1


def _kill_at(patch: pytest.MonkeyPatch, step: int, *, links: bool) -> list[int]:
    """Let file operations raise Killed from number `step` on; return their counter."""
    calls = [0]

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: int | Path, **options: Any) -> Any:
            if calls[0] >= step:
                raise Killed
            calls[0] += 1
            return real(*arguments, **options)

        return call

    for name in STEPS:
        patch.setattr(os, name, counted(getattr(os, name)))
    if not links:
        patch.setattr(segment_swap, "_linked", lambda *_: False)
    return calls


@pytest.mark.parametrize(
    ("leftovers", "names"),
    [
        (["0.log.cleaned", "4.log.cleaned"], ["0", "4", "8"]),
        (["4.log.deleted", "0.index.deleted"], ["0", "4", "8"]),
        (["0.log.swap", "0.index.swap"], ["0", "4", "8"]),
        (["0.log.swap", "0.log.cleaned"], ["0", "4", "8"]),
    ],
)
def test_leftovers_of_a_broker(tmp_path: Path, leftovers: list[str], names: list[str]) -> None:
    """By the broker's rules: `.swap` replaces its segment, unless a `.cleaned` shows that the swap is incomplete."""
    log = opened(tmp_path, SETTINGS)
    for value in (b"1", b"2"):
        append(log, *[commit(b"a", value)] * 4)
    append(log, commit(b"b", b"1"), roll=False)
    log.close()
    folder = folder_of(tmp_path)
    for name in leftovers:
        offset, _, suffix = name.partition(".")
        source = folder / f"{int(offset):020}.log"
        (folder / f"{int(offset):020}.{suffix}").write_bytes(source.read_bytes() if ".log.swap" in name else b"x")
    log = opened(tmp_path, SETTINGS)
    assert sorted(path.name for path in folder.iterdir() if path.name[0] == "0") == [f"{int(name):020}.log" for name in names]
    assert left(log) == list(range(9))
    log.close()


def test_a_swap_file_replaces_all_segments_that_it_covers(tmp_path: Path) -> None:
    log = opened(tmp_path, SETTINGS)
    for value in (b"1", b"2"):
        append(log, *[commit(b"a", value)] * 4)
    append(log, commit(b"b", b"1"), roll=False)
    log.close()
    folder = folder_of(tmp_path)
    whole = b"".join((folder / f"{offset:020}.log").read_bytes() for offset in (0, 4))
    (folder / f"{0:020}.log.swap").write_bytes(whole)
    log = opened(tmp_path, SETTINGS)
    assert [path.name for path in sorted(folder.glob("*.log*"))] == [f"{offset:020}.log" for offset in (0, 8)]
    assert left(log) == list(range(9))
    log.close()
