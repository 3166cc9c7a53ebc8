"""The count of log partitions that places keys, and which of several log partitions speaks for a key.

Only the partition that the brokers' partitioner selects under a count speaks for a group of `__consumer_offsets` or a
transactional id of `__transaction_state`. The topics may get more partitions (KIP-895 describes the effects). A coordinator takes
the count when it starts (`GroupCoordinator.startup`, `TransactionCoordinator.startup`), so after a growth the old count holds
until the brokers have restarted. The first record that only the new count explains shows that it holds.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from math import gcd
from typing import NamedTuple

from coordinator_core.log.partitioner import java_string_hash, partition_for
from coordinator_core.log.redpanda_partitioner import redpanda_partition_for


class KeyPlace(NamedTuple):
    """A group or transactional id, and a log partition that has records of it."""

    key: str
    partition: int


@dataclass(frozen=True, slots=True)
class Partitioner:
    """How brokers select the log partition of a key.

    `partition_for(key, count)` is the partition; `fits_smaller_count(places, count)` is true if there is one count below `count`
    with which every place is that of its key.
    """

    partition_for: Callable[[str, int], int]
    fits_smaller_count: Callable[[Collection[KeyPlace], int], bool]


def _divides_every_difference(places: Collection[KeyPlace], stated: int) -> bool:
    highest, common = 0, 0
    for key, partition in places:
        code = java_string_hash(key)
        common = gcd(common, (0 if code == -(1 << 31) else abs(code)) - partition)
        highest = max(highest, partition)
    # a count that explains a place divides the difference of its hash and its partition
    return any(common % count == 0 for count in range(highest + 1, stated))


def _passes_trial(places: Collection[KeyPlace], stated: int) -> bool:
    lowest = max((place.partition for place in places), default=0) + 1
    return any(
        all(redpanda_partition_for(key, count) == partition for key, partition in places) for count in range(lowest, stated)
    )


KAFKA = Partitioner(partition_for, _divides_every_difference)
REDPANDA = Partitioner(redpanda_partition_for, _passes_trial)


def count_in_force(
    before: int | None, stated: int | None, places: Collection[KeyPlace], partitioner: Partitioner = KAFKA
) -> int | None:
    """The count that places keys, None if it is unknown.

    `before` is the count so far, None if it was unknown; `stated` the number of partitions that the topic has now, None if the
    source does not know it; `places` where the log has records of keys: new ones, and all known ones if `before` is None.
    A growth takes effect with the first record that only the new count explains. Without a count before it, the stated count
    holds once the places rule out every smaller one. Until then the topic may have grown without a restart of the brokers, and no
    two places contradict each other.
    """
    if stated is None or stated == before:
        return before
    if before is None:
        return None if partitioner.fits_smaller_count(places, stated) else stated
    if stated < before:
        return stated
    of = partitioner.partition_for
    only_new_count_explains = any(of(key, stated) == partition != of(key, before) for key, partition in places)
    return stated if only_new_count_explains else before


def misplaced(places: Iterable[KeyPlace], count: int, partitioner: Partitioner = KAFKA) -> set[KeyPlace]:
    """The places that a coordinator with `count` partitions does not load for their keys."""
    return {place for place in places if partitioner.partition_for(place.key, count) != place.partition}


def speaking_partition(written: Mapping[int, int]) -> int:
    """The log partition that speaks for a key while the count is unknown: the one with the newest value.

    `written`: partition → time (ms) of its newest value of the key, -1 if it has tombstones only. A tombstone does not move a
    key: the previous coordinator of a key may still write tombstones for expired state. Of equal times, the higher partition
    counts.
    """
    return max(written, key=lambda partition: (written[partition], partition))
