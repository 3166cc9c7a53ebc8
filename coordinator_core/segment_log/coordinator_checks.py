"""Checks of the batches that a coordinator appends, against the states of their producers (`AppendOrigin.COORDINATOR`)."""

from collections.abc import Sequence

from coordinator_core.producers.append import AppendOrigin, ProducerAppend, ProducerRejected
from coordinator_core.producers.state_manager import ProducerStateManager
from coordinator_core.segment_log.append_batch import AppendBatch


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
        produced = batch.of_producer(offset, now_ms)
        if produced is not None:
            producer_id = produced.producer_id
            append = appends.get(producer_id) or states.prepare_update(producer_id, AppendOrigin.COORDINATOR)
            appends[producer_id] = append
            try:
                append.add(produced)
            except ProducerRejected as reason:
                rejected[position] = reason
                continue
        offset += batch.offset_count
    return rejected
