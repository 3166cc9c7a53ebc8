"""Replacement of segments by a cleaned one, safe against kills and concurrent readers."""

import os
from collections.abc import Sequence
from pathlib import Path

from coordinator_core.segment_log.segment import SWAP, Segment, sync_folder


def swap_in(cleaned: Path, new: Segment, old: Sequence[Segment], closed: dict[int, Segment]) -> Segment:
    """Replace the `old` segments by the durable file `cleaned`; `new` has the base offset of the first of them. Raises OSError.

    Once the file's name ends in `.swap`, recovery finishes an interrupted replacement; before that, recovery undoes it. A broker
    then deletes the old segments and removes the suffix (`LocalLog.replaceSegments`), and in between a reader of the folder finds
    neither. Here the new file first gets a second link, which is renamed over the first old segment before any file is deleted.
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
    # if both names are links to one file, the rename kept both
    swap.unlink(missing_ok=True)
    sync_folder(new.path.parent)
    return new


def _linked(path: Path, name: Path) -> bool:
    """Create a second link to the file; False on file systems without links, which get Kafka's order."""
    try:
        os.link(path, name)
    except OSError:
        return False
    return True
