"""Whether the tables have read the groups' log to its end, by a request for that end or for log ends of the same time."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from coordinator_core.log.errors import LogError
from pipelines.runtime.timestamps import to_ms
from pipelines.source.address import SourceAddress, open_source
from pipelines.source.ranges import Offsets, new_offsets
from pipelines.tables.store import Batch

if TYPE_CHECKING:
    from coordinator_core.sources.source import LogSource

#: Log ends that were requested at most this long after the commits were read are of the same time as the commits.
SAME_TIME_MS = 5_000


class EndOfLog(Protocol):
    """Finds out whether the tables have all commits of now."""

    def read_until(self, next_offsets: Offsets) -> int | None:
        """The time in ms up to which the tables at this position have all commits; None if they lack some, or may."""
        ...

    def is_same_time(self, batch: Batch, asked_at_ms: int) -> bool:
        """True if log ends that were requested at `asked_at_ms`, when the batch began, belong to its commits."""
        ...

    def close(self) -> None:
        """Close what was opened for it."""
        ...


class EndOfPolls:
    """No position shows whether a group has committed since the last poll: log ends belong to the poll just before them.

    They are requested after its last answer. The answers about many groups take many seconds, and lag is greater by what was
    written meanwhile.
    """

    def read_until(self, next_offsets: Offsets) -> int | None:  # noqa: ARG002 - a position says nothing
        """None."""
        return None

    def is_same_time(self, batch: Batch, asked_at_ms: int) -> bool:  # noqa: ARG002 - it began after the last answer
        """True for a complete poll, however long it took."""
        return _has_read_all(batch)

    def close(self) -> None:
        """Do nothing: no connection is open."""


class LogEnd:
    """The end of the log of an address. It is opened on first use, and again after an error. For one thread at a time."""

    def __init__(self, address: SourceAddress, kafka: Mapping[str, str], now_ms: Callable[[], int]) -> None:
        self._address = address
        self._kafka = kafka
        self._now_ms = now_ms
        self._source: LogSource | None = None

    def read_until(self, next_offsets: Offsets) -> int | None:
        """Return the time of the request, in ms, if the log ends at `next_offsets`; None if it has further records.

        Raises:
            LogError: the end cannot be requested.
        """
        asked_at_ms = self._now_ms()
        try:
            if self._source is None:
                self._source = open_source(self._address, self._kafka, seen_before=True)
            ends = self._source.end_offsets()
        except LogError:
            self.close()
            raise
        return None if new_offsets(next_offsets, ends) else asked_at_ms

    def is_same_time(self, batch: Batch, asked_at_ms: int) -> bool:
        """True if the batch read to the end of the log just before."""
        return is_same_time(batch, asked_at_ms)

    def close(self) -> None:
        """Close the log."""
        source, self._source = self._source, None
        if source is not None:
            source.close()


def is_same_time(batch: Batch, asked_at_ms: int) -> bool:
    """True if log ends that were requested at `asked_at_ms` belong to the commits of a batch: it read to the end just before."""
    return _has_read_all(batch) and 0 <= asked_at_ms - to_ms(batch.complete_until) <= SAME_TIME_MS


def _has_read_all(batch: Batch) -> bool:
    return batch.log_read_until is not None and batch.records_behind == 0
