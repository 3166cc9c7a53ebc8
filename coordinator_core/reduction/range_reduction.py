"""Reduction of a range of one log partition: offset operations and group records, each by its own reducer."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from coordinator_core.log.columns import RecordColumns
from coordinator_core.reduction import schemas
from coordinator_core.reduction.group_reduction import GroupReducer, GroupReduction
from coordinator_core.reduction.partition_reduction import PartitionReducer, Reduction
from coordinator_core.state.era import Era


@dataclass(frozen=True, slots=True)
class RangeReduction:
    """The effect of a range of one log partition.

    Attributes:
        offsets: effect of the offset commits, tombstones and markers; its `others` are empty
        groups: effect of the other data records
        odd_markers: control records that cannot be read, or that the era does not support
        last_timestamp_ms: timestamp of the last record; None without a record, or if it has none
    """

    offsets: Reduction
    groups: GroupReduction
    odd_markers: pa.Table
    last_timestamp_ms: int | None = None


class RangeReducer:
    """Reduces a range of one log partition, chunk by chunk in log order."""

    def __init__(self, era: Era, partition: int) -> None:
        self._offsets = PartitionReducer(era, partition)
        self._groups = GroupReducer(era, partition)
        self._odd_markers = [schemas.OTHERS.empty_table()]
        self._last_timestamp_ms: int | None = None

    def add(self, columns: RecordColumns) -> None:
        """Add the next chunk. The chunk's buffer is not referenced afterwards."""
        if len(columns.timestamp):
            last_ms = int(columns.timestamp[-1])
            self._last_timestamp_ms = None if last_ms < 0 else last_ms
        self._offsets.add(columns)
        others = self._offsets.take_others()
        if others.num_rows:
            self._groups.add(others.filter(pc.invert(others["is_control"])))
            self._odd_markers.append(others.filter(others["is_control"]))

    def finish(self) -> RangeReduction:
        """Return the effect of the chunks so far. The reducer is not changed; more chunks may follow."""
        odd_markers = pa.concat_tables(self._odd_markers)
        return RangeReduction(self._offsets.finish(), self._groups.finish(), odd_markers, self._last_timestamp_ms)
