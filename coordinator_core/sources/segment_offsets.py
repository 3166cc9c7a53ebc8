"""Samples of log start and log end of the topics in a broker's log directory, or in a copy of one."""

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow as pa

from coordinator_core.codec.uuids import uuid_text
from coordinator_core.health.end_offsets import EndOffsetSample
from coordinator_core.health.sample_tables import samples_table
from coordinator_core.log.checkpoint_file import read_lines
from coordinator_core.log.errors import LogUnreadable
from coordinator_core.log.partition_metadata import parse_topic_id, partition_of
from coordinator_core.log.record_batch import NO_LEADER_EPOCH
from coordinator_core.sources.segment_file import SegmentFile
from coordinator_core.sources.segments import CONSUMER_OFFSETS
from coordinator_core.sources.source import PartitionsByTopic

_CHUNK_BYTES = 1024 * 1024
_SEGMENT_NAME = re.compile(r"(\d{20})\.log")
_LOG_STARTS = "log-start-offset-checkpoint"
#: Files that a running broker replaces every few seconds or minutes: with them, the time of a copy of an idle log is known.
_CHECKPOINTS = (_LOG_STARTS, "replication-offset-checkpoint", "recovery-point-offset-checkpoint")
#: Entry of an offset index: relative offset and position.
_ENTRY_BYTES = 8


class SegmentOffsetsSampler:
    """Samples the folders TOPIC-N of `directory`, which may itself be such a folder. `now_ms` is the clock.

    The log end is the end of the last whole batch. That is the high watermark, except for records that a follower had not
    replicated yet: the checkpoint of high watermarks is up to five seconds older than the segments.
    """

    def __init__(self, directory: str | Path, now_ms: Callable[[], int]) -> None:
        path = Path(directory)
        self._directory = path if partition_of(path.name) is None else path.parent
        self._now_ms = now_ms

    def sample(self, wanted: PartitionsByTopic) -> pa.Table:
        """A row per partition that the directory has, with the columns of `END_OFFSETS_SCHEMA`, by topic and partition.

        All rows have the time of the last change of the directory, which is that of a copy if the copy keeps the times of files.
        A partition that cannot be read has the reason `unreadable_segment`.
        """
        starts = self._checkpoint_starts()
        found = [
            (topic, partition, self._directory / f"{topic}-{partition}")
            for topic, partitions in sorted(wanted.items())
            for partition in sorted(set(partitions))
        ]
        logs = [(topic, partition, folder, _segments(folder)) for topic, partition, folder in found if folder.is_dir()]
        logs = [each for each in logs if each[3]]
        files = [self._directory / name for name in _CHECKPOINTS]
        files += self._directory.glob(f"{CONSUMER_OFFSETS}-*/*.log")
        at_ms = min(self._now_ms(), _last_change_ms([*files, *(segments[-1] for *_, segments in logs)]))
        return samples_table(
            _sample(topic, partition, folder, segments, starts.get((topic, partition), 0), at_ms)
            for topic, partition, folder, segments in logs
        )

    def _checkpoint_starts(self) -> dict[tuple[str, int], int]:
        """Log starts that DeleteRecords has moved into a segment."""
        lines = (line.rsplit(" ", 2) for line in read_lines(self._directory / _LOG_STARTS))
        return {(parts[0], int(parts[1])): int(parts[2]) for parts in lines if len(parts) == 3 and _are_numbers(parts[1:])}


def _are_numbers(texts: Iterable[str]) -> bool:
    return all(text.isdecimal() for text in texts)


def _segments(folder: Path) -> list[Path]:
    """Segment files, oldest first."""
    try:
        return sorted(path for path in folder.iterdir() if _SEGMENT_NAME.fullmatch(path.name))
    except OSError:
        return []


def _last_change_ms(paths: Iterable[Path]) -> int:
    times = []
    for path in paths:
        try:
            times.append(path.stat().st_mtime_ns // 1_000_000)
        except OSError:
            continue
    return max(times, default=0)


def _sample(topic: str, partition: int, folder: Path, segments: list[Path], start: int, at_ms: int) -> EndOffsetSample:
    try:
        topic_id = parse_topic_id((folder / "partition.metadata").read_text(errors="replace"))
    except OSError:
        topic_id = None
    id_text = None if topic_id is None else uuid_text(topic_id)
    try:
        end, epoch = _log_end(segments[-1])
    except (OSError, LogUnreadable):
        return EndOffsetSample(id_text, topic, partition, at_ms, at_ms, None, None, reason="unreadable_segment")
    start = min(max(start, int(segments[0].stem)), end)
    return EndOffsetSample(
        id_text, topic, partition, at_ms, at_ms, start, end, leader_epoch=None if epoch == NO_LEADER_EPOCH else epoch
    )


def _log_end(segment: Path) -> tuple[int, int]:
    """The offset after the last whole batch of a segment, and the leader epoch of that batch."""
    base = int(segment.stem)
    offset, position = _last_index_entry(segment.with_suffix(".index"))
    file = SegmentFile(segment)
    try:
        end = file.scan_end(position, _CHUNK_BYTES)
        # an index that does not fit the segment, as in a copy of a log in use
        if position and end.offset <= base + offset:
            end = file.scan_end(0, _CHUNK_BYTES)
    finally:
        file.close()
    return max(base, end.offset), end.leader_epoch


def _last_index_entry(index: Path) -> tuple[int, int]:
    """Relative offset and position of the last entry of an offset index, zeros without one.

    Positions ascend; the index of the newest segment is preallocated with zeros.
    """
    try:
        file = index.open("rb", buffering=0)
    except OSError:
        return 0, 0
    with file:
        low, high, last = 0, os.fstat(file.fileno()).st_size // _ENTRY_BYTES, (0, 0)
        while low < high:
            middle = (low + high) // 2
            data = os.pread(file.fileno(), _ENTRY_BYTES, middle * _ENTRY_BYTES)
            entry = int.from_bytes(data[:4], "big", signed=True), int.from_bytes(data[4:], "big", signed=True)
            if entry[1] > 0:
                last, low = entry, middle + 1
            else:
                high = middle
    return last
