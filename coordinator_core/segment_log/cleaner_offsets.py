"""The file `cleaner-offset-checkpoint`: end of the cleaned part of each partition (`LogCleanerManager`)."""

import fcntl
import os
from collections.abc import Mapping
from pathlib import Path

from coordinator_core.log.checkpoint_file import read_lines, read_offsets, write_lines

CLEANER_OFFSETS = "cleaner-offset-checkpoint"


def read_cleaner_offsets(directory: Path, topic: str) -> dict[int, int]:
    """Return partition → first dirty offset; partitions that were not cleaned are absent."""
    offsets = read_offsets(directory / CLEANER_OFFSETS)
    return {partition: offset for (name, partition), offset in offsets.items() if name == topic}


def write_cleaner_offsets(directory: Path, topic: str, offsets: Mapping[int, int]) -> None:
    """Replace the lines of a topic, without fsync: if they are lost, the next cleaning only treats more segments as dirty."""
    path = directory / CLEANER_OFFSETS
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # cleaners of several topics write the file, in threads of their own
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        _replace_lines(path, topic, offsets)
    finally:
        os.close(descriptor)


def _replace_lines(path: Path, topic: str, offsets: Mapping[int, int]) -> None:
    others = [line for line in read_lines(path) if line.rsplit(maxsplit=2)[:1] != [topic]]
    lines = [f"{topic} {partition} {offset}" for partition, offset in sorted(offsets.items())]
    write_lines(path, [*others, *lines], durable=False)
