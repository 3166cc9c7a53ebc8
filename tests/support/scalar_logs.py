"""Records of log bytes by the readable specification, one frame at a time: what the compiled columns are compared with."""

from collections.abc import Iterator

from coordinator_core.log.damage import Damage
from coordinator_core.log.entries import LogRecord
from coordinator_core.log.reader import NO_END, frames, read_frame


def read_log(
    buffer: bytes | memoryview, partition: int, start_offset: int = 0, end_offset: int = NO_END
) -> Iterator[LogRecord | Damage]:
    """Yield the records with offsets from `start_offset` up to, not including, `end_offset`, in the order of the log.

    Includes control records. Never raises for damaged bytes. Empty batches, which compaction leaves, yield nothing; `frames`
    yields their offsets.
    """
    data = memoryview(buffer)
    for frame in frames(data, start_offset, end_offset):
        for item in read_frame(data, frame, partition):
            if isinstance(item, Damage) or start_offset <= item.offset < end_offset:
                yield item
