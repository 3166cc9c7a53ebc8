"""Context of a batch, for all parts of its plan."""

from dataclasses import dataclass

from coordinator_core.state.era import Era
from pipelines.batch.previous_batch import PreviousBatch


@dataclass(frozen=True)
class BatchContext:
    """Id and rules of the batch, and the tables before it. `retention_ms` is the offset retention of the cluster."""

    batch_id: int
    era: Era
    retention_ms: int
    previous: PreviousBatch
