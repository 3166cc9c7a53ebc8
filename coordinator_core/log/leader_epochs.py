"""`leader-epoch-checkpoint`: the start offset of each leader epoch (KIP-101, `LeaderEpochFileCache`)."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from coordinator_core.log.checkpoint_file import read_lines, write_lines

LEADER_EPOCHS = "leader-epoch-checkpoint"

#: The highest epoch (int32). Invalid here, since no epoch could follow.
_HIGHEST = 2**31 - 1
_ENTRY = re.compile(r"(\d{1,10}) (\d{1,19})", re.ASCII)


@dataclass(frozen=True, slots=True)
class EpochEntry:
    """A leader epoch and its first offset."""

    epoch: int
    start_offset: int


def read_leader_epochs(folder: Path) -> list[EpochEntry]:
    """Return the epochs of a partition, ascending; none for a missing or unreadable file."""
    matches = map(_ENTRY.fullmatch, read_lines(folder / LEADER_EPOCHS))
    entries = [EpochEntry(int(match[1]), int(match[2])) for match in matches if match]
    return [entry for entry in entries if entry.epoch < _HIGHEST]


def write_leader_epochs(folder: Path, entries: Iterable[EpochEntry]) -> None:
    """Replace the file durably, as a broker does: an epoch must not be used again even if all its records are lost.

    The caller must sync the folder to make the new name durable.
    """
    write_lines(folder / LEADER_EPOCHS, [f"{entry.epoch} {entry.start_offset}" for entry in entries], durable=True)


def with_new_epoch(entries: Iterable[EpochEntry], epoch: int, start_offset: int) -> list[EpochEntry]:
    """Append a new epoch and remove those that have no records (`LeaderEpochFileCache.assign`)."""
    return [
        *(entry for entry in entries if entry.epoch < epoch and entry.start_offset < start_offset),
        EpochEntry(epoch, start_offset),
    ]


def first_begun_after(epoch: int, entries: Iterable[EpochEntry]) -> int | None:
    """Start offset of the first epoch after `epoch`, which is the end of `epoch`; None if no epoch follows."""
    return min((entry.start_offset for entry in entries if entry.epoch > epoch), default=None)
