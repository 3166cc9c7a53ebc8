"""What separates the coordinators that brokers have run, as data: the Scala ones of 0.9 to 3.9, and the Java one (era 4).

All have the same states, transitions and member rules. They differ in what they write, in what they know at all, in answers, and
in what they make of errors of the log. An era stands for the last release of its span, as in `coordinator_core.state.era`, which
says how it loads and what it lets expire.

What no version of the protocol had yet cannot be asked for, and needs no entry here: member ids that are given out first
(KIP-394), static members (KIP-345), skipped assignments, `requireStable`; see `messages/versions.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from types import MappingProxyType

from coordinator_core.coordinator.classic.states import ClassicGroupState
from coordinator_core.coordinator.errors import (
    JAVA_ERRORS,
    SCALA_0_9_GROUP_ERRORS,
    SCALA_0_9_OFFSET_ERRORS,
    SCALA_0_10_GROUP_ERRORS,
    SCALA_0_10_OFFSET_ERRORS,
    SCALA_1_GROUP_ERRORS,
    SCALA_1_OFFSET_ERRORS,
    SCALA_3_OFFSET_ERRORS,
    AppendErrors,
    ErrorCode,
)


class SizeRule(Enum):
    """Whom `group.max.size` keeps out (KIP-389)."""

    #: Nobody: there is no such setting (up to 2.1).
    NONE = "none"
    #: Who is new, once there are as many members; who did not join yet, of a group that is too large.
    MEMBERS = "members"
    #: As before; while members are joining, those count who have.
    JOINED = "joined"


class HeartbeatCheck(Enum):
    """How closely a heartbeat is looked at before it is told to rejoin."""

    NOTHING = "nothing"
    MEMBER = "member"
    GENERATION = "generation"


@dataclass(frozen=True, slots=True)
class Behaviour:
    """One coordinator. `group_errors` and `offset_errors` say what an append error becomes; others stay as they are."""

    group_value_version: int
    offset_value_version: int
    group_errors: AppendErrors
    offset_errors: AppendErrors

    # ---- answers

    #: What members are told of a Dead group.
    dead_group: ErrorCode
    #: Generation of a JoinGroup response that is an error.
    error_generation: int
    #: What requests are told while their group is being loaded, and what SyncGroup and Heartbeat are told. Up to 1.1, a partition
    #: is nobody's until it is loaded; here that holds for 0.9 and 0.10.
    while_loading: ErrorCode
    sync_while_loading: ErrorCode
    heartbeat_while_loading: ErrorCode
    #: ListGroups lists what is there while other groups are still being loaded.
    lists_while_loading: bool
    #: Only JoinGroup is refused an empty group id (before KIP-289).
    only_joins_need_group_ids: bool
    #: DescribeGroups and ListGroups name these states otherwise.
    state_names: Mapping[ClassicGroupState, str]

    # ---- members

    size_rule: SizeRule
    #: The first rebalance of a group waits for more members (KIP-134).
    delays_first_rebalance: bool
    #: Members that come meanwhile extend that wait for any Empty group, not only for one that never had a generation.
    extends_every_delay: bool
    #: A parked JoinGroup does not keep a member for ever that was never in a generation.
    new_members_time_out: bool
    #: Members are to send SyncGroup within the rebalance timeout (KAFKA-12890).
    awaits_syncs: bool
    #: A member that joins again may have other timeouts than before.
    rejoin_updates_timeouts: bool
    #: States in which a heartbeat does not restart the session: if the check finds nothing, it is REBALANCE_IN_PROGRESS.
    idle_heartbeats: Mapping[ClassicGroupState, HeartbeatCheck]
    #: SyncGroup in a Stable group restarts the session.
    stable_sync_keeps_session: bool
    #: SyncGroup looks for an Empty group before it looks at the member.
    sync_checks_empty_first: bool
    #: A join that makes a group and writes nothing else writes the group, empty (`newEmptyGroupMetadataRecord`).
    writes_new_groups: bool

    # ---- offsets

    #: Every commit has an expire timestamp, of `offsets.retention.minutes` unless it says how long it is to be kept (before
    #: KIP-211).
    commits_expire: bool
    #: OffsetCommit looks for a rebalance before it looks at the member.
    commit_checks_rebalance_first: bool
    #: OffsetCommit v9+ with a generation of a group that is not there is told so (KIP-848).
    tells_missing_groups: bool
    #: TxnOffsetCommit with a generation makes the group that it does not find.
    transactions_make_groups: bool
    #: OffsetFetch of no partitions is one of all.
    fetches_all_for_none: bool
    #: OffsetFetch with `requireStable` waits for what is on its way to the log; otherwise that is unstable.
    stable_fetch_waits: bool
    #: Offsets go with their topics.
    forgets_deleted_topics: bool
    #: A group that is deleted gets a tombstone even if its generation is 0.
    always_group_tombstone: bool


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
    writes_new_groups=False,
    commits_expire=False,
    commit_checks_rebalance_first=False,
    tells_missing_groups=False,
    transactions_make_groups=True,
    fetches_all_for_none=False,
    stable_fetch_waits=False,
    forgets_deleted_topics=True,
    always_group_tombstone=False,
)

_JAVA = replace(
    _SCALA_3,
    offset_value_version=4,
    group_errors=JAVA_ERRORS,
    offset_errors=JAVA_ERRORS,
    sync_while_loading=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    lists_while_loading=False,
    extends_every_delay=True,
    stable_sync_keeps_session=False,
    sync_checks_empty_first=True,
    writes_new_groups=True,
    tells_missing_groups=True,
    transactions_make_groups=False,
    stable_fetch_waits=True,
    always_group_tombstone=True,
)

_SCALA_2 = replace(
    _SCALA_3,
    offset_errors=SCALA_1_OFFSET_ERRORS,
    size_rule=SizeRule.MEMBERS,
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

#: By era. Each is told by what it does otherwise than the next one.
BEHAVIOURS: Mapping[str, Behaviour] = MappingProxyType(
    {"0.9": _SCALA_0_9, "0.10": _SCALA_0_10, "1": _SCALA_1, "2": _SCALA_2, "3": _SCALA_3, "4": _JAVA}
)
