"""Positions of a stream over the log: where it starts, and the end up to which it reads, checked against the start."""

import time
from collections.abc import Mapping

from coordinator_core.sources.source import LogSource
from pipelines.source.address import old_epoch_error, short_log_error, truncated_log_error
from pipelines.source.log_reading import SourceOptions
from pipelines.source.position import Position
from pipelines.source.ranges import AskedEnds

_CHECKS = 10
_CHECK_EVERY_SECONDS = 1.0


class LogStream:
    """The ends of a log. `close` closes the log, which is opened on first use."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._source: LogSource | None = None
        self._target: Position | None = None
        #: The ends of the log as last requested, with the time of the request.
        self.ends: AskedEnds | None = None

    @property
    def _log(self) -> LogSource:
        if self._source is None:
            self._source = self._options.open(seen_before=False)
        return self._source

    def start(self) -> Position:
        """The position of the tables; the earliest offset of each partition that they do not have."""
        given = self._options.start or Position({})
        return Position({**self._log.earliest_offsets(), **given.offsets}, given.epochs)

    def fix_end(self) -> None:
        """Let `end_after` return the present end from now on."""
        self._target = self._end()

    def end_after(self, begin: Position) -> Position:
        """The end of the log.

        Raises:
            LogTruncated: the log ends before `begin`, was truncated below it since, or has a lower leader epoch.
        """
        end = self._stable_end(begin)
        for partition in end.shorter_than(begin):
            raise short_log_error(self._options.address, partition, begin.offsets[partition], end.offsets[partition])
        for partition in end.older_than(begin):
            raise old_epoch_error(self._options.address, partition, begin.epochs[partition], end.epochs[partition])
        truncated: Mapping[int, int] = self._log.truncated_partitions(begin.known_epochs())
        for partition, end_offset in truncated.items():
            raise truncated_log_error(self._options.address, partition, begin.offsets[partition], end_offset)
        return Position({**begin.offsets, **end.offsets}, end.epochs)

    def ends_up_to(self, end: Position) -> AskedEnds | None:
        """The ends of the log; requested again if those of the last request are before `end`.

        A new process has requested none for a batch that Spark repeats.
        """
        if self.ends is None or any(self.ends.offsets.get(p, 0) < offset for p, offset in end.offsets.items()):
            self._end()
        return self.ends

    def _end(self) -> Position:
        asked_at_ms = time.time_ns() // 1_000_000
        ends = self._log.end_offsets()
        known = self.ends
        # between two equal ends no record was written
        partitions = known.partitions if known is not None and known.offsets == ends else self._log.partition_count()
        self.ends = AskedEnds(ends, asked_at_ms, partitions)
        return Position(ends, self._log.leader_epochs())

    def _stable_end(self, begin: Position) -> Position:
        """The end of the log, requested up to ten times more while it is before `begin`.

        A new leader may not know the high watermark yet (before KIP-207), and a broker that is cut off from the others may not
        know the new leader yet. Reopening the log also checks the topic id.
        """
        end = self._target or self._end()
        checks = 0
        while checks < _CHECKS and (end.shorter_than(begin) or end.older_than(begin)):
            time.sleep(_CHECK_EVERY_SECONDS)
            self.close()
            self._source = self._options.open(seen_before=True)
            end = self._end()
            checks += 1
        if self._target is not None:
            self._target = end
        return end

    def close(self) -> None:
        """Close the log."""
        if self._source is not None:
            self._source.close()
