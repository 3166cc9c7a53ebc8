"""Reading a log partition into its shard, beside everything else that goes on."""

import gc
from collections.abc import Callable, Iterator
from time import perf_counter

from coordinator_core.coordinator.shard import GroupCoordinatorShard
from coordinator_core.log.columns import RecordColumns
from coordinator_core.log.errors import LogError
from coordinator_core.service.events import Loaded
from coordinator_core.service.log_interface import PartitionLog


def load(shard: GroupCoordinatorShard, log: PartitionLog, epoch: int, is_wanted: Callable[[], bool]) -> Loaded:
    """Replays the log. For a thread: until it is done, the loop of the partition only refuses requests. Gives up between pieces
    when the partition is another's by then."""
    started = perf_counter()
    count = 0

    def pieces() -> Iterator[RecordColumns]:
        nonlocal count
        for columns in log.read_columns():
            if not is_wanted():
                return
            count += len(columns)
            yield columns

    try:
        anomalies = shard.replay_columns(pieces())
    except (LogError, OSError) as error:
        return Loaded(epoch, count, 0, perf_counter() - started, str(error))
    # what was loaded stays: nobody has to look for garbage among it again and again
    gc.freeze()
    return Loaded(epoch, count, len(anomalies), perf_counter() - started)
