"""Checks of the batches that a coordinator appends, against the states of their producers (`AppendOrigin.COORDINATOR`)."""

from collections.abc import Sequence

from coordinator_core.producers.append import AppendOrigin, DataBatch, Marker, ProducerAppend, ProducerRejected
from coordinator_core.producers.state_manager import ProducerStateManager
from coordinator_core.segment_log.append_batch import AppendBatch

#: Base sequence of every batch of a coordinator, which is not checked.
_BASE_SEQUENCE = 0


def check_coordinator_batches(
    states: ProducerStateManager, batches: Sequence[AppendBatch], end_offset: int, now_ms: int
) -> dict[int, ProducerRejected]:
    """Return the batches that are refused, by their position, with the reason; `states` are unchanged.

    Each batch is checked against the state that the accepted ones before it leave.
    """
    appends: dict[int, ProducerAppend] = {}
    rejected: dict[int, ProducerRejected] = {}
    offset = end_offset
    for position, batch in enumerate(batches):
        if batch.producer is not None:
            producer_id = batch.producer[0]
            append = appends.get(producer_id) or states.prepare_update(producer_id, AppendOrigin.COORDINATOR)
            appends[producer_id] = append
            try:
                _check(append, batch, batch.producer, offset, now_ms)
            except ProducerRejected as reason:
                rejected[position] = reason
                continue
        offset += batch.offset_count
    return rejected


def _check(append: ProducerAppend, batch: AppendBatch, producer: tuple[int, int], offset: int, now_ms: int) -> None:
    if batch.control_type is None:
        append.append_data(DataBatch(*producer, _BASE_SEQUENCE, offset, offset + batch.offset_count - 1, now_ms, True))
        return
    kind, version = batch.control_type, batch.transaction_version
    append.append_marker(Marker(*producer, kind, batch.coordinator_epoch, offset, now_ms, version))
