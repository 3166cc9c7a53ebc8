"""Appends, rolls, cleanings, crashes and time in any order: flushed records exist, or a cleaning was allowed to remove them."""

import shutil
import tempfile
from collections.abc import Collection
from pathlib import Path

from appended_logs import NOW_MS, batches_of, by_offset, folder_of, loads_alike, opened, what
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from log_builder import Log
from state_strategies import well_behaved_logs

from coordinator_core.log.compression import Compression
from coordinator_core.log.entries import ControlType, LogRecord
from coordinator_core.log.record_batch import control_type
from coordinator_core.segment_log.partition_log import PartitionLog
from coordinator_core.segment_log.segment_log import SegmentLog
from coordinator_core.segment_log.settings import SegmentLogSettings
from coordinator_core.sources.segments import SegmentSource

RETENTION_MS = 1000


class SegmentLogMachine(RuleBasedStateMachine):
    """Appends the log that a coordinator would write piece by piece, so that a record's offset is its index there."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="segment-log-"))
        self.now = NOW_MS
        self.appended_at: dict[int, int] = {}
        self.missing: set[int] = set()
        self.cleaned = False

    @initialize(
        log=well_behaved_logs(java=True, transactions=True, version=3, most_steps=40),
        segment_bytes=st.sampled_from([1, 300, 700, 4000]),
        compression=st.sampled_from([Compression.NONE, Compression.NONE, Compression.LZ4]),
        expiration=st.sampled_from([1, 10_000]),
    )
    def start(self, log: Log, segment_bytes: int, compression: Compression, expiration: int) -> None:
        self.model: list[LogRecord] = []
        for record in log.records:
            self.model.append(LogRecord(0, len(self.model), NOW_MS, *what(record)[:3], 0, *what(record)[3:], len(self.model)))
        self.settings = SegmentLogSettings(
            segment_bytes=segment_bytes,
            compression=compression,
            delete_retention_ms=RETENTION_MS,
            producer_id_expiration_ms=expiration,
        )
        self.log: SegmentLog = opened(self.directory, self.settings)
        self.source = SegmentSource(self.directory)
        self.epoch = self.partition.leader_epoch

    @property
    def partition(self) -> PartitionLog:
        return self.log.partition(0)

    @property
    def present(self) -> list[LogRecord]:
        return self.model[: self.partition.end_offset]

    @rule(count=st.integers(1, 6), ms=st.integers(0, 3))
    def append(self, count: int, ms: int) -> None:
        self.now += ms
        end = self.partition.end_offset
        batches = batches_of(self.model[end : end + count])
        bases = self.partition.append(batches, self.now)
        assert bases == [end + sum(batch.offset_count for batch in batches[:number]) for number in range(len(batches))]
        self.appended_at |= dict.fromkeys(range(end, self.partition.end_offset), self.now)
        self.missing -= self.appended_at.keys() & set(range(end, self.partition.end_offset))

    @rule()
    def flush(self) -> None:
        assert self.partition.flush() == self.partition.flushed_offset == self.partition.end_offset

    @rule()
    def roll(self) -> None:
        self.partition.roll()

    @rule(ms=st.integers(1, 2 * RETENTION_MS))
    def wait(self, ms: int) -> None:
        self.now += ms

    @rule()
    def clean(self) -> None:
        self.partition.clean(self.now)
        self.cleaned = True
        self.look()

    @rule(slices=st.integers(1, 5))
    def clean_and_stop_halfway(self, slices: int) -> None:
        for _, _ in zip(self.partition.cleaning(self.now), range(slices), strict=False):
            pass
        self.cleaned = True
        self.look()

    @rule(data=st.data())
    def crash(self, data: st.DataObject) -> None:
        """Simulate a power failure: any part of the unflushed bytes is left, and perhaps other bytes after it."""
        flushed, end = self.partition.flushed_offset, self.partition.end_offset
        self.log.close()
        last = max(folder_of(self.directory).glob("*.log"))
        size = last.stat().st_size
        kept = data.draw(st.integers(0, size)) if size else 0
        noise = data.draw(
            st.sampled_from([b"", b"\0" * 70, b"garbage that is longer than a batch header is, so that it is read" * 2])
        )
        content = last.read_bytes()
        last.write_bytes(content[: max(kept, self.safe_bytes(content, flushed))] + noise)
        self.open_again()
        assert flushed <= self.partition.end_offset <= end
        if noise:
            (tail,) = self.log.cut_tails()
            assert (tail.path, tail.position + tail.size) == (
                last,
                max(kept, self.safe_bytes(content, flushed)) + len(noise),
            )

    @staticmethod
    def safe_bytes(content: bytes, flushed: int) -> int:
        """The part of the segment that a flush has covered."""
        position = 0
        while position < len(content) and int.from_bytes(content[position : position + 8], "big") < flushed:
            position += 12 + int.from_bytes(content[position + 8 : position + 12], "big")
        return position

    @rule()
    def reopen(self) -> None:
        end = self.partition.end_offset
        self.log.close()
        self.open_again()
        assert self.partition.end_offset == end
        assert self.log.cut_tails() == ()

    def open_again(self) -> None:
        self.log = opened(self.directory, self.settings)
        assert self.partition.leader_epoch > self.epoch
        self.epoch = self.partition.leader_epoch
        self.look()

    def look(self) -> None:
        """Every record is as appended or validly removed, and removed ones do not return; a loader gets the same state."""
        found = by_offset(self.partition)
        present = self.present
        assert found.items() <= {record.offset: what(record) for record in present}.items()
        missing = {record.offset for record in present} - found.keys()
        assert missing >= {offset for offset in self.missing if offset < len(present)}
        for offset in missing - self.missing:
            assert self.may_go(present, offset, found.keys()), present[offset]
        self.missing = missing
        loads_alike([self.model[offset] for offset in sorted(found)], present)

    def may_go(self, present: list[LogRecord], offset: int, found: Collection[int]) -> bool:
        record = present[offset]
        is_old = self.now - self.appended_at[offset] >= RETENTION_MS
        own = [r for r in present if r.producer_id == record.producer_id and r.is_transactional]
        if record.is_control:
            before = [r for r in own if r.offset < offset]
            begins = max([r.offset for r in before if r.is_control], default=-1)
            return is_old and not any(begins < r.offset < offset and r.offset in found for r in before)
        ended_by = next((r for r in own if r.is_control and r.offset > offset), None) if record.is_transactional else record
        if ended_by is None:
            return False
        if ended_by.is_control and control_type(ended_by.key) == ControlType.ABORT:
            return True
        return any(r.key == record.key and not r.is_control for r in present[offset + 1 :]) or (record.value is None and is_old)

    @invariant()
    @precondition(lambda self: hasattr(self, "log"))
    def readers_of_the_folder_agree(self) -> None:
        assert self.source.end_offsets() == {0: self.partition.end_offset}

    def teardown(self) -> None:
        if hasattr(self, "log"):
            self.look()
            self.log.close()
        shutil.rmtree(self.directory)


TestSegmentLog = SegmentLogMachine.TestCase
TestSegmentLog.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
