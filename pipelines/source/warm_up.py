"""Loading of compiled functions before their first use."""

from coordinator_core.codec import Record, encode
from coordinator_core.codec.messages.offsets import OffsetCommitKey, OffsetCommitValue
from coordinator_core.log.columns import parse_columns
from coordinator_core.log.record_batch import BatchRecord, write_batch
from coordinator_core.reduction.range_reduction import RangeReducer
from coordinator_core.state.era import Era
from pipelines.source.reduction_rows import change_rows


def load_kernels() -> None:
    """Read a log of a commit and its tombstone, which loads the compiled functions of every read in this process."""
    key = OffsetCommitKey("group", "topic", 0)
    value = OffsetCommitValue(offset=1, leader_epoch=-1, metadata="", commit_timestamp=0, expire_timestamp=-1)
    records = [encode(Record(1, key, value, 3)), encode(Record(1, key, None, None))]
    batch = write_batch([BatchRecord(offset, 0, key, value) for offset, (key, value) in enumerate(records)])
    era = Era.named("4")
    reducer = RangeReducer(era, 0)
    reducer.add(parse_columns(batch))
    for _ in change_rows(reducer.finish(), 0, len(records), era, era.default_retention_ms):
        pass
