"""Loading of the compiled functions with which a coordinator loads a log partition of groups."""

from coordinator_core.codec import Record, encode
from coordinator_core.codec.messages.offsets import OffsetCommitKey, OffsetCommitValue
from coordinator_core.log.columns import parse_columns
from coordinator_core.log.record_batch import BatchRecord, write_batch
from coordinator_core.reduction.bulk_load import load_columns
from coordinator_core.state.era import Era
from coordinator_core.state.group_state import GroupState


def load_group_kernels() -> None:
    """Load a log of a commit and its tombstone, which loads the functions or compiles them."""
    key = OffsetCommitKey("group", "topic", 0)
    value = OffsetCommitValue(offset=1, leader_epoch=-1, metadata="", commit_timestamp=0, expire_timestamp=-1)
    records = [encode(Record(1, key, value, 3)), encode(Record(1, key, None, None))]
    batch = write_batch([BatchRecord(offset, 0, key, value) for offset, (key, value) in enumerate(records)])
    load_columns(GroupState(Era.named("4"), 0), 0, [parse_columns(batch)])
