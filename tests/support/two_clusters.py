"""Two folders of tables, without Spark: the group `billing` is in both, `east` has a further one."""

from pathlib import Path

from log_builder import Log, member
from table_logs import applied

from coordinator_core.state.era import Era

ERA = Era.named("4")


def two_clusters(folder: Path) -> dict[str, str]:
    """Cluster → folder. `east` has the batches 0 and 1, `west` has only 0."""
    east, west = Log(partition=3), Log(partition=4)
    east.commit(0, 5, group="billing", topic="orders")
    east.group([member()], group="audit")
    west.commit(0, 7, group="billing", topic="orders")
    applied(east, ERA, [1], str(folder / "east"))
    applied(west, ERA, [], str(folder / "west"))
    return {name: str(folder / name) for name in ("east", "west")}
