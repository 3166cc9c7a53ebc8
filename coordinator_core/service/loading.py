"""Reading a log partition into its shard, beside everything else that goes on."""

from collections.abc import Callable
from itertools import islice
from time import perf_counter

from coordinator_core.coordinator.shard import GroupCoordinatorShard
from coordinator_core.log.errors import LogError
from coordinator_core.service.events import Loaded
from coordinator_core.service.ports import PartitionLog

_PIECE = 1_000


def load(shard: GroupCoordinatorShard, log: PartitionLog, epoch: int, is_wanted: Callable[[], bool]) -> Loaded:
    """Replays the log. For a thread: until it is done, the loop of the partition only refuses requests. Gives up between pieces
    when the partition is another's by then."""
    started = perf_counter()
    count = anomalies = 0
    try:
        records = iter(log.read())
        while is_wanted() and (piece := tuple(islice(records, _PIECE))):
            anomalies += len(shard.replay(piece))
            count += len(piece)
    except (LogError, OSError) as error:
        return Loaded(epoch, count, anomalies, perf_counter() - started, str(error))
    return Loaded(epoch, count, anomalies, perf_counter() - started)
