"""Kafka's checkpoint files: a version, the number of lines, and the lines (`CheckpointFile`)."""

import re
from pathlib import Path

from coordinator_core.log.file_replacement import replace_file

_VERSION = 0
#: Topic, partition and offset.
_OFFSET = re.compile(r"(\S+)\s+(\d{1,10})\s+(\d{1,19})", re.ASCII)


def read_lines(path: Path) -> list[str]:
    """Return the lines of a checkpoint; no lines for a missing file or an unknown version."""
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return []
    return lines[2:] if lines[:1] == [str(_VERSION)] else []


def read_offsets(path: Path) -> dict[tuple[str, int], int]:
    """Return the offsets of a checkpoint by topic and partition (`OffsetCheckpointFile`), without unreadable lines."""
    matches = map(_OFFSET.fullmatch, read_lines(path))
    return {(match[1], int(match[2])): int(match[3]) for match in matches if match}


def write_lines(path: Path, lines: list[str], *, durable: bool) -> None:
    """Replace the file. `durable` syncs the contents; the caller must sync the folder to make the new name durable."""
    replace_file(path, "\n".join([str(_VERSION), str(len(lines)), *lines, ""]).encode(), durable=durable)
