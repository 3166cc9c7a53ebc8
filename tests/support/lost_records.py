"""Loss of records on a stopped broker, as with a disk whose cache was not written back."""

import os
from pathlib import Path


def cut_log(folder: Path, offset: int) -> None:
    """Cut off the batches from `offset` on in the only segment of a partition, whose broker is stopped.

    The indexes are deleted as well; the broker rebuilds them.
    """
    (segment,) = folder.glob("*.log")
    data, position = segment.read_bytes(), 0
    while int.from_bytes(data[position : position + 8], "big") < offset:
        position += 12 + int.from_bytes(data[position + 8 : position + 12], "big")
    assert position < len(data)
    os.truncate(segment, position)
    for index in folder.glob("*index"):
        index.unlink()
