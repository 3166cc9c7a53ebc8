"""Records of a log, independent of the source."""

from enum import IntEnum
from typing import NamedTuple


class ControlType(IntEnum):
    """Type of a control record (`ControlRecordType`); other types do not concern the group coordinator."""

    ABORT = 0
    COMMIT = 1


class LogRecord(NamedTuple):
    """A record with its log position. `timestamp` in ms; `producer_id` -1 for none.

    `batch_offset` is the offset of the first record still present in its batch (the batch itself for message sets v0/v1).
    A control record has `is_control` set and its type in the key; batches of control records are always transactional.
    """

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    producer_id: int = -1
    producer_epoch: int = -1
    is_transactional: bool = False
    is_control: bool = False
    batch_offset: int = -1
