"""Segments of a partition: file names, closed segments and the active segment."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from coordinator_core.log.force import force

LOG = ".log"
CLEANED = ".cleaned"
SWAP = ".swap"
DELETED = ".deleted"
#: Suffixes of files that brokers derive from a segment, and rebuild if missing.
DERIVED = (".index", ".timeindex", ".txnindex", ".snapshot")

#: A segment's offsets differ by less than this, so that indexes can hold them in 32 bits.
MOST_OFFSETS = (1 << 31) - 1

_NAME = re.compile(r"(\d{20})\.log")


@dataclass(frozen=True, slots=True)
class Segment:
    """A closed segment. `largest_timestamp` is that of its batches in ms, -1 for none."""

    base_offset: int
    path: Path
    size: int
    largest_timestamp: int


class ActiveSegment:
    """The last segment, open for writing. Timestamps of batches in ms, -1 for none."""

    def __init__(self, segment: Segment, first_timestamp: int) -> None:
        self.base_offset = segment.base_offset
        self.path = segment.path
        self.size = segment.size
        self.first_timestamp = first_timestamp
        self.largest_timestamp = segment.largest_timestamp
        self.descriptor = os.open(segment.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def grow(self, size: int, timestamp: int) -> None:
        """Record an append with this timestamp, after which the file has `size` bytes."""
        self.size = size
        self.first_timestamp = timestamp if self.first_timestamp < 0 else self.first_timestamp
        self.largest_timestamp = max(self.largest_timestamp, timestamp)

    def rolled(self) -> Segment:
        """Return this segment as a closed one."""
        return Segment(self.base_offset, self.path, self.size, self.largest_timestamp)

    def close(self) -> None:
        """Close the file."""
        os.close(self.descriptor)


def log_path(folder: Path, base_offset: int) -> Path:
    """Return the path of the segment with this base offset."""
    return folder / f"{base_offset:020}{LOG}"


def segment_paths(folder: Path) -> dict[int, Path]:
    """Return the segment files of a folder by base offset, ascending."""
    matches = ((_NAME.fullmatch(path.name), path) for path in folder.iterdir())
    return dict(sorted((int(match[1]), path) for match, path in matches if match))


def sync_folder(folder: Path) -> None:
    """Fsync a folder, which makes its file names durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        force(descriptor)
    finally:
        os.close(descriptor)
