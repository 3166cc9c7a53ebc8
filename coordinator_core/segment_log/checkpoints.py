"""Kafka's checkpoint files: a version, a count, and that many lines (`CheckpointFile`)."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

LEADER_EPOCHS = "leader-epoch-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"
_VERSION = 0


@dataclass(frozen=True, slots=True)
class EpochEntry:
    """The leader epoch that began at `start_offset`."""

    epoch: int
    start_offset: int


def read_leader_epochs(folder: Path) -> list[EpochEntry]:
    """The epochs of a partition, ascending. A file that is missing or cannot be understood has none: it is derived data."""
    numbers = [tuple(line.split()) for line in _read(folder / LEADER_EPOCHS)]
    return [EpochEntry(int(n[0]), int(n[1])) for n in numbers if len(n) == 2 and all(part.isdigit() for part in n)]


def write_leader_epochs(folder: Path, entries: Iterable[EpochEntry]) -> None:
    """Replaces the file. Not synced: whatever epoch has records is in their batches as well."""
    _write(folder / LEADER_EPOCHS, [f"{entry.epoch} {entry.start_offset}" for entry in entries])


def with_new_epoch(entries: Iterable[EpochEntry], epoch: int, start_offset: int) -> list[EpochEntry]:
    """The epochs once a new one begins: those without any record of their own go (`LeaderEpochFileCache.assign`)."""
    return [
        *(entry for entry in entries if entry.epoch < epoch and entry.start_offset < start_offset),
        EpochEntry(epoch, start_offset),
    ]


def read_cleaner_offsets(directory: Path, topic: str) -> dict[int, int]:
    """Partition → first offset that no cleaning has seen (`LogCleanerManager`); partitions without one are left out."""
    fields = [line.rsplit(maxsplit=2) for line in _read(directory / CLEANER_OFFSETS)]
    return {int(f[1]): int(f[2]) for f in fields if len(f) == 3 and f[0] == topic and f[1].isdigit() and f[2].isdigit()}


def write_cleaner_offsets(directory: Path, topic: str, offsets: Mapping[int, int]) -> None:
    """Replaces the file. Not synced: without it the next cleaning sees more than it must."""
    _write(directory / CLEANER_OFFSETS, [f"{topic} {partition} {offset}" for partition, offset in sorted(offsets.items())])


def _read(path: Path) -> list[str]:
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return []
    return lines[2:] if lines[:1] == [str(_VERSION)] else []


def _write(path: Path, lines: list[str]) -> None:
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text("\n".join([str(_VERSION), str(len(lines)), *lines, ""]))
    os.replace(temporary, path)
