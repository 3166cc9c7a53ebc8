"""Lines about the number of log partitions. What lasts is reported once per process."""

import re
from dataclasses import dataclass, field

from coordinator_core.log.partition_count import KAFKA, REDPANDA, misplaced
from coordinator_core.protocol.internal_topics import TRANSACTION_STATE_TOPIC
from pipelines.batch.placement import Placement
from pipelines.runtime.errors import TablesError
from pipelines.runtime.progress import Progress

#: The error of a stream that does not read the present partitions of its topic: it has to begin again.
OTHER_PARTITIONS = re.compile(r"has \d+ partitions now, and the stream reads \d+")


@dataclass
class PartitionNotices:
    """The notices that were reported."""

    _reported: set[tuple[object, ...]] = field(default_factory=set)

    def report(self, topic: str, before: int | None, known: int | None, placement: Placement, progress: Progress) -> None:
        """Report what a batch has shown. `before` is the count until then, `known` the number of partitions of the topic."""
        keys = "transactional ids" if topic == TRANSACTION_STATE_TOPIC else "groups"
        count, moved = placement.count, len({place.key for place in placement.moved})
        if count is not None and before is not None and count != before:
            progress(
                f"{topic} has {count} partitions, {before} before, and the brokers use the new number: {keys} are read from "
                f"their new partitions; what old partitions have is history now ({keys}: {moved:,})"
            )
        elif moved:
            progress(f"{topic}: what old partitions have is history now ({keys}: {moved:,})")
        if placement.has_grown and self._is_new(topic, known):
            used = "fewer" if count is None else f"{count}"
            progress(
                f"{topic} has {known} partitions now, and the brokers use {used} until they restart: {keys} that have another "
                "partition then start there without state"
            )
        if placement.elsewhere and self._is_new(topic, "elsewhere", count):
            key, partition = min(placement.elsewhere)
            number = len({place.key for place in placement.elsewhere})
            progress(
                f"{topic}: records in other partitions than those of their {keys} ({number:,}), such as {key!r} in partition "
                f"{partition}, decide nothing: {_rule(topic, key, placement)}"
            )

    def _is_new(self, *subject: object) -> bool:
        is_new = subject not in self._reported
        self._reported.add(subject)
        return is_new


def expect_partitions(topic: str, read: int, partitions: int) -> None:
    """Raises TablesError if a stream reads fewer or more partitions than its topic has now."""
    if partitions != read:
        raise TablesError(f"{topic} has {partitions} partitions now, and the stream reads {read}")


def _rule(topic: str, key: str, placement: Placement) -> str:
    count = placement.count
    if count is not None:
        rule = f"its partition is {placement.partitioner.partition_for(key, count)} of {count}"
        is_kafka = placement.partitioner is KAFKA and topic != TRANSACTION_STATE_TOPIC
        if is_kafka and not misplaced(placement.elsewhere, count, REDPANDA):
            rule += ". Redpanda selects these partitions: if its brokers wrote the log, use --era redpanda and another folder"
        return rule
    option = "--transactions-partitions" if topic == TRANSACTION_STATE_TOPIC else "--offsets-partitions"
    return (
        "the source does not know the number of partitions, so the partition with the newest value counts; state the number "
        f"with {option}"
    )
