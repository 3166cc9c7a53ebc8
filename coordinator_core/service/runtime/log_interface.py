"""Protocols of the log that the service appends to: `segment_log` has files, `topic_log` a topic of a Kafka cluster."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol
from uuid import UUID

from coordinator_core.log.columns import RecordColumns
from coordinator_core.producers.append import ProducerRejected
from coordinator_core.producers.state_manager import ProducerStateManager
from coordinator_core.segment_log.append_batch import AppendBatch
from coordinator_core.segment_log.errors import PartitionFailed


class LogPartition(Protocol):
    """One log partition. `append` takes the time as an argument; `read_columns` may run in another thread."""

    @property
    def leader_epoch(self) -> int:
        """Leader epoch of appended batches; it increases each time the log is opened."""

    @property
    def producers(self) -> ProducerStateManager:
        """States of the producers of appended batches."""

    def read_columns(self) -> Iterable[RecordColumns]:
        """Yield all records in pieces, in the order of offsets."""

    def check_producers(self, batches: Sequence[AppendBatch], now_ms: int) -> Mapping[int, ProducerRejected]:
        """Return the batches that the states of their producers refuse, by their position; `append` does not check this."""

    def append(self, batches: Sequence[AppendBatch], now_ms: int) -> Sequence[int]:
        """Append all batches together and return their base offsets.

        Raises AppendFailed if the log has none of them and accepts further appends, PartitionLost if they may be in the log,
        which must be loaded again, PartitionFailed if it accepts no more.
        """


class CoordinatorLog(Protocol):
    """All log partitions of the coordinator. `flush` and `clean` run in other threads.

    Appends run in `append_threads` threads, in the event loop for 0; at most `load_threads` partitions are loaded at a time.
    """

    @property
    def load_threads(self) -> int:
        """Number of threads."""

    @property
    def append_threads(self) -> int:
        """Number of threads."""

    @property
    def partitions(self) -> int:
        """Number of log partitions."""

    @property
    def numbers(self) -> Sequence[int]:
        """Partitions that this process may own: all, or its share among the nodes of a folder."""

    @property
    def owned_at_start(self) -> Sequence[int]:
        """Those of `numbers` that it owns from the start; the others are assigned to it later, or never."""

    @property
    def topic_id(self) -> UUID:
        """Topic id of the log."""

    def partition(self, number: int) -> LogPartition:
        """Return the log partition of this number, one of `numbers`."""

    def flush(self, partitions: Sequence[int]) -> Sequence[PartitionFailed | None]:
        """Fsync these partitions; return each one's error or None. After an error the content on disk is unknown."""

    def clean(self, now_ms: int) -> object:
        """Compact the dirtiest partition, if one is dirty enough, in a separate thread. Raises CleanFailed: it is unchanged."""
