"""Loading of the compiled functions for topics with data, before the first request needs them."""

import numpy as np

from coordinator_core.log.record_batch import BatchRecord, write_batch
from coordinator_core.segment_log.read_kernels import first_with_timestamp, whole_batches
from coordinator_core.service.topics.record_kernels import check_records


def load_topic_kernels() -> None:
    """Load or compile them, which takes milliseconds or seconds: the event loop would stand still for that time."""
    batch = np.frombuffer(write_batch([BatchRecord(0, 0, None, b"value")]), np.uint8)
    check_records(batch, 1, 0, False)
    whole_batches(batch, 0, 1, len(batch))
    first_with_timestamp(batch, 0)
