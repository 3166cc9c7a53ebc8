"""The file `cleaner-offset-checkpoint`: end of the cleaned part of each partition (`LogCleanerManager`)."""

import fcntl
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from coordinator_core.log.checkpoint_file import read_offsets, write_lines

CLEANER_OFFSETS = "cleaner-offset-checkpoint"


def read_cleaner_offsets(directory: Path, topic: str) -> dict[int, int]:
    """Return partition → first dirty offset; partitions that were not cleaned are absent."""
    offsets = read_offsets(directory / CLEANER_OFFSETS)
    return {partition: offset for (name, partition), offset in offsets.items() if name == topic}


def write_cleaner_offsets(directory: Path, topic: str, offsets: Mapping[int, int]) -> None:
    """Replace the lines of these partitions, without fsync: if they are lost, the next cleaning treats more segments as dirty."""
    lines = [f"{topic} {partition} {offset}" for partition, offset in sorted(offsets.items())]
    _replace_lines(directory, lambda name, partition: name == topic and partition in offsets, lines)


def remove_cleaner_offsets(directory: Path, topic: str) -> None:
    """Remove the lines of a topic, without fsync."""
    _replace_lines(directory, lambda name, _: name == topic, [])


def _replace_lines(directory: Path, is_replaced: Callable[[str, int], bool], lines: Sequence[str]) -> None:
    path = directory / CLEANER_OFFSETS
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # cleaners of several topics and nodes write the file
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        kept = [
            f"{name} {partition} {offset}"
            for (name, partition), offset in read_offsets(path).items()
            if not is_replaced(name, partition)
        ]
        write_lines(path, [*kept, *lines], durable=False)
    finally:
        os.close(descriptor)
