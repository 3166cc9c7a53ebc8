"""Appends to the producer states of a partition in the manner of Kafka's tests, with a clock and snapshot files."""

from pathlib import Path

from coordinator_core.log.entries import ControlType
from coordinator_core.producers.append import AppendOrigin, CompletedTransaction, DataBatch, Marker
from coordinator_core.producers.entry import ProducerStateEntry
from coordinator_core.producers.rules import RULES_SINCE
from coordinator_core.producers.state_manager import ProducerStateManager
from coordinator_core.segment_log.producer_files import ProducerFiles

PRODUCER = 1
EPOCH = 0
EXPIRATION_MS = 86_400_000
COMMIT, ABORT = ControlType.COMMIT, ControlType.ABORT
NEWEST = RULES_SINCE["4.2"]


def first_data_offset(entry: ProducerStateEntry) -> int:
    """First offset of the oldest remembered batch, -1 for none."""
    return entry.batches[0].first_offset if entry.batches else -1


class States:
    """The states of one partition, `files` with its snapshots, and the time."""

    def __init__(self, folder: Path | None = None, release: str = "4.2") -> None:
        self.manager = ProducerStateManager(RULES_SINCE[release])
        self.files = None if folder is None else ProducerFiles(folder)
        self.now = 1_000

    def append(
        self,
        sequence: int,
        offset: int,
        *,
        producer: int = PRODUCER,
        epoch: int = EPOCH,
        transactional: bool = False,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        timestamp: int | None = None,
        count: int = 1,
    ) -> None:
        """Append a batch of `count` records. Raises ProducerRejected."""
        append = self.manager.prepare_update(producer, origin)
        when = self.now if timestamp is None else timestamp
        append.append_data(DataBatch(producer, epoch, sequence, offset, offset + count - 1, when, transactional))
        self.manager.update(append)
        self.manager.map_end_offset = offset + count

    def marker(
        self,
        offset: int,
        control_type: ControlType = COMMIT,
        *,
        producer: int = PRODUCER,
        epoch: int = EPOCH,
        coordinator_epoch: int = 0,
        version: int = 0,
        timestamp: int | None = None,
    ) -> CompletedTransaction | None:
        """Append a marker. Raises ProducerRejected."""
        append = self.manager.prepare_update(producer, AppendOrigin.COORDINATOR)
        when = self.now if timestamp is None else timestamp
        completed = append.append_marker(Marker(producer, epoch, control_type, coordinator_epoch, offset, when, version))
        self.manager.update(append, () if completed is None else (completed,))
        self.manager.map_end_offset = offset + 1
        return completed

    def entry(self, producer: int = PRODUCER) -> ProducerStateEntry:
        return self.manager.entries[producer]

    def snapshot(self) -> None:
        assert self.files is not None
        self.files.take_snapshot(self.manager)

    def reloaded(self, now: int | None = None) -> "States":
        """Return states from the newest snapshot, without the producers that are expired now."""
        assert self.files is not None
        other = States(self.files.folder)
        assert other.files is not None
        other.files.load(other.manager, other.files.snapshot_offsets()[-1])
        other.now = self.now if now is None else now
        other.manager.remove_expired(other.now, EXPIRATION_MS if now is None else 60_000)
        return other
