"""Runs that poll groups in memory once, with samples of log ends."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
from created_tables import created_tables
from polled_groups import PolledCluster

from coordinator_core.group_polls.poll_fold import PollFold
from coordinator_core.health import EndOffsetSample, samples_table
from coordinator_core.state.era import Era
from pipelines.batch.apply import BatchApplier
from pipelines.lag.sampling.log_end import EndOfPolls
from pipelines.lag.sampling.sampling import LagSampling
from pipelines.lag.sampling.schedule import SampleSchedule, Sampling
from pipelines.lag.sampling.share_groups import ReadShareOffsets, ShareGroups
from pipelines.query.engine import Snapshot
from pipelines.runtime.timestamps import to_ms
from pipelines.source.partition_sets import PartitionSets, changed_partitions
from pipelines.source.polled_rows import polled_rows

ERA = Era.named("4")


class SlowPolls:
    """Tables under `root` of runs that poll once. The answers to a poll take 45 s; each partition ends at offset 100.

    `share_offsets` answers about share groups.
    """

    def __init__(self, root: Path, share_offsets: ReadShareOffsets | None = None) -> None:
        self.cluster, self.fold, self.polls = PolledCluster(), PollFold(ERA), 0
        self.root = str(root)
        self._share_groups = None if share_offsets is None else ShareGroups(share_offsets)
        self._store, self._at = created_tables(self.root), datetime(2026, 3, 1, 12, tzinfo=UTC)
        self._next_offset = 0

    def run(self) -> None:
        """A run of the job."""
        applier = BatchApplier(
            self._store, ERA, ERA.default_retention_ms, dict, bulk_rows=1_000_000, clock=self._clock, interval_seconds=30
        )
        schedule = SampleSchedule(
            Sampling(LagSampling(self._log_ends, self._clock, share_groups=self._share_groups), None, EndOfPolls()),
            *(None, applier.lock, applier.claim, lambda _line: None, lambda: to_ms(self._at)),
        )
        applier.on_begin, applier.on_batch = schedule.batch_begins, schedule.batch_applied
        self._poll(applier)
        schedule.query_ended(is_done=True, catch_up=lambda: self._poll(applier))

    @property
    def now(self) -> datetime:
        """The time of the job."""
        return self._at

    def lag(self) -> dict[str, tuple[int | None, int | None]]:
        """Lag and log end by group and partition."""
        found = Snapshot.open(self.root).query("SELECT * FROM lag").to_pylist()
        return {f"{row['group_id']} {row['topic']}-{row['partition']}": (row["lag"], row["latest_offset"]) for row in found}

    def _poll(self, applier: BatchApplier) -> bool:
        self.polls += 1
        known = {group: tuple(stored.offsets) for group, stored in self.fold.groups.items()}
        asked_at_ms = to_ms(self._at)
        self._at += timedelta(seconds=45)
        poll = replace(self.cluster.poll(known, (), at_ms=asked_at_ms), answered_at_ms=to_ms(self._at))
        with applier.lock:
            polled = self.fold.apply(poll, self._next_offset)
            self._next_offset = polled.next_offset
            rows = polled_rows(polled, ERA, ERA.default_retention_ms)
            applier.begin(changed_partitions(rows))
            applier.apply_rows(rows)
        return True

    def _clock(self) -> datetime:
        return self._at

    def _log_ends(self, wanted: PartitionSets) -> pa.Table:
        at_ms = to_ms(self._at)
        places = [(topic, partition) for topic, partitions in wanted.items() for partition in partitions]
        return samples_table(EndOffsetSample(None, *place, at_ms, at_ms, 0, 100, 100) for place in places)
