"""Records that a broker loses, as with a disk whose cache was not written back."""

import os
from pathlib import Path


def cut_log(folder: Path, offset: int) -> None:
    """Takes the batches from `offset` on out of the only segment of a partition, whose broker is down.

    The indexes go as well; the broker makes new ones.
    """
    (segment,) = folder.glob("*.log")
    data, position = segment.read_bytes(), 0
    while int.from_bytes(data[position : position + 8], "big") < offset:
        position += 12 + int.from_bytes(data[position + 8 : position + 12], "big")
    assert position < len(data)
    os.truncate(segment, position)
    for index in folder.glob("*index"):
        index.unlink()
