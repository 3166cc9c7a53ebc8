"""Differences between the coordinators of brokers, as data: the Scala coordinators of 0.9 to 3.9 and the Java one (era 4).

All have the same states, transitions and member rules. They differ in the records they write, the features they support, their
responses, and their mapping of append errors. An era stands for the last release of its span, as in `coordinator_core.state.era`,
which has the rules of loading and expiry.

Features that depend on an API version need no entry here, since older clients cannot request them: required member ids (KIP-394),
static members (KIP-345), skipped assignments, `requireStable`; see `protocol/apis.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from types import MappingProxyType

from coordinator_core.group_coordinator.append_errors import (
    JAVA_ERRORS,
    SCALA_0_9_GROUP_ERRORS,
    SCALA_0_9_OFFSET_ERRORS,
    SCALA_0_10_GROUP_ERRORS,
    SCALA_0_10_OFFSET_ERRORS,
    SCALA_1_GROUP_ERRORS,
    SCALA_1_OFFSET_ERRORS,
    SCALA_3_OFFSET_ERRORS,
    AppendErrors,
)
from coordinator_core.group_coordinator.group.states import ClassicGroupState
from coordinator_core.protocol.cluster import AclOperation
from coordinator_core.protocol.error_code import ErrorCode


class SizeRule(Enum):
    """Members that `group.max.size` rejects (KIP-389)."""

    #: No member: the setting does not exist (up to 2.1).
    NONE = "none"
    #: New members of a full group; in a group above the limit, also members without a parked JoinGroup.
    MEMBERS = "members"
    #: New members of a full group; in PreparingRebalance only members with a parked JoinGroup count.
    JOINED = "joined"


class HeartbeatCheck(Enum):
    """Checks of a heartbeat before it is answered with REBALANCE_IN_PROGRESS."""

    NOTHING = "nothing"
    MEMBER = "member"
    GENERATION = "generation"


@dataclass(frozen=True, slots=True)
class Behaviour:
    """One coordinator. `group_errors` and `offset_errors` map append errors to response errors; others are returned unchanged."""

    group_value_version: int
    offset_value_version: int
    group_errors: AppendErrors
    offset_errors: AppendErrors

    # ---- responses

    #: Error for requests of members of a Dead group.
    dead_group: ErrorCode
    #: Generation of a JoinGroup response with an error.
    error_generation: int
    #: Errors while the log partition is being loaded: in general, for SyncGroup and for Heartbeat. Brokers up to 1.1 own a
    #: partition only once it is loaded; here that holds for 0.9 and 0.10.
    while_loading: ErrorCode
    sync_while_loading: ErrorCode
    heartbeat_while_loading: ErrorCode
    #: ListGroups lists the loaded groups while other partitions are still being loaded.
    lists_while_loading: bool
    #: Only JoinGroup with an empty group id is rejected (before KIP-289).
    only_joins_need_group_ids: bool
    #: Descriptions of groups that are not Stable have the assignments of the last generation.
    describes_old_assignments: bool
    #: Operations on a group that clients may do without an authorizer (`AclEntry.supportedOperations`).
    group_operations: frozenset[int]
    #: Descriptions and lists lack a group until the log partition has a record that is newer than the group: the Java
    #: coordinator answers them from the state at the last record.
    hides_unlogged_groups: bool
    #: States with another name in DescribeGroups and ListGroups.
    state_names: Mapping[ClassicGroupState, str]

    # ---- members

    size_rule: SizeRule
    #: The first rebalance of a group waits for more members (KIP-134).
    delays_first_rebalance: bool
    #: Members that join during the delay extend it for any Empty group, not only for one that never had a generation.
    extends_every_delay: bool
    #: A member that was never in a generation times out after 5 minutes, even with a parked JoinGroup.
    new_members_time_out: bool
    #: Members must send SyncGroup within the rebalance timeout (KAFKA-12890).
    awaits_syncs: bool
    #: A later JoinGroup of a member replaces its timeouts.
    rejoin_updates_timeouts: bool
    #: States in which a heartbeat does not restart the session; if the check passes, the response is REBALANCE_IN_PROGRESS.
    idle_heartbeats: Mapping[ClassicGroupState, HeartbeatCheck]
    #: SyncGroup in a Stable group restarts the session.
    stable_sync_keeps_session: bool
    #: SyncGroup checks for an Empty group before it checks the member.
    sync_checks_empty_first: bool
    #: A group rebalances when a pending member leaves that was never in it.
    pending_leaves_rebalance: bool
    #: A JoinGroup that creates a group and writes nothing else writes the empty group (`newEmptyGroupMetadataRecord`).
    writes_new_groups: bool

    # ---- offsets

    #: A commit for a partition that its topic does not have is refused, not only one for an unknown topic.
    commits_check_partitions: bool
    #: The brokers have ZooKeeper, and take commits and fetches of v0. Brokers with KRaft return UNSUPPORTED_VERSION.
    has_zookeeper: bool
    #: Every commit has an expire timestamp, by its own retention time or `offsets.retention.minutes` (before KIP-211).
    commits_expire: bool
    #: OffsetCommit checks for a rebalance before it checks the member.
    commit_checks_rebalance_first: bool
    #: OffsetCommit v9+ with a generation of a missing group gets GROUP_ID_NOT_FOUND (KIP-848).
    reports_missing_groups: bool
    #: TxnOffsetCommit with a generation creates a missing group.
    transactions_make_groups: bool
    #: OffsetFetch of zero partitions fetches all.
    fetches_all_for_none: bool
    #: OffsetFetch with `requireStable` waits for commits in flight; otherwise it returns UNSTABLE_OFFSET_COMMIT for them.
    stable_fetch_waits: bool
    #: The offsets of deleted topics are removed.
    forgets_deleted_topics: bool
    #: OffsetDelete removes an Empty group that has no offset left.
    offset_delete_removes_group: bool
    #: A deleted group gets a tombstone even if its generation is 0.
    always_group_tombstone: bool


_GROUP_OPERATIONS = frozenset({AclOperation.READ, AclOperation.DELETE, AclOperation.DESCRIBE})
_SAME_NAMES: Mapping[ClassicGroupState, str] = MappingProxyType({})
_AWAITING_SYNC: Mapping[ClassicGroupState, str] = MappingProxyType({ClassicGroupState.COMPLETING_REBALANCE: "AwaitingSync"})

_SCALA_3 = Behaviour(
    group_value_version=3,
    offset_value_version=3,
    group_errors=SCALA_1_GROUP_ERRORS,
    offset_errors=SCALA_3_OFFSET_ERRORS,
    dead_group=ErrorCode.COORDINATOR_NOT_AVAILABLE,
    error_generation=-1,
    while_loading=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    sync_while_loading=ErrorCode.REBALANCE_IN_PROGRESS,
    heartbeat_while_loading=ErrorCode.NONE,
    lists_while_loading=True,
    only_joins_need_group_ids=False,
    group_operations=_GROUP_OPERATIONS,
    hides_unlogged_groups=False,
    describes_old_assignments=False,
    state_names=_SAME_NAMES,
    size_rule=SizeRule.JOINED,
    delays_first_rebalance=True,
    extends_every_delay=False,
    new_members_time_out=True,
    awaits_syncs=True,
    rejoin_updates_timeouts=True,
    idle_heartbeats=MappingProxyType({}),
    stable_sync_keeps_session=True,
    sync_checks_empty_first=False,
    pending_leaves_rebalance=False,
    writes_new_groups=False,
    commits_check_partitions=True,
    has_zookeeper=False,
    commits_expire=False,
    commit_checks_rebalance_first=False,
    reports_missing_groups=False,
    transactions_make_groups=True,
    fetches_all_for_none=False,
    stable_fetch_waits=False,
    forgets_deleted_topics=True,
    offset_delete_removes_group=True,
    always_group_tombstone=False,
)

_JAVA = replace(
    _SCALA_3,
    offset_value_version=4,
    group_errors=JAVA_ERRORS,
    offset_errors=JAVA_ERRORS,
    sync_while_loading=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    lists_while_loading=False,
    group_operations=_GROUP_OPERATIONS | {AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS},
    hides_unlogged_groups=True,
    describes_old_assignments=True,
    extends_every_delay=True,
    stable_sync_keeps_session=False,
    sync_checks_empty_first=True,
    pending_leaves_rebalance=True,
    writes_new_groups=True,
    reports_missing_groups=True,
    transactions_make_groups=False,
    stable_fetch_waits=True,
    offset_delete_removes_group=False,
    always_group_tombstone=True,
)

_SCALA_2 = replace(
    _SCALA_3,
    offset_errors=SCALA_1_OFFSET_ERRORS,
    size_rule=SizeRule.MEMBERS,
    has_zookeeper=True,
    awaits_syncs=False,
    rejoin_updates_timeouts=False,
    idle_heartbeats=MappingProxyType({ClassicGroupState.COMPLETING_REBALANCE: HeartbeatCheck.GENERATION}),
    commit_checks_rebalance_first=True,
)

_SCALA_1 = replace(
    _SCALA_2,
    group_value_version=1,
    offset_value_version=1,
    dead_group=ErrorCode.UNKNOWN_MEMBER_ID,
    error_generation=0,
    size_rule=SizeRule.NONE,
    new_members_time_out=False,
    idle_heartbeats=MappingProxyType({ClassicGroupState.COMPLETING_REBALANCE: HeartbeatCheck.MEMBER}),
    commits_check_partitions=False,
    commits_expire=True,
)

_SCALA_0_10 = replace(
    _SCALA_1,
    group_errors=SCALA_0_10_GROUP_ERRORS,
    offset_errors=SCALA_0_10_OFFSET_ERRORS,
    while_loading=ErrorCode.NOT_COORDINATOR,
    sync_while_loading=ErrorCode.NOT_COORDINATOR,
    heartbeat_while_loading=ErrorCode.NOT_COORDINATOR,
    only_joins_need_group_ids=True,
    state_names=_AWAITING_SYNC,
    delays_first_rebalance=False,
)

_SCALA_0_9 = replace(
    _SCALA_0_10,
    group_value_version=0,
    group_errors=SCALA_0_9_GROUP_ERRORS,
    offset_errors=SCALA_0_9_OFFSET_ERRORS,
    idle_heartbeats=MappingProxyType(
        {
            ClassicGroupState.PREPARING_REBALANCE: HeartbeatCheck.NOTHING,
            ClassicGroupState.COMPLETING_REBALANCE: HeartbeatCheck.NOTHING,
        }
    ),
    fetches_all_for_none=True,
    forgets_deleted_topics=False,
)

#: By era. Each is defined by its differences from the next one.
BEHAVIOURS: Mapping[str, Behaviour] = MappingProxyType(
    {"0.9": _SCALA_0_9, "0.10": _SCALA_0_10, "1": _SCALA_1, "2": _SCALA_2, "3": _SCALA_3, "4": _JAVA}
)
