"""Whose claims to partitions from before the rebalance hold."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from coordinator_core.assignors.model import TopicPartition
from coordinator_core.codec.consumer_protocol import UNKNOWN_GENERATION


@dataclass(frozen=True, slots=True)
class Claim:
    """What a member says it owns, and the generation in which it got that (`AbstractStickyAssignor.MemberData`)."""

    partitions: tuple[TopicPartition, ...] = ()
    generation: int = UNKNOWN_GENERATION


def owners(claims: Mapping[str, Claim], known: Collection[TopicPartition]) -> dict[TopicPartition, str]:
    """Who owns the `known` partitions: the claim of the latest generation holds. Of two in one generation neither does, as nobody
    can tell which of them is a member that slept through a rebalance (KAFKA-12984)."""
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
    """Who owned a partition by the latest claim from before the group's present generation: where a partition has to
    move, it moves back there if it may (KIP-341)."""
    present = max((claim.generation for claim in claims.values()), default=UNKNOWN_GENERATION)
    former: dict[TopicPartition, tuple[int, str]] = {}
    for member in sorted(claims):
        claim = claims[member]
        if claim.generation < present:
            for partition in claim.partitions:
                if partition not in former or claim.generation > former[partition][0]:
                    former[partition] = (claim.generation, member)
    return {partition: member for partition, (_, member) in former.items()}
