"""A cleaned segment takes the place of those that it was made of, so that neither a kill nor a reader sees anything missing."""

import os
from collections.abc import Sequence
from pathlib import Path

from coordinator_core.segment_log.segment import SWAP, Segment, sync_folder


def swap_in(cleaned: Path, new: Segment, old: Sequence[Segment], closed: dict[int, Segment]) -> Segment:
    """Puts the durable file `cleaned` in the place of the `old` segments, which begin where `new` does. Raises OSError.

    Once its name ends in `.swap`, recovery finishes what is left; before, it undoes it. A broker then deletes the old segments
    and takes the suffix away (`LocalLog.replaceSegments`), and for a moment a reader of the folder finds neither. Here the new
    file gets the old name beside its own, by a link that is moved over the first old one, before anything is deleted.
    """
    swap = new.path.with_name(new.path.name + SWAP)
    os.replace(cleaned, swap)
    sync_folder(new.path.parent)
    if _linked(swap, cleaned):
        os.replace(cleaned, new.path)
    closed[new.base_offset] = new
    for segment in old[1:]:
        closed.pop(segment.base_offset)
        segment.path.unlink()
    os.replace(swap, new.path)
    # two names of one file: the rename left both
    swap.unlink(missing_ok=True)
    sync_folder(new.path.parent)
    return new


def _linked(path: Path, name: Path) -> bool:
    """Whether the file has another name now. File systems without links get Kafka's order."""
    try:
        os.link(path, name)
    except OSError:
        return False
    return True
