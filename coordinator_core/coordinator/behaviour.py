"""What separates the two coordinators that brokers ran at last, as data: Scala (era 3) and Java (era 4).

Both have the same states, transitions and member rules. They differ in what they write, in a few answers, and in what they make
of errors of the log.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from coordinator_core.coordinator.errors import (
    JAVA_ERRORS,
    SCALA_GROUP_ERRORS,
    SCALA_OFFSET_ERRORS,
    AppendErrors,
    ErrorCode,
)


@dataclass(frozen=True, slots=True)
class Behaviour:
    """One coordinator. `group_errors` and `offset_errors` say what an append error becomes; others stay as they are."""

    group_value_version: int
    offset_value_version: int
    group_errors: AppendErrors
    offset_errors: AppendErrors
    #: A join that makes a group and writes nothing else writes the group, empty (`newEmptyGroupMetadataRecord`).
    writes_new_groups: bool
    #: SyncGroup in a Stable group restarts the session.
    stable_sync_keeps_session: bool
    #: What SyncGroup is told while the group is being loaded.
    sync_while_loading: ErrorCode
    #: TxnOffsetCommit with a generation makes the group that it does not find.
    transactions_make_groups: bool
    #: OffsetCommit v9+ with a generation of a group that is not there is told so (KIP-848).
    tells_missing_groups: bool
    #: SyncGroup looks for an Empty group before it looks at the member.
    sync_checks_empty_first: bool
    #: A group that is deleted gets a tombstone even if its generation is 0.
    always_group_tombstone: bool
    #: ListGroups lists what is there while other groups are still being loaded.
    lists_while_loading: bool


BEHAVIOURS: Mapping[str, Behaviour] = MappingProxyType(
    {
        "3": Behaviour(
            group_value_version=3,
            offset_value_version=3,
            group_errors=SCALA_GROUP_ERRORS,
            offset_errors=SCALA_OFFSET_ERRORS,
            writes_new_groups=False,
            stable_sync_keeps_session=True,
            sync_while_loading=ErrorCode.REBALANCE_IN_PROGRESS,
            transactions_make_groups=True,
            tells_missing_groups=False,
            sync_checks_empty_first=False,
            always_group_tombstone=False,
            lists_while_loading=True,
        ),
        "4": Behaviour(
            group_value_version=3,
            offset_value_version=4,
            group_errors=JAVA_ERRORS,
            offset_errors=JAVA_ERRORS,
            writes_new_groups=True,
            stable_sync_keeps_session=False,
            sync_while_loading=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
            transactions_make_groups=False,
            tells_missing_groups=True,
            sync_checks_empty_first=True,
            always_group_tombstone=True,
            lists_while_loading=False,
        ),
    }
)
