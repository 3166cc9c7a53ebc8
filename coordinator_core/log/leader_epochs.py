"""`leader-epoch-checkpoint`: where in a partition each leader epoch began (KIP-101, `LeaderEpochFileCache`)."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from coordinator_core.log.checkpoint_file import read_lines, write_lines

LEADER_EPOCHS = "leader-epoch-checkpoint"

#: The highest number an epoch can have (int32), which leaves none for the next.
_HIGHEST = 2**31 - 1
_ENTRY = re.compile(r"(\d{1,10}) (\d{1,19})", re.ASCII)


@dataclass(frozen=True, slots=True)
class EpochEntry:
    """The leader epoch that began at `start_offset`."""

    epoch: int
    start_offset: int


def read_leader_epochs(folder: Path) -> list[EpochEntry]:
    """The epochs of a partition, ascending. A file that is missing or cannot be understood has none."""
    matches = map(_ENTRY.fullmatch, read_lines(folder / LEADER_EPOCHS))
    entries = [EpochEntry(int(match[1]), int(match[2])) for match in matches if match]
    return [entry for entry in entries if entry.epoch < _HIGHEST]


def write_leader_epochs(folder: Path, entries: Iterable[EpochEntry]) -> None:
    """Replaces the file, durably as a broker does: an epoch whose every record is lost must not be given again.

    Its name is on disk once the folder is synced.
    """
    write_lines(folder / LEADER_EPOCHS, [f"{entry.epoch} {entry.start_offset}" for entry in entries], durable=True)


def with_new_epoch(entries: Iterable[EpochEntry], epoch: int, start_offset: int) -> list[EpochEntry]:
    """The epochs once a new one begins: those without any record of their own go (`LeaderEpochFileCache.assign`)."""
    return [
        *(entry for entry in entries if entry.epoch < epoch and entry.start_offset < start_offset),
        EpochEntry(epoch, start_offset),
    ]


def first_begun_after(epoch: int, entries: Iterable[EpochEntry]) -> int | None:
    """Where the first epoch after `epoch` began, which is where that one ended; None while there is none."""
    return min((entry.start_offset for entry in entries if entry.epoch > epoch), default=None)
