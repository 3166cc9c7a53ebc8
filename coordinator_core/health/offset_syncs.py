"""Steady forward commits of an administrator to an empty group, as MirrorMaker 2 makes them (`sync.group.offsets`, KIP-545).

Each of them looks like a reset. What distinguishes them is the pattern: forward moves of similar size at regular times. A move
out of the pattern, and each one backwards, remains a jump. Times in ms.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import median_low
from typing import NamedTuple

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.health.offset_jumps import JumpedBy, OffsetJump

#: Jumps of so many windows of jumps are looked at: those of the last one are findings unless they are a part of a pattern.
LOOK_BACK = 2
#: Moves that make a pattern: fewer may be the attempts of an operator.
LEAST_MOVES = 4
#: Greatest usual time between two moves.
LONGEST_INTERVAL_MS = 900_000
#: A time between two moves is regular from the usual one divided by this number up to the usual one times it.
REGULAR_FACTOR = 3
#: Least share of regular times. Sources that pause make some longer, moves by others some shorter.
REGULAR_SHARE = 0.7
#: A move by more than this multiple of the usual size, in the same time, is a jump.
JUMP_FACTOR = 10


class OffsetSync(NamedTuple):
    """Offsets of a group that an administrator sets steadily.

    - `since_ms`: the first commit of the pattern; None if it may have begun before the jumps that are known.
    - `last_ms`: the last commit. `interval_ms`: the usual time between two commits of a partition.
    - `partitions`: in order.
    """

    since_ms: int | None
    last_ms: int
    interval_ms: int
    partitions: tuple[TopicPartition, ...]

    @property
    def goes_on_until_ms(self) -> int:
        """Time until which the next commit is expected."""
        return self.last_ms + max(3 * self.interval_ms, 60_000)


class WithoutSyncs(NamedTuple):
    """Jumps that are no part of a steady sync, in their order, and the sync; None without one."""

    jumps: tuple[OffsetJump, ...]
    sync: OffsetSync | None


def without_syncs(jumps: Iterable[OffsetJump], known_since_ms: int | None = None) -> WithoutSyncs:
    """Separate steady syncs from the jumps of one group, which are oldest first for each partition.

    `known_since_ms` is the time since which jumps are known; None if they are all.
    """
    given = list(jumps)
    found: list[_Pattern] = []
    for chain in _chains(given):
        pattern = _Pattern.of(chain)
        if pattern is not None:
            found.append(pattern)
    steady = {id(move) for pattern in found for move in pattern.moves}
    rest = tuple(jump for jump in given if id(jump) not in steady)
    return WithoutSyncs(rest, _sync_of(found, known_since_ms) if found else None)


def _sync_of(found: Sequence["_Pattern"], known_since_ms: int | None) -> OffsetSync:
    since_ms = min(pattern.moves[0].at_ms for pattern in found)
    interval_ms = median_low(pattern.interval_ms for pattern in found)
    # a commit before the first known one would be about an interval before it
    usual_ms = max(pattern.usual_ms for pattern in found)
    is_known = known_since_ms is None or since_ms - known_since_ms > REGULAR_FACTOR * usual_ms
    return OffsetSync(
        since_ms if is_known else None,
        max(pattern.moves[-1].at_ms for pattern in found),
        interval_ms,
        tuple(sorted({pattern.moves[0].partition for pattern in found})),
    )


def _chains(jumps: Iterable[OffsetJump]) -> list[list[OffsetJump]]:
    """Successive moves of a partition by administrators, without a commit of another party that moved it in between."""
    chains: list[list[OffsetJump]] = []
    last: dict[TopicPartition, list[OffsetJump]] = {}
    for jump in jumps:
        if jump.by is not JumpedBy.ADMIN:
            last.pop(jump.partition, None)
            continue
        chain = last.get(jump.partition)
        if chain is None or chain[-1].to_offset != jump.from_offset:
            chain = last[jump.partition] = []
            chains.append(chain)
        chain.append(jump)
    return chains


class _Pattern(NamedTuple):
    """The moves of a chain that are in the pattern.

    `usual_ms` is the usual time between two of them, and `interval_ms` that between two commits, of which a move may be several.
    """

    moves: tuple[OffsetJump, ...]
    interval_ms: int
    usual_ms: int

    @classmethod
    def of(cls, chain: Sequence[OffsetJump]) -> "_Pattern | None":
        """None if the chain is not steady."""
        forward = [move for move in chain if move.to_offset > move.from_offset]
        if len(forward) < LEAST_MOVES:
            return None
        times = [(after.at_ms - before.at_ms, after.commits) for before, after in pairwise(chain)]
        usual_ms = max(1, median_low(time for time, _ in times))
        regular = [time for time, _ in times if usual_ms <= REGULAR_FACTOR * time and time <= REGULAR_FACTOR * usual_ms]
        if usual_ms > LONGEST_INTERVAL_MS or len(regular) < REGULAR_SHARE * len(times):
            return None
        usual_size = median_low(move.to_offset - move.from_offset for move in forward)
        moves = tuple(_in_pattern(chain, usual_ms, usual_size))
        if len(moves) < LEAST_MOVES:
            return None
        return cls(moves, max(1, median_low(time // max(1, commits) for time, commits in times)), usual_ms)


def _in_pattern(chain: Sequence[OffsetJump], usual_ms: int, usual_size: int) -> Iterable[OffsetJump]:
    """The moves of usual size. The one after a jump may return to where the moves before that would have led."""

    def fits(size: int, time_ms: int, moves: int = 1) -> bool:
        # a source goes on while its offsets are not synced
        return 0 < size <= JUMP_FACTOR * usual_size * max(moves, round(time_ms / usual_ms))

    #: Number of the last move that was in the pattern; None before the first one.
    last: int | None = None
    for number, move in enumerate(chain):
        before_ms = chain[number - 1].at_ms if number else move.at_ms - usual_ms
        is_usual = fits(move.to_offset - move.from_offset, move.at_ms - before_ms)
        if not is_usual and last is not None and last < number - 1:
            line = chain[last]
            is_usual = fits(move.to_offset - line.to_offset, move.at_ms - line.at_ms, number - last)
        if is_usual:
            last = number
            yield move
