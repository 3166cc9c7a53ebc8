"""Producer states from the bytes of a log (`UnifiedLog.rebuildProducerState`)."""

from coordinator_core.log.entries import ControlType
from coordinator_core.log.record_batch import (
    NO_PRODUCER_ID,
    BatchHeader,
    BatchRecord,
    control_type,
    read_header,
    read_payload,
    read_records,
)
from coordinator_core.producers.aborted_transactions import AbortedTransaction
from coordinator_core.producers.append import AppendOrigin, DataBatch, Marker
from coordinator_core.producers.state_manager import ProducerStateManager
from coordinator_core.segment_log.segment_scan import Piece


def replay_producers(states: ProducerStateManager, piece: Piece) -> list[AbortedTransaction]:
    """Update the states with the batches of a piece, without checks; return the transactions that are aborted there."""
    aborted: list[AbortedTransaction] = []
    for batch in piece.batches[piece.batches["producer_id"] != NO_PRODUCER_ID]:
        whole = memoryview(piece.data)[int(batch["position"]) : int(batch["end"])]
        row = replay_batch(states, whole)
        if row is not None:
            aborted.append(row)
    states.map_end_offset = int(piece.batches["last_offset"][-1]) + 1
    return aborted


def replay_batch(states: ProducerStateManager, batch: memoryview) -> AbortedTransaction | None:
    """Update the states with a batch that has a producer; return the transaction that it aborts, if any."""
    header = read_header(batch)
    found = marker_of(batch, header) if header.is_control else data_batch_of(header)
    return None if found is None else replay(states, found)


def replay(states: ProducerStateManager, batch: DataBatch | Marker) -> AbortedTransaction | None:
    """Update the states with a batch of the log, without checks; return the transaction that it aborts, if any."""
    append = states.prepare_update(batch.producer_id, AppendOrigin.REPLICATION)
    completed = append.add(batch)
    states.update(append)
    if completed is None:
        return None
    stable = states.last_stable_offset(completed)
    states.complete(completed)
    if not completed.is_aborted:
        return None
    return AbortedTransaction(completed.producer_id, completed.first_offset, completed.last_offset, stable)


def data_batch_of(header: BatchHeader) -> DataBatch:
    """Return the fields of a batch of data that its producer's state depends on."""
    return DataBatch(
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.base_offset,
        header.last_offset,
        header.max_timestamp,
        header.is_transactional,
    )


def first_record(batch: memoryview, header: BatchHeader) -> BatchRecord | None:
    """Return the first record of a batch, None without a readable one."""
    payload = read_payload(batch, header)
    first = None if isinstance(payload, tuple) else next(iter(read_records(payload, header)), None)
    return first if isinstance(first, BatchRecord) else None


def marker_of(batch: memoryview, header: BatchHeader) -> Marker | None:
    """Return the marker in a control batch; None for other control records and for a batch without records."""
    first = first_record(batch, header)
    kind = None if first is None else control_type(first.key)
    if first is None or kind not in (ControlType.ABORT, ControlType.COMMIT):
        return None
    coordinator_epoch = int.from_bytes((first.value or b"")[2:6], "big", signed=True)
    return Marker(
        header.producer_id, header.producer_epoch, ControlType(kind), coordinator_epoch, header.base_offset, first.timestamp
    )
