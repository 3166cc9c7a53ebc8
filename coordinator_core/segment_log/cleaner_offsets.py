"""The file `cleaner-offset-checkpoint`: end of the cleaned part of each partition (`LogCleanerManager`)."""

import fcntl
import os
from collections.abc import Mapping
from pathlib import Path

from coordinator_core.log.checkpoint_file import read_lines, write_lines

CLEANER_OFFSETS = "cleaner-offset-checkpoint"


def read_cleaner_offsets(directory: Path, topic: str) -> dict[int, int]:
    """Return partition → first dirty offset; partitions that were not cleaned are absent."""
    fields = [line.rsplit(maxsplit=2) for line in read_lines(directory / CLEANER_OFFSETS)]
    return {int(f[1]): int(f[2]) for f in fields if len(f) == 3 and f[0] == topic and f[1].isdigit() and f[2].isdigit()}


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
