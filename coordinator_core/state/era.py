"""How the generations of the group coordinator differ, as data.

An era stands for the last release of its span: where releases inside the span differ, the last one decides (so "1" is 2.0.1:
it keeps the protocol type of empty groups, as 1.1 and later do, and its default retention is 2.0's seven days; "2" is 2.3.1,
which loses the state timestamp of its own version 3 records, KAFKA-10401, and no longer has KAFKA-8069; "3" is 3.9, with the
Stable-only rule of KAFKA-13636; "4" is 4.1 and later). One difference cannot be seen in the state and is left out: 2.3–2.7 hold
a null `group.instance.id` as a present null.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from coordinator_core.codec.messages.classic import MemberMetadata
from coordinator_core.codec.messages.offsets import OffsetCommitValue
from coordinator_core.state.tombstone_scope import TombstoneScope


class ExpiryRule(Enum):
    """Which offsets a sweep removes; `expiry` holds the rules themselves."""

    #: `expireTimestamp < now`, whatever the group does (0.9–2.0).
    TIMESTAMP = "timestamp"
    #: By group state (KIP-211, 2.1).
    GROUP_STATE = "group state"
    #: By group state and subscription (KIP-496, 2.4).
    SUBSCRIPTION = "subscription"
    #: The Java coordinator: by group type, and a pending transactional commit protects.
    GROUP_TYPE = "group type"


class GroupRemoval(Enum):
    """When a sweep ends a group, and whether that leaves a tombstone."""

    #: Sweeps leave groups alone: an empty group was removed the moment it became empty (0.9).
    NEVER = "never"
    #: Empty and nothing committed or pending; a tombstone only for generations above 0.
    TOMBSTONE_ABOVE_GENERATION_ZERO = "tombstone above generation 0"
    #: As before, and always with tombstones.
    ALWAYS_TOMBSTONE = "always tombstone"


class RebalanceTimeout(Enum):
    """What stands for the rebalance timeout of a member that was stored without one."""

    #: Value version 0: the session timeout.
    BY_VERSION = "by version"
    #: Value -1, in any version: the session timeout.
    BY_VALUE = "by value"


DAY_MS = 24 * 60 * 60 * 1000

_JAVA_TYPES = MappingProxyType(
    {0: range(1), 1: range(5), 2: range(5)} | {t: range(1) for t in (*range(3, 9), *range(10, 18), *range(19, 24))}
)


@dataclass(frozen=True, slots=True)
class Era:
    """One generation of the coordinator. Times in ms.

    `value_versions` maps each record type that the loader knows to the value versions that it knows.
    """

    name: str
    releases: str
    value_versions: Mapping[int, range]
    default_retention_ms: int
    expiry_rule: ExpiryRule
    group_removal: GroupRemoval
    #: Expiry of a commit without one is fixed when it is loaded, from the retention at that time.
    expiry_defaults_at_load: bool = False
    #: Commits know leader epochs down to this one; anything below means "none". -1 itself always does.
    lowest_leader_epoch: int = 0
    #: The loader looks at transactions and their markers at all (0.11).
    knows_transactions: bool = True
    #: What a tombstone removes, what makes a commit transactional, what unknown markers do.
    tombstone_scope: TombstoneScope = TombstoneScope.SCALA
    #: Offsets of a group that was removed cannot be fetched until the next commit brings the group back.
    hides_offsets_without_group: bool = False
    #: Groups that exist by their offsets alone.
    simple_groups: bool = True
    #: A loaded group without members is Empty; without this state it is Stable as all others.
    empty_state: bool = True
    empty_groups_keep_protocol_type: bool = True
    #: Versions of the group value whose `currentStateTimestamp` the loader takes over.
    state_timestamp_versions: range = range(0)
    rebalance_timeout: RebalanceTimeout = RebalanceTimeout.BY_VERSION

    @classmethod
    def named(cls, name: str) -> "Era":
        """The era of that name; ValueError, naming the choices, for any other."""
        try:
            return ERAS[name]
        except KeyError:
            raise ValueError(f"unknown era {name!r}: choose one of {', '.join(ERAS)}") from None

    def reads(self, record_type: int, value_version: int | None) -> bool:
        """Does the loader know this record type and, unless it is a tombstone, this version of its value?"""
        versions = self.value_versions.get(record_type)
        return versions is not None and (value_version is None or value_version in versions)

    @property
    def knows_subscriptions(self) -> bool:
        """Does the loader look at what members of classic consumer groups are subscribed to (KIP-496)?"""
        return self.expiry_rule in (ExpiryRule.SUBSCRIPTION, ExpiryRule.GROUP_TYPE)

    def leader_epoch(self, value: OffsetCommitValue) -> int | None:
        """The leader epoch as loaded: 2.1–2.7 took any negative one for none, later brokers only -1."""
        epoch = value.leader_epoch
        return None if epoch == -1 or epoch < self.lowest_leader_epoch else epoch

    def expire_timestamp(self, value: OffsetCommitValue, retention_ms: int) -> int | None:
        """When a commit says it expires; up to 2.0 the loader fills in commit time and retention where it does not say."""
        if value.expire_timestamp != -1:
            return value.expire_timestamp
        return value.commit_timestamp + retention_ms if self.expiry_defaults_at_load else None

    def rebalance_timeout_ms(self, member: MemberMetadata, value_version: int | None) -> int:
        """The rebalance timeout of a classic member as loaded."""
        absent = value_version == 0 if self.rebalance_timeout is RebalanceTimeout.BY_VERSION else member.rebalance_timeout == -1
        return member.session_timeout if absent else member.rebalance_timeout


def _scala(offset_versions: range, group_versions: range) -> Mapping[int, range]:
    return MappingProxyType({0: offset_versions, 1: offset_versions, 2: group_versions})


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
