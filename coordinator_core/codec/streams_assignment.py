"""Tasks in the user data of an assignment that Kafka Streams makes with the classic protocol (`AssignmentInfo`). Total.

Only the numbers of tasks are read. The layout of the user data: version, from version 3 on the highest version that all members
know, active tasks, standby tasks (which include warm-up tasks), and fields that are not read. A task has numbers of subtopology
and partition, and from version 10 on the name of its topology.
"""

from struct import Struct
from typing import NamedTuple

#: Name of the assignor in the group record (`StreamsPartitionAssignor.name`).
STREAMS_PROTOCOL = "stream"
#: First versions with the highest common version, and with the name of a topology (`ConsumerProtocolUtils.writeTaskIdTo`).
_COMMON_VERSION, _NAMED_TOPOLOGY = 3, 10
_INT32 = Struct(">i")


class TaskCounts(NamedTuple):
    """Numbers of tasks of a member."""

    active: int
    standby: int


def task_counts(user_data: bytes) -> TaskCounts | None:
    """The numbers of tasks; None for bytes of another form."""
    version, position = _number(user_data, 0)
    if version < 1:
        return None
    if version >= _COMMON_VERSION:
        position += 4
    active, position = _number(user_data, position)
    # a task has at least eight bytes
    if not 0 <= active <= (len(user_data) - position) // 8:
        return None
    for _ in range(active):
        position += 8
        if version >= _NAMED_TOPOLOGY:
            length, position = _number(user_data, position)
            if length < 0:
                return None
            position += 2 * length
    standby, position = _number(user_data, position)
    return None if not 0 <= standby <= (len(user_data) - position) // 8 else TaskCounts(active, standby)


def _number(data: bytes, position: int) -> tuple[int, int]:
    """An int32, and the position after it; -1 where the bytes end before."""
    end = position + _INT32.size
    return (-1, len(data)) if end > len(data) else (_INT32.unpack_from(data, position)[0], end)
