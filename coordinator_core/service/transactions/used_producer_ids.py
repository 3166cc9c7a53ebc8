"""Producer ids that a log directory uses already: the log of a broker comes without the number of its last block."""

from pathlib import Path

from coordinator_core.codec.transaction_columns import STATE, decode_transactions
from coordinator_core.log.record_batch import NO_PRODUCER_ID
from coordinator_core.producers.snapshot import CorruptSnapshot, read_snapshot
from coordinator_core.segment_log.producer_files import SNAPSHOT
from coordinator_core.segment_log.segment_log import SegmentLog
from coordinator_core.segment_log.topic_store import TopicStore

#: Value versions 0 and 1, whatever the era: the log may be that of a newer broker.
_VALUE_VERSIONS = 2
_ID_FIELDS = ("producer_id", "previous_producer_id", "next_producer_id")


def highest_in_snapshots(directory: str | Path) -> int:
    """Return the greatest producer id in the snapshots of all partitions, those of topics that are not served included.

    -1 without one. Call it before the logs are opened, which removes their snapshots.
    """
    highest = NO_PRODUCER_ID
    for path in Path(directory).glob(f"*/*{SNAPSHOT}"):
        try:
            entries = read_snapshot(path.read_bytes())
        except (CorruptSnapshot, OSError):
            continue
        highest = max([highest, *(entry.producer_id for entry in entries)])
    return highest


def highest_in_logs(offsets: SegmentLog, transactions: SegmentLog, topics: TopicStore) -> int:
    """Return the greatest producer id in the batches of all logs, and in the records of transactional ids; -1 without one.

    All records count: an id that its transactional id has left may still have a state elsewhere.
    """
    partitions = [offsets.partition(number) for number in range(offsets.partitions)]
    highest = max((partition.producers.highest_producer_id for partition in partitions), default=NO_PRODUCER_ID)
    highest = max([highest, *(partition.producers.highest_producer_id for partition in topics.partitions())])
    return max([highest, *(_highest_in_values(transactions, number) for number in range(transactions.partitions))])


def _highest_in_values(log: SegmentLog, number: int) -> int:
    highest = NO_PRODUCER_ID
    for columns in log.partition(number).read_columns():
        slices = columns.key_start, columns.key_length, columns.value_start, columns.value_length
        decoded = decode_transactions(columns.buffer, *slices, _VALUE_VERSIONS)
        states = decoded.values[decoded.status == STATE]
        if len(states):
            highest = max([highest, *(int(states[field].max()) for field in _ID_FIELDS)])
    return highest
