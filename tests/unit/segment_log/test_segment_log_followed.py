"""Other processes read the folder while the coordinator writes, rolls and cleans it."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from appended_logs import NOW_MS, commit, folder_of, opened, whole_log
from eventually import at_least, eventually
from hypothesis import given, settings
from hypothesis import strategies as st
from log_builder import Log, member
from patience import PATIENCE_SECONDS

from coordinator_core.log.columns import batches_of, to_log_records
from coordinator_core.log.compression import Compression
from coordinator_core.segment_log.cleaner import CleanResult
from coordinator_core.segment_log.settings import SegmentLogSettings
from coordinator_core.sources.segments import SegmentSource
from pipelines.cli import main

SETTINGS = SegmentLogSettings(delete_retention_ms=3_600_000)


class Follower:
    """Reads new records repeatedly, and folds them: the last value of each key."""

    def __init__(self, directory: Path, chunk_bytes: int = 1000) -> None:
        self._source = SegmentSource(directory)
        self._chunk_bytes = chunk_bytes
        self.position = 0
        self.folded: dict[bytes | None, bytes | None] = {}
        self.offsets: list[int] = []

    def follow(self) -> None:
        end = self._source.end_offsets()[0]
        for columns in self._source.read_columns(0, self.position, end, chunk_bytes=self._chunk_bytes):
            assert columns.damages == ()
            for record in to_log_records(columns, 0):
                self.folded[record.key] = record.value
                self.offsets.append(record.offset)
            self.position = columns.next_offset
        self.position = max(self.position, end)


@contextmanager
def again_and_again(*actions: Callable[[], object]) -> Iterator[None]:
    """Run each action repeatedly in a thread of its own until the end of the block; an exception in it fails the test."""
    done, failures = threading.Event(), []

    def run(action: Callable[[], object]) -> None:
        try:
            while not done.is_set():
                action()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(action,)) for action in actions]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        done.set()
        for thread in threads:
            thread.join(PATIENCE_SECONDS)
        assert failures == []


def test_a_reader_that_follows_folds_to_what_was_appended(tmp_path: Path) -> None:
    log = opened(tmp_path, replace(SETTINGS, segment_bytes=4000))
    partition, keys = log.partition(0), [b"key-%d" % number for number in range(40)]
    latest, cleanings, follower = {}, [], Follower(tmp_path)
    with again_and_again(lambda: cleanings.append(partition.clean(NOW_MS)), follower.follow, partition.flush):
        for number in range(3000):
            key = keys[number * 7 % len(keys)]
            latest[key] = None if number % 11 == 0 else b"value-%d" % number
            partition.append([commit(key, latest[key])], NOW_MS)
        eventually(
            "segments are merged under the reader",
            lambda: sum(result.segments_before - result.segments_after for result in tuple(cleanings)),
            at_least(3),
        )
    follower.follow()
    assert follower.position == partition.end_offset == 3000
    assert follower.folded == latest
    assert follower.offsets == sorted(set(follower.offsets))
    assert {record.key: record.value for record in partition.read()} == latest
    log.close()


def test_cleaning_in_slices_between_appends(tmp_path: Path) -> None:
    log = opened(tmp_path, replace(SETTINGS, segment_bytes=4000))
    partition, latest, follower = log.partition(0), {}, Follower(tmp_path)
    cleaning: Iterator[CleanResult] = iter(())
    for number in range(1000):
        latest[b"%d" % (number % 30)] = b"value-%d" % number
        partition.append([commit(b"%d" % (number % 30), b"value-%d" % number)], NOW_MS)
        if next(cleaning, None) is None:
            cleaning = partition.cleaning(NOW_MS)
        if number % 3 == 0:
            follower.follow()
    follower.follow()
    assert follower.folded == latest
    assert {record.key: record.value for record in partition.read()} == latest
    log.close()


@pytest.mark.parametrize("codec", Compression)
def test_segments_and_show_read_it(tmp_path: Path, capsys: pytest.CaptureFixture[str], codec: Compression) -> None:
    written = Log()
    written.commit(0, 17, group="billing")
    written.commit(1, 4, group="billing", producer=5)
    written.marker(5)
    written.group([member("m1")], group="billing")
    written.offset_tombstone(0, group="billing")
    log = opened(tmp_path, replace(SETTINGS, compression=codec), partitions=3)
    log.partition(2).append(whole_log(written), NOW_MS)
    topic_id = log.topic_id
    log.close()
    source = SegmentSource(tmp_path)
    assert (source.partitions(), source.end_offsets()) == ((0, 1, 2), {0: 0, 1: 0, 2: 5})
    assert source.topic_ids() == {topic_id: "__consumer_offsets"}
    assert main(["show", "--source", f"segments:{tmp_path}", "--position"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    lines = [json.loads(line) for line in out.splitlines()]
    assert [(line["partition"], line["offset"], line["key"]["type"]) for line in lines] == [
        (2, 0, 1),
        (2, 1, 1),
        (2, 3, 2),
        (2, 4, 1),
    ]


def cut_off(directory: Path, batches: int) -> None:
    """Cut the last `batches` off the newest segment, as a power failure would."""
    path = max(folder_of(directory).glob("*.log"))
    with path.open("r+b") as file:
        whole = batches_of(file.read())[0]
        kept = max(len(whole) - batches, 0)
        file.truncate(int(whole["end"][kept - 1]) if kept else 0)


def test_a_log_that_has_grown_to_its_former_size_is_looked_at_anew(tmp_path: Path) -> None:
    looks = []
    log = opened(tmp_path, SETTINGS)
    source = SegmentSource(tmp_path)
    for value in (b"1", b"2"):
        log.partition(0).append([commit(b"key", value)], NOW_MS)
        looks.append((source.end_offsets()[0], source.leader_epochs()[0]))
        log.close()
        if value == b"1":
            cut_off(tmp_path, 1)
            log = opened(tmp_path, SETTINGS)
    before, now = looks
    assert (before[0], now[0]) == (1, 1)
    assert before[1] < now[1]
    assert source.truncated_partitions({0: before}) == {0: 0}
    assert source.truncated_partitions({0: now}) == {}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["append", "kill", "power failure", "look"]), st.integers(1, 5)), max_size=30))
def test_a_position_shows_whether_records_before_it_are_lost(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    directory = tmp_path_factory.mktemp("log")
    log, source, seen = opened(directory, SETTINGS), SegmentSource(directory), []
    for number, (step, size) in enumerate(steps):
        if step == "append":
            for _ in range(size):
                log.partition(0).append([commit(b"key", b"%d" % number)], NOW_MS)
        elif step == "look":
            end, epochs = source.end_offsets()[0], source.leader_epochs()
            if epochs:
                seen.append((end, epochs[0], list(log.partition(0).read())))
        else:
            log.close()
            if step == "power failure":
                cut_off(directory, size)
            log = opened(directory, SETTINGS)
    end, now = source.end_offsets()[0], list(log.partition(0).read())
    for offset, epoch, then in seen:
        is_noticed = end < offset or bool(source.truncated_partitions({0: (offset, epoch)}))
        assert is_noticed == (now[:offset] != then)
    log.close()
