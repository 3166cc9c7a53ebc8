"""The segments of a cleaning, and the producers whose newest batches it keeps (`LogCleanerManager.cleanableOffsets`)."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from coordinator_core.producers.entry import ProducerStateEntry
from coordinator_core.producers.state_manager import ProducerStateManager
from coordinator_core.segment_log.segment import MOST_OFFSETS, Segment
from coordinator_core.segment_log.settings import SegmentLogSettings


@dataclass(frozen=True, slots=True)
class CleaningPlan:
    """Closed segments that may be cleaned, in groups that become one segment each; `end_offset` follows their last offset.

    `dirty_ratio` is the share of their bytes that is not cleaned yet. `producers` are the active producers.
    """

    partition: int
    groups: tuple[tuple[Segment, ...], ...]
    end_offset: int
    dirty_ratio: float
    producers: dict[int, ProducerStateEntry]

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The segments of all groups."""
        return tuple(segment for group in self.groups for segment in group)


def plan_cleaning(
    partition: int,
    closed: Sequence[Segment],
    active_base_offset: int,
    first_dirty_offset: int,
    producers: ProducerStateManager,
    settings: SegmentLogSettings,
    now_ms: int,
) -> CleaningPlan:
    """Plan a cleaning of closed segments, up to the first that has an open transaction or is younger than the compaction lag."""
    undecided = producers.first_undecided_offset()
    stable = active_base_offset if undecided is None else undecided
    ends = [after.base_offset for _, after in pairwise(closed)] + [active_base_offset]
    chosen: list[Segment] = []
    end_offset = closed[0].base_offset if closed else active_base_offset
    for segment, end in zip(closed, ends, strict=False):
        is_young = settings.min_compaction_lag_ms > 0 and segment.largest_timestamp > now_ms - settings.min_compaction_lag_ms
        if end > stable or is_young:
            break
        chosen.append(segment)
        end_offset = end
    total = sum(segment.size for segment in chosen)
    dirty = sum(segment.size for segment in chosen if segment.base_offset >= first_dirty_offset)
    groups = _grouped(chosen, end_offset, settings.segment_bytes)
    active = producers.active_producers(now_ms, settings.producer_id_expiration_ms)
    return CleaningPlan(partition, groups, end_offset, dirty / total if total else 0.0, active)


def _grouped(segments: Sequence[Segment], end_offset: int, segment_bytes: int) -> tuple[tuple[Segment, ...], ...]:
    """Group adjacent segments that fit into one segment by their current sizes (`Cleaner.groupSegmentsBySize`)."""
    groups: list[list[Segment]] = []
    size = 0
    ends = [segment.base_offset for segment in segments[1:]] + [end_offset]
    for segment, end in zip(segments, ends, strict=False):
        if groups and size + segment.size <= segment_bytes and end - 1 - groups[-1][0].base_offset <= MOST_OFFSETS:
            groups[-1].append(segment)
            size += segment.size
        else:
            groups.append([segment])
            size = segment.size
    return tuple(tuple(group) for group in groups)
