"""Change rows of a poll: a range of a log with one partition, with an offset for each difference and one for the poll."""

from dataclasses import replace

import pyarrow as pa

from coordinator_core.codec.uuids import uuid_text
from coordinator_core.group_polls.group_poll import POLLED_PARTITION
from coordinator_core.group_polls.poll_fold import PolledRange
from coordinator_core.state.era import Era
from pipelines.source.changes import SCHEMA, ChangeKind, rows
from pipelines.source.ranges import AskedEnd
from pipelines.source.reduction_rows import change_rows

#: Where the names of topic ids are from, as in `topic_ids.learned_from`.
_LEARNED_FROM = "cluster"


def polled_rows(polled: PolledRange, era: Era, retention_ms: int) -> pa.Table:
    """The change rows of a poll.

    A poll that is not complete leaves a record to read: until the next one, the tables may lack commits, and lag is unknown.
    """
    end = polled.next_offset + (0 if polled.is_complete else 1)
    asked = AskedEnd(end, polled.asked_at_ms)
    # brokers up to 2.0 compute the expiry from the time of the commit, which no answer has
    era = replace(era, expiry_defaults_at_load=False)
    found = [*change_rows(polled.reduction, polled.start_offset, polled.next_offset, era, retention_ms, asked)]
    if polled.topic_names:
        columns = {
            "topic_id": pa.array([uuid_text(topic_id) for topic_id in polled.topic_names], pa.string()),
            "topic": pa.array(list(polled.topic_names.values()), pa.string()),
            "detail": pa.repeat(pa.scalar(_LEARNED_FROM), len(polled.topic_names)),
        }
        found.insert(0, rows(ChangeKind.TOPIC_ID, POLLED_PARTITION, columns))
    return pa.Table.from_batches(found, SCHEMA)
