"""Validity of the members' claims to partitions from before the rebalance."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from coordinator_core.codec.consumer_protocol import UNKNOWN_GENERATION
from coordinator_core.codec.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class Claim:
    """Partitions that a member claims to own, and the generation of that assignment (`AbstractStickyAssignor.MemberData`)."""

    partitions: tuple[TopicPartition, ...] = ()
    generation: int = UNKNOWN_GENERATION


def owners(claims: Mapping[str, Claim], known: Collection[TopicPartition]) -> dict[TopicPartition, str]:
    """Returns the owners of the `known` partitions. The claim of the latest generation is valid. Of two claims in one generation
    neither is, since either member may have missed a rebalance (KAFKA-12984)."""
    held: dict[TopicPartition, tuple[int, str | None]] = {}
    for member in sorted(claims):
        claim = claims[member]
        for partition in dict.fromkeys(claim.partitions):
            if partition not in known:
                continue
            generation, _ = held.get(partition, (None, None))
            if generation is None or claim.generation > generation:
                held[partition] = (claim.generation, member)
            elif claim.generation == generation:
                held[partition] = (generation, None)
    return {partition: owner for partition, (_, owner) in held.items() if owner is not None}


def former_owners(claims: Mapping[str, Claim]) -> dict[TopicPartition, str]:
    """Returns the owners by the latest claims from before the current generation; a partition that must move returns to its
    former owner if possible (KIP-341)."""
    present = max((claim.generation for claim in claims.values()), default=UNKNOWN_GENERATION)
    former: dict[TopicPartition, tuple[int, str]] = {}
    for member in sorted(claims):
        claim = claims[member]
        if claim.generation < present:
            for partition in claim.partitions:
                if partition not in former or claim.generation > former[partition][0]:
                    former[partition] = (claim.generation, member)
    return {partition: member for partition, (_, member) in former.items()}
