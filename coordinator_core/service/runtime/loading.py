"""Load of a log partition into its shard."""

import gc
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

from coordinator_core.log.columns import RecordColumns
from coordinator_core.log.errors import LogError, LogUnreachable
from coordinator_core.service.runtime.events import Loaded
from coordinator_core.service.runtime.log_interface import LogPartition
from coordinator_core.service.runtime.shard_interface import LogShard


def load(shard: LogShard[Any], log: LogPartition, epoch: int, is_wanted: Callable[[], bool]) -> Loaded:
    """Replay the log into the shard.

    Runs in a thread; meanwhile the partition loop answers COORDINATOR_LOAD_IN_PROGRESS. `is_wanted` is checked before the log is
    read, which may fence another owner, and between pieces: the load is abandoned once another coordinator owns the partition.
    """
    started = perf_counter()
    count = 0
    if not is_wanted():
        return Loaded(epoch)

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
        return Loaded(epoch, count, 0, perf_counter() - started, str(error), isinstance(error, LogUnreachable))
    # loaded state lives long: exclude it from garbage collection
    gc.freeze()
    return Loaded(epoch, count, len(anomalies), perf_counter() - started)
