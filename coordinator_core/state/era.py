"""Differences between the releases of the group coordinator, as data.

An era follows the last release of its span where releases inside the span differ:

- "1" is 2.0.1: it keeps the protocol type of empty groups, as 1.1 and later do, and its default retention is seven days.
- "2" is 2.3.1: it loses the state timestamp of its own version 3 records (KAFKA-10401) and has KAFKA-8069 fixed.
- "3" is 3.9, with the Stable-only rule of KAFKA-13636.
- "4" is 4.1 and later.

One difference is left out because it does not show in the state: 2.3–2.7 store a null `group.instance.id` as a present null.

`REDPANDA` is not a release of Kafka: it has the rules of Redpanda's coordinator, written from its source (commit 1c6cff3,
December 2024) and not tried on a cluster of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum
from types import MappingProxyType

from coordinator_core.codec.messages.classic import MemberMetadata
from coordinator_core.codec.messages.offsets import OffsetCommitValue
from coordinator_core.log import partition_count
from coordinator_core.log.partition_count import Partitioner


class TombstoneScope(IntEnum):
    """Commits that an offset tombstone removes. Compiled code uses the numbers.

    SCALA (`GroupMetadataManager.doLoadGroupsAndOffsets`): a plain tombstone removes the committed offset and no pending
    commit; a transactional one removes only its own producer's pending commit. A record is transactional by the flag of its
    batch. Every control record except COMMIT discards the pending commits of its producer.

    JAVA (`OffsetMetadataManager.replay`): any tombstone removes the committed offset and every producer's pending commit. A
    record is transactional if it has a producer id. Control types other than COMMIT and ABORT have no effect.
    """

    SCALA = 0
    JAVA = 1


class ExpiryRule(Enum):
    """Rule by which a sweep removes offsets; `expiry` implements the rules."""

    #: `expireTimestamp < now`, in any state of the group (0.9–2.0).
    TIMESTAMP = "timestamp"
    #: By group state (KIP-211, 2.1).
    GROUP_STATE = "group state"
    #: By group state and subscription (KIP-496, 2.4).
    SUBSCRIPTION = "subscription"
    #: The Java coordinator: by group type; a pending transactional commit protects the offset.
    GROUP_TYPE = "group type"


class GroupRemoval(Enum):
    """Condition under which a sweep removes a group, and whether it writes a tombstone."""

    #: Sweeps remove no groups: brokers removed a group when its last member left (0.9).
    NEVER = "never"
    #: Empty, with no committed and no pending offsets; a tombstone only for generations above 0.
    TOMBSTONE_ABOVE_GENERATION_ZERO = "tombstone above generation 0"
    #: The same condition, always with tombstones.
    ALWAYS_TOMBSTONE = "always tombstone"


class RebalanceTimeout(Enum):
    """Condition under which the session timeout replaces the rebalance timeout of a classic member."""

    #: Value version 0.
    BY_VERSION = "by version"
    #: Rebalance timeout -1, in any version.
    BY_VALUE = "by value"


DAY_MS = 24 * 60 * 60 * 1000

_JAVA_TYPES = MappingProxyType(
    {0: range(1), 1: range(5), 2: range(5)} | {t: range(1) for t in (*range(3, 9), *range(10, 18), *range(19, 24))}
)


@dataclass(frozen=True, slots=True)
class Era:
    """Rules of the coordinators of a span of releases. Times in ms.

    `value_versions` maps each known record type to its known value versions.
    """

    name: str
    releases: str
    value_versions: Mapping[int, range]
    default_retention_ms: int
    expiry_rule: ExpiryRule
    group_removal: GroupRemoval
    #: The loader fills in the expiry of commits without one, from the retention at that time.
    expiry_defaults_at_load: bool = False
    #: Lowest valid leader epoch of a commit; lower values mean "none". -1 always means "none".
    lowest_leader_epoch: int = 0
    #: The loader handles transactions and their markers (since 0.11).
    knows_transactions: bool = True
    #: Rules for tombstones, for transactional commits and for unknown markers.
    tombstone_scope: TombstoneScope = TombstoneScope.SCALA
    #: Offsets of a removed group cannot be fetched until the next commit recreates the group.
    hides_offsets_without_group: bool = False
    #: The coordinator creates groups for offsets without a group record.
    simple_groups: bool = True
    #: A loaded group without members is Empty; in eras without this state it is Stable.
    empty_state: bool = True
    empty_groups_keep_protocol_type: bool = True
    #: Versions of the group value whose `currentStateTimestamp` the loader keeps.
    state_timestamp_versions: range = range(0)
    rebalance_timeout: RebalanceTimeout = RebalanceTimeout.BY_VERSION
    #: Selects the log partition of a group.
    partitioner: Partitioner = partition_count.KAFKA

    @classmethod
    def named(cls, name: str) -> "Era":
        """Return the era of that name; raises ValueError with the choices for an unknown name."""
        try:
            return ALL_ERAS[name]
        except KeyError:
            raise ValueError(f"unknown era {name!r}: choose one of {', '.join(ALL_ERAS)}") from None

    def reads(self, record_type: int, value_version: int | None) -> bool:
        """True if the loader knows this record type and, unless it is a tombstone, this version of its value."""
        versions = self.value_versions.get(record_type)
        return versions is not None and (value_version is None or value_version in versions)

    @property
    def knows_subscriptions(self) -> bool:
        """True if the loader decodes the subscriptions of members of classic consumer groups (KIP-496)."""
        return self.expiry_rule in (ExpiryRule.SUBSCRIPTION, ExpiryRule.GROUP_TYPE)

    def leader_epoch(self, value: OffsetCommitValue) -> int | None:
        """The leader epoch as loaded, None for none: any negative value in 2.1–2.7, only -1 in later brokers."""
        epoch = value.leader_epoch
        return None if epoch == -1 or epoch < self.lowest_leader_epoch else epoch

    def expire_timestamp(self, value: OffsetCommitValue, retention_ms: int) -> int | None:
        """The expire timestamp of a commit, None for none; loaders up to 2.0 default to commit time plus retention."""
        if value.expire_timestamp != -1:
            return value.expire_timestamp
        return value.commit_timestamp + retention_ms if self.expiry_defaults_at_load else None

    def rebalance_timeout_ms(self, member: MemberMetadata, value_version: int | None) -> int:
        """The rebalance timeout of a classic member as loaded."""
        absent = value_version == 0 if self.rebalance_timeout is RebalanceTimeout.BY_VERSION else member.rebalance_timeout == -1
        return member.session_timeout if absent else member.rebalance_timeout


def _scala(offset_versions: range, group_versions: range) -> Mapping[int, range]:
    return MappingProxyType({0: offset_versions, 1: offset_versions, 2: group_versions})


#: The broker generations of Kafka.
ERAS: Mapping[str, Era] = MappingProxyType(
    {
        era.name: era
        for era in (
            Era(
                name="0.9",
                releases="0.9.0–0.10.0",
                value_versions=_scala(range(2), range(1)),
                default_retention_ms=DAY_MS,
                expiry_rule=ExpiryRule.TIMESTAMP,
                group_removal=GroupRemoval.NEVER,
                expiry_defaults_at_load=True,
                knows_transactions=False,
                simple_groups=False,
                empty_state=False,
                empty_groups_keep_protocol_type=False,
            ),
            Era(
                name="0.10",
                releases="0.10.1–0.10.2",
                value_versions=_scala(range(2), range(2)),
                default_retention_ms=DAY_MS,
                expiry_rule=ExpiryRule.TIMESTAMP,
                group_removal=GroupRemoval.TOMBSTONE_ABOVE_GENERATION_ZERO,
                expiry_defaults_at_load=True,
                knows_transactions=False,
                empty_groups_keep_protocol_type=False,
            ),
            Era(
                name="1",
                releases="0.11–2.0",
                value_versions=_scala(range(2), range(2)),
                default_retention_ms=7 * DAY_MS,
                expiry_rule=ExpiryRule.TIMESTAMP,
                group_removal=GroupRemoval.TOMBSTONE_ABOVE_GENERATION_ZERO,
                expiry_defaults_at_load=True,
            ),
            Era(
                name="2",
                releases="2.1–2.3",
                value_versions=_scala(range(4), range(4)),
                default_retention_ms=7 * DAY_MS,
                expiry_rule=ExpiryRule.GROUP_STATE,
                group_removal=GroupRemoval.TOMBSTONE_ABOVE_GENERATION_ZERO,
                state_timestamp_versions=range(2, 3),
            ),
            Era(
                name="3",
                releases="2.4–3.9",
                value_versions=_scala(range(5), range(5)),
                default_retention_ms=7 * DAY_MS,
                expiry_rule=ExpiryRule.SUBSCRIPTION,
                group_removal=GroupRemoval.TOMBSTONE_ABOVE_GENERATION_ZERO,
                lowest_leader_epoch=-(2**31),
                state_timestamp_versions=range(2, 5),
            ),
            Era(
                name="4",
                releases="4.0 and later (the Java coordinator)",
                value_versions=_JAVA_TYPES,
                default_retention_ms=7 * DAY_MS,
                expiry_rule=ExpiryRule.GROUP_TYPE,
                group_removal=GroupRemoval.ALWAYS_TOMBSTONE,
                lowest_leader_epoch=-(2**31),
                tombstone_scope=TombstoneScope.JAVA,
                hides_offsets_without_group=True,
                state_timestamp_versions=range(2, 5),
                rebalance_timeout=RebalanceTimeout.BY_VALUE,
            ),
        )
    }
)

#: Redpanda: expiry as `group::get_expired_offsets` and `group_manager::delete_offsets` (`src/v/kafka/server`), loading as
#: `group_recovery_consumer`. A transaction is in batches that Fetch does not return, until its offsets are written as plain
#: commits (`group::do_commit`). Its loader removes the offsets of a group with the group; brokers write tombstones of all offsets
#: before that of the group, so the offsets are gone already.
REDPANDA = Era(
    name="redpanda",
    releases="Redpanda 22.1 and later",
    value_versions=_scala(range(4), range(4)),
    default_retention_ms=7 * DAY_MS,
    expiry_rule=ExpiryRule.SUBSCRIPTION,
    group_removal=GroupRemoval.TOMBSTONE_ABOVE_GENERATION_ZERO,
    lowest_leader_epoch=-(2**31),
    knows_transactions=False,
    state_timestamp_versions=range(2, 4),
    rebalance_timeout=RebalanceTimeout.BY_VALUE,
    partitioner=partition_count.REDPANDA,
)

#: Every era that the tables can follow.
ALL_ERAS: Mapping[str, Era] = MappingProxyType({**ERAS, REDPANDA.name: REDPANDA})
