"""Versions of the APIs by broker era, and the first version of each field or rule."""

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import NamedTuple


class ApiKey(IntEnum):
    """The APIs that the group coordinator serves."""

    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DELETE_GROUPS = 42
    OFFSET_DELETE = 47
    CONSUMER_GROUP_DESCRIBE = 69


class Versions(NamedTuple):
    """Lowest and highest version, and the first flexible version (KIP-482) or None."""

    lowest: int
    highest: int
    flexible: int | None


#: The versions of Kafka 4.3.
VERSIONS: Mapping[ApiKey, Versions] = MappingProxyType(
    {
        ApiKey.OFFSET_COMMIT: Versions(2, 10, 8),
        ApiKey.OFFSET_FETCH: Versions(1, 10, 6),
        ApiKey.FIND_COORDINATOR: Versions(0, 6, 3),
        ApiKey.JOIN_GROUP: Versions(0, 9, 6),
        ApiKey.HEARTBEAT: Versions(0, 4, 4),
        ApiKey.LEAVE_GROUP: Versions(0, 5, 4),
        ApiKey.SYNC_GROUP: Versions(0, 5, 4),
        ApiKey.DESCRIBE_GROUPS: Versions(0, 6, 5),
        ApiKey.LIST_GROUPS: Versions(0, 5, 3),
        ApiKey.WRITE_TXN_MARKERS: Versions(1, 2, 1),
        ApiKey.TXN_OFFSET_COMMIT: Versions(0, 5, 3),
        ApiKey.DELETE_GROUPS: Versions(0, 2, 2),
        ApiKey.OFFSET_DELETE: Versions(0, 0, None),
        ApiKey.CONSUMER_GROUP_DESCRIBE: Versions(0, 1, 0),
    }
)


def _up_to(**highest: int) -> Mapping[ApiKey, range]:
    return MappingProxyType({ApiKey[name.upper()]: range(version + 1) for name, version in highest.items()})


#: Versions in the brokers' ApiVersions responses, by era; an era's brokers do not have the missing APIs.
BROKER_VERSIONS: Mapping[str, Mapping[ApiKey, range]] = MappingProxyType(
    {
        "0.9": _up_to(
            offset_commit=2,
            offset_fetch=1,
            find_coordinator=0,
            join_group=0,
            heartbeat=0,
            leave_group=0,
            sync_group=0,
            describe_groups=0,
            list_groups=0,
        ),
        "0.10": _up_to(
            offset_commit=2,
            offset_fetch=2,
            find_coordinator=0,
            join_group=1,
            heartbeat=0,
            leave_group=0,
            sync_group=0,
            describe_groups=0,
            list_groups=0,
        ),
        "1": _up_to(
            offset_commit=4,
            offset_fetch=4,
            find_coordinator=2,
            join_group=3,
            heartbeat=2,
            leave_group=2,
            sync_group=2,
            describe_groups=2,
            list_groups=2,
            write_txn_markers=0,
            txn_offset_commit=1,
            delete_groups=1,
        ),
        "2": _up_to(
            offset_commit=7,
            offset_fetch=5,
            find_coordinator=2,
            join_group=5,
            heartbeat=3,
            leave_group=2,
            sync_group=3,
            describe_groups=3,
            list_groups=2,
            write_txn_markers=0,
            txn_offset_commit=2,
            delete_groups=1,
        ),
        "3": _up_to(
            offset_commit=9,
            offset_fetch=9,
            find_coordinator=6,
            join_group=9,
            heartbeat=4,
            leave_group=5,
            sync_group=5,
            describe_groups=5,
            list_groups=5,
            write_txn_markers=1,
            txn_offset_commit=4,
            delete_groups=2,
            offset_delete=0,
        ),
        "4": MappingProxyType({api: range(v.lowest, v.highest + 1) for api, v in VERSIONS.items()}),
    }
)

#: First version of an API that has a request field or a rule.
SINCE: Mapping[tuple[ApiKey, str], int] = MappingProxyType(
    {
        (ApiKey.JOIN_GROUP, "rebalance_timeout_ms"): 1,
        (ApiKey.JOIN_GROUP, "require_known_member_id"): 4,
        (ApiKey.JOIN_GROUP, "group_instance_id"): 5,
        (ApiKey.JOIN_GROUP, "protocol_type_in_response"): 7,
        (ApiKey.JOIN_GROUP, "reason"): 8,
        (ApiKey.JOIN_GROUP, "supports_skipping_assignment"): 9,
        (ApiKey.SYNC_GROUP, "group_instance_id"): 3,
        (ApiKey.SYNC_GROUP, "protocol_name"): 5,
        (ApiKey.HEARTBEAT, "group_instance_id"): 3,
        (ApiKey.LEAVE_GROUP, "members"): 3,
        (ApiKey.LEAVE_GROUP, "reason"): 5,
        (ApiKey.OFFSET_COMMIT, "leader_epoch"): 6,
        (ApiKey.OFFSET_COMMIT, "group_instance_id"): 7,
        (ApiKey.OFFSET_COMMIT, "knows_missing_groups"): 9,
        (ApiKey.OFFSET_COMMIT, "topic_id"): 10,
        (ApiKey.TXN_OFFSET_COMMIT, "leader_epoch"): 2,
        (ApiKey.TXN_OFFSET_COMMIT, "member_id"): 3,
        (ApiKey.OFFSET_FETCH, "all_partitions"): 2,
        (ApiKey.OFFSET_FETCH, "leader_epoch"): 5,
        (ApiKey.OFFSET_FETCH, "require_stable"): 7,
        (ApiKey.OFFSET_FETCH, "groups"): 8,
        (ApiKey.OFFSET_FETCH, "topic_ids"): 10,
        (ApiKey.DESCRIBE_GROUPS, "group_instance_id"): 4,
        (ApiKey.DESCRIBE_GROUPS, "missing_is_error"): 6,
        (ApiKey.LIST_GROUPS, "states"): 4,
        (ApiKey.LIST_GROUPS, "types"): 5,
        (ApiKey.FIND_COORDINATOR, "key_type"): 1,
        (ApiKey.FIND_COORDINATOR, "keys"): 4,
    }
)

#: Last version of OffsetCommit with a retention time.
LAST_OFFSET_COMMIT_WITH_RETENTION = 4


def means(api: ApiKey, version: int, what: str) -> bool:
    """True if this version of the API has the field or rule. KeyError for an unknown name."""
    return version >= SINCE[api, what]


def offered(era: str) -> Mapping[ApiKey, range]:
    """Returns the versions that the coordinator of an era offers: those of its brokers that Kafka 4.3 has too (`VERSIONS`).

    This leaves out OffsetCommit and OffsetFetch v0, which used ZooKeeper, OffsetCommit v1, and WriteTxnMarkers v0, which brokers
    send to each other. KeyError for an unknown era.
    """
    common = {
        api: range(max(VERSIONS[api].lowest, versions.start), min(VERSIONS[api].highest + 1, versions.stop))
        for api, versions in BROKER_VERSIONS[era].items()
    }
    return {api: versions for api, versions in common.items() if versions}


def known(era: str, api: ApiKey, what: str) -> bool:
    """True if a version of the API in this era has the field or rule. KeyError for an unknown name."""
    versions = BROKER_VERSIONS[era].get(api)
    return versions is not None and means(api, versions.stop - 1, what)
