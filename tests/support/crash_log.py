"""A log that grows in steps, with records for every table in each step, and the end offsets of every step.

Days pass between steps, so that offsets without further commits expire along the way.
"""

import random
from collections.abc import Mapping
from pathlib import Path
from uuid import UUID

from log_builder import Log, member
from segment_builder import LogBuilder

from coordinator_core.codec.messages.consumer import ConsumerGroupMetadataValue
from coordinator_core.log.entries import ControlType, LogRecord

PARTITIONS = 3
STEP_MS = 3 * 86_400_000
FIRST_MS = 1_700_000_000_000

#: Groups of a partition that commit; later ones commit less and less often, so that they expire.
_GROUPS = 6


class CrashLog:
    """The log below `directory`. `ends` has the end offsets of all partitions after every step."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.directory = directory
        self.ends: list[Mapping[int, int]] = []
        self._segments = LogBuilder(directory)
        self._logs = {partition: Log(partition) for partition in range(PARTITIONS)}
        self._draw = random.Random(seed)

    @property
    def address(self) -> str:
        return f"segments:{self.directory}"

    def time_ms(self, step: int) -> int:
        """The time at which step number `step` was written."""
        return FIRST_MS + step * STEP_MS

    def grow(self, steps: int = 1) -> None:
        """Write further steps."""
        for _ in range(steps):
            step = len(self.ends)
            for log in self._logs.values():
                begin = log.end
                self._write(log, step)
                for record in log.records[begin:]:
                    self._append(record, self.time_ms(step))
            self.ends.append({partition: log.end for partition, log in self._logs.items()})

    def records(self, step: int) -> list[LogRecord]:
        """All records up to the end of a step."""
        ends = self.ends[step]
        return [r for partition in sorted(ends) for r in self._segments.records(partition) if r.offset < ends[partition]]

    def _append(self, record: LogRecord, at: int) -> None:
        if record.is_control:
            is_commit = record.key == bytes((0, 0, 0, ControlType.COMMIT))
            self._segments.marker(record.partition, record.producer_id, commit=is_commit, timestamp=at)
        else:
            pair = (record.key, record.value)
            producer = record.producer_id
            self._segments.append(record.partition, [pair], timestamp=at, producer_id=producer, transactional=producer != -1)

    def _write(self, log: Log, step: int) -> None:
        draw, at, name = self._draw, self.time_ms(step), f"p{log.partition}"
        for _ in range(draw.randint(6, 14)):
            group = f"{name}-g{min(draw.randrange(_GROUPS), draw.randrange(_GROUPS))}"
            log.commit(draw.randrange(4), draw.randrange(1_000), group=group, at=at)
        log.commit(step % 4, step, group=f"{name}-once-{step}", at=at)
        log.commit(0, step, group=f"{name}-ids", topic=f"topic-{step}", version=4, topic_id=UUID(int=step + 1), at=at)
        log.offset_tombstone(draw.randrange(4), group=f"{name}-g{draw.randrange(_GROUPS)}")
        if step:
            log.marker(7, draw.choice((ControlType.COMMIT, ControlType.ABORT)))
        log.commit(draw.randrange(2), draw.randrange(1_000), group=f"{name}-txn", producer=7, at=at)
        members = [member(f"m{n}-{step}") for n in range(draw.randint(0, 2))]
        log.group(members, group=f"{name}-classic", generation=step, timestamp=at)
        log.group([member()], group=f"{name}-gone-{step}", timestamp=at)
        log.group([], group=f"{name}-idle-{step}", timestamp=at)
        if step:
            log.group_tombstone(f"{name}-gone-{step - 1}")
        log.consumer_member(f"m{step}", group=f"{name}-consumer", epoch=step + 1, assignment_epoch=step + 1)
        log.modern(3, ConsumerGroupMetadataValue(step + 1), group=f"{name}-consumer")
        log.raw(b"\x00\x63", bytes([step]))
