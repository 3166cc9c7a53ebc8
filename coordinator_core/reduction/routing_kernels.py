"""Operation of each record of a chunk by the rules of an era's loader; the rest of the fold does not depend on eras."""

from typing import NamedTuple

from numba import njit

from coordinator_core.codec.arrays import Bytes, Int8s, Int32s, Int64s, Integer
from coordinator_core.codec.byte_kernels import read_int16
from coordinator_core.codec.columnar_kernels import COMMIT as COMMIT_STATUS
from coordinator_core.codec.columnar_kernels import OTHER as OTHER_STATUS
from coordinator_core.log.columns import IS_CONTROL, IS_TRANSACTIONAL
from coordinator_core.log.entries import ControlType
from coordinator_core.state.era import TombstoneScope

# The actions between COMMIT and WIPE concern a key.
#: Not folded: a record other than an offset commit, or an unreadable control record.
OTHER = 0
#: A control record without effect.
IGNORED = 1
#: A commit outside of transactions.
COMMIT = 2
#: A commit that waits for its producer's marker.
PEND = 3
#: A removal of the committed offset.
REMOVE = 4
#: A removal of the producer's own pending commit.
REMOVE_PENDING = 5
#: A removal of the committed offset and of every pending commit of the key.
WIPE = 6
#: Markers.
END_COMMIT = 7
END_ABORT = 8

#: Number of value versions per record type in `is_read`, and the index of tombstones among them.
VERSIONS = 6
NO_VERSION = 5

_JAVA = int(TombstoneScope.JAVA)
_ABORT_TYPE = int(ControlType.ABORT)
_COMMIT_TYPE = int(ControlType.COMMIT)


class Chunk(NamedTuple):
    """Input of `route` for one chunk: columns of the log, and status and value version from the columnar codec."""

    buffer: Bytes
    producer_id: Int64s
    flags: Bytes
    key_start: Int64s
    key_length: Int32s
    status: Bytes
    version: Int8s


@njit(cache=True)
def _route_control(buffer: Bytes, start: Integer, length: Integer, scope: Integer) -> Integer:
    """Action of a control record. Scala loaders treat unknown types as ABORT, the Java loader ignores them."""
    if length < 4 or start < 0 or start + length > buffer.size:
        return OTHER
    control_type = read_int16(buffer, start + 2)
    if control_type == _COMMIT_TYPE:
        return END_COMMIT
    return IGNORED if scope == _JAVA and control_type != _ABORT_TYPE else END_ABORT


@njit(cache=True)
def route(chunk: Chunk, scope: Integer, knows_transactions: bool, is_read: Bytes, action: Bytes) -> None:
    """Fill `action` for every record.

    `is_read[record_type * VERSIONS + value_version]` is 1 if the era's loader knows such commits; tombstones have `NO_VERSION`.
    """
    buffer, producer_id, flags, status = chunk.buffer, chunk.producer_id, chunk.flags, chunk.status
    key_start, key_length, version = chunk.key_start, chunk.key_length, chunk.version
    for i in range(flags.size):
        is_transactional = producer_id[i] != -1 if scope == _JAVA else (flags[i] & IS_TRANSACTIONAL) != 0
        is_transactional = is_transactional and knows_transactions
        if flags[i] & IS_CONTROL:
            action[i] = _route_control(buffer, key_start[i], key_length[i], scope) if knows_transactions else OTHER
        elif status[i] == OTHER_STATUS:
            action[i] = OTHER
        elif status[i] == COMMIT_STATUS:
            action[i] = PEND if is_transactional else COMMIT
        elif scope == _JAVA:
            action[i] = WIPE
        else:
            action[i] = REMOVE_PENDING if is_transactional else REMOVE
        if COMMIT <= action[i] <= WIPE:
            read_as = version[i] if status[i] == COMMIT_STATUS else NO_VERSION
            if not is_read[read_int16(buffer, key_start[i]) * VERSIONS + read_as]:
                action[i] = OTHER
