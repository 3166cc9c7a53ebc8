"""The table of APIs: all about an API except its codec (`wire`) and its handler (`coordinator`, `transactions`, `service`)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from coordinator_core.protocol.api import AnyApi, Api, CoordinatorApi, Request, SupportedVersions, TransactionApi
from coordinator_core.protocol.cluster import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    DescribeClusterRequest,
    DescribeClusterResponse,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
    ProduceResponse,
)
from coordinator_core.protocol.configs import DescribeConfigsRequest, DescribeConfigsResponse
from coordinator_core.protocol.groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DeleteGroupRequest,
    DeleteGroupResponse,
    DescribeGroupRequest,
    DescribeGroupResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    ListGroupsRequest,
    ListGroupsResponse,
)
from coordinator_core.protocol.membership import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from coordinator_core.protocol.offsets import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    TxnMarkerRequest,
    TxnMarkerResponse,
    TxnOffsetCommitRequest,
)
from coordinator_core.protocol.topics import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeProducersRequest,
    DescribeProducersResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from coordinator_core.protocol.transactions import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    DescribeTransactionRequest,
    DescribeTransactionResponse,
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from coordinator_core.state.era import ERAS


def _versions(
    lowest: int,
    highest: int,
    *,
    flexible: int | None,
    before_4: tuple[int | None, ...] | None = None,
    lowest_in_4: int | None = None,
) -> SupportedVersions:
    """Returns the versions of released brokers, and those that the brokers of each era list.

    `before_4` has the highest version in the eras 0.9, 0.10, 1, 2 and 3, None if the era's brokers do not have the API; without
    it, every era has all of them, which limits none of an API's clients. `lowest_in_4` is the lowest one since KIP-896.
    """
    every = range(lowest, highest + 1)
    if before_4 is None:
        brokers = dict.fromkeys(ERAS, every)
    else:
        brokers = {era: range(each + 1) for era, each in zip(ERAS, before_4, strict=False) if each is not None}
    brokers["4"] = range(lowest if lowest_in_4 is None else lowest_in_4, highest + 1)
    return SupportedVersions(lowest, highest, flexible, MappingProxyType(brokers))


#: Java clients before 2.8 and franz-go require it. Brokers of 4.x list versions 0–2 without serving them, because
#: librdkafka disables compression if they are missing (KAFKA-18659, `ProduceRequest`).
PRODUCE = Api(
    0, "PRODUCE", _versions(0, 13, flexible=9, before_4=(2, 2, 6, 7, 11)),
    ProduceRequest, ProduceResponse,
    first_versions=MappingProxyType(
        {
            "log_append_time": 2,
            "transactional_id": 3,
            "log_start_offset": 5,
            "zstd": 7,
            "error_message": 8,
            "transaction_abortable": 11,
            "adds_partitions": 12,
            "topic_id": 13,
        }
    ),
    errors=lambda response: (partition.error for partition in response.partitions),
)  # fmt: skip

#: The lowest versions are those that brokers before 4.0 serve (KIP-896); Sarama uses them.
FETCH = Api(
    1, "FETCH", _versions(0, 18, flexible=12, lowest_in_4=4),
    FetchRequest, FetchResponse,
    first_versions=MappingProxyType(
        {"max_bytes": 3, "isolation_level": 4, "log_start_offset": 5, "forgotten": 7, "leader_epoch": 9, "topic_id": 13}
    ),
    errors=lambda response: (response.error, *(partition.error for partition in response.partitions)),
)  # fmt: skip

LIST_OFFSETS = Api(
    2, "LIST_OFFSETS", _versions(1, 11, flexible=6),
    ListOffsetsRequest, ListOffsetsResponse,
    first_versions=MappingProxyType({"isolation_level": 2, "leader_epoch": 4}),
    errors=lambda response: (offset.error for offset in response.offsets.values()),
)  # fmt: skip

METADATA = Api(
    3, "METADATA", _versions(0, 13, flexible=9),
    MetadataRequest, MetadataResponse,
    first_versions=MappingProxyType(
        {"null_for_all_topics": 1, "allow_auto_topic_creation": 4, "authorized_operations": 8, "topic_id": 12}
    ),
    errors=lambda response: (response.error, *(topic.error for topic in response.topics)),
)  # fmt: skip

OFFSET_COMMIT = CoordinatorApi(
    8, "OFFSET_COMMIT", _versions(0, 10, flexible=8, before_4=(2, 2, 4, 7, 9), lowest_in_4=2),
    OffsetCommitRequest, OffsetCommitResponse,
    first_versions=MappingProxyType(
        {"group_coordinator": 1, "leader_epoch": 6, "group_instance_id": 7, "knows_missing_groups": 9, "topic_id": 10}
    ),
    errors=lambda response: response.errors.values(),
    error_response=lambda request, error: OffsetCommitResponse(dict.fromkeys(request.offsets, error)),
    empty_group_id=True,
)  # fmt: skip

OFFSET_FETCH = CoordinatorApi(
    9, "OFFSET_FETCH", _versions(0, 10, flexible=6, before_4=(1, 2, 4, 5, 9), lowest_in_4=1),
    OffsetFetchRequest, OffsetFetchResponse,
    first_versions=MappingProxyType(
        {"group_coordinator": 1, "all_partitions": 2, "leader_epoch": 5, "require_stable": 7, "groups": 8, "topic_ids": 10}
    ),
    errors=lambda response: (response.error, *(offset.error for offset in response.offsets.values())),
    error_response=lambda _, error: OffsetFetchResponse(error, {}),
    empty_group_id=True,
)  # fmt: skip

FIND_COORDINATOR = Api(
    10, "FIND_COORDINATOR", _versions(0, 6, flexible=3, before_4=(0, 0, 2, 2, 6)),
    FindCoordinatorRequest, FindCoordinatorResponse,
    first_versions=MappingProxyType({"key_type": 1, "keys": 4}),
    errors=lambda response: (found.error for found in response.coordinators),
)  # fmt: skip

JOIN_GROUP = CoordinatorApi(
    11, "JOIN_GROUP", _versions(0, 9, flexible=6, before_4=(0, 1, 3, 5, 9)),
    JoinGroupRequest, JoinGroupResponse,
    first_versions=MappingProxyType(
        {
            "rebalance_timeout_ms": 1,
            "require_known_member_id": 4,
            "group_instance_id": 5,
            "protocol_type_in_response": 7,
            "reason": 8,
            "supports_skipping_assignment": 9,
        }
    ),
    error_response=lambda request, error: JoinGroupResponse(error, request.member_id),
)  # fmt: skip

HEARTBEAT = CoordinatorApi(
    12, "HEARTBEAT", _versions(0, 4, flexible=4, before_4=(0, 0, 2, 3, 4)),
    HeartbeatRequest, HeartbeatResponse,
    first_versions=MappingProxyType({"group_instance_id": 3}),
    error_response=lambda _, error: HeartbeatResponse(error),
)  # fmt: skip

LEAVE_GROUP = CoordinatorApi(
    13, "LEAVE_GROUP", _versions(0, 5, flexible=4, before_4=(0, 0, 2, 2, 5)),
    LeaveGroupRequest, LeaveGroupResponse,
    first_versions=MappingProxyType({"members": 3, "reason": 5}),
    errors=lambda response: (response.error, *(member.error for member in response.members)),
    error_response=lambda _, error: LeaveGroupResponse(error),
)  # fmt: skip

SYNC_GROUP = CoordinatorApi(
    14, "SYNC_GROUP", _versions(0, 5, flexible=4, before_4=(0, 0, 2, 3, 5)),
    SyncGroupRequest, SyncGroupResponse,
    first_versions=MappingProxyType({"group_instance_id": 3, "protocol_name": 5}),
    error_response=lambda _, error: SyncGroupResponse(error),
)  # fmt: skip

DESCRIBE_GROUPS = CoordinatorApi(
    15, "DESCRIBE_GROUPS", _versions(0, 6, flexible=5, before_4=(0, 0, 2, 3, 5)),
    DescribeGroupRequest, DescribeGroupResponse,
    first_versions=MappingProxyType({"authorized_operations": 3, "group_instance_id": 4, "missing_is_error": 6}),
    error_response=lambda request, error: DescribeGroupResponse(error, request.group_id),
    empty_group_id=True,
)  # fmt: skip

LIST_GROUPS = CoordinatorApi(
    16, "LIST_GROUPS", _versions(0, 5, flexible=3, before_4=(0, 0, 2, 2, 5)),
    ListGroupsRequest, ListGroupsResponse,
    first_versions=MappingProxyType({"states": 4, "types": 5}),
    error_response=lambda _, error: ListGroupsResponse(error),
)  # fmt: skip

API_VERSIONS = Api(
    18, "API_VERSIONS", _versions(0, 4, flexible=3),
    ApiVersionsRequest, ApiVersionsResponse,
    first_versions=MappingProxyType({"software_name": 3}),
)  # fmt: skip

CREATE_TOPICS = Api(
    19, "CREATE_TOPICS", _versions(0, 7, flexible=5, before_4=(None, 1, 3, 3, 7), lowest_in_4=2),
    CreateTopicsRequest, CreateTopicsResponse,
    first_versions=MappingProxyType({"error_message": 1, "configs": 5, "topic_id": 7}),
    errors=lambda response: (topic.error for topic in response.topics),
)  # fmt: skip

DELETE_TOPICS = Api(
    20, "DELETE_TOPICS", _versions(0, 6, flexible=4, before_4=(None, 0, 2, 3, 6), lowest_in_4=1),
    DeleteTopicsRequest, DeleteTopicsResponse,
    first_versions=MappingProxyType({"error_message": 5, "topic_id": 6}),
    errors=lambda response: (topic.error for topic in response.topics),
)  # fmt: skip

DELETE_RECORDS = Api(
    21, "DELETE_RECORDS", _versions(0, 2, flexible=2, before_4=(None, None, 1, 1, 2)),
    DeleteRecordsRequest, DeleteRecordsResponse,
    errors=lambda response: (partition.error for partition in response.partitions.values()),
)  # fmt: skip

OFFSET_FOR_LEADER_EPOCH = Api(
    23, "OFFSET_FOR_LEADER_EPOCH", _versions(0, 4, flexible=4, before_4=(None, None, 1, 3, 4), lowest_in_4=2),
    OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse,
    errors=lambda response: (epoch.error for epoch in response.epochs.values()),
)  # fmt: skip

#: Brokers list v6 (KIP-939) only with `unstable.api.versions.enable`.
INIT_PRODUCER_ID = TransactionApi(
    22, "INIT_PRODUCER_ID", _versions(0, 5, flexible=2, before_4=(None, None, 1, 1, 5)),
    InitProducerIdRequest, InitProducerIdResponse,
    first_versions=MappingProxyType({"producer": 3, "producer_fenced": 4}),
    error_response=lambda _, error: InitProducerIdResponse(error),
)  # fmt: skip

#: Its request is the part for one transaction; v0–v3 have one.
ADD_PARTITIONS_TO_TXN = TransactionApi(
    24, "ADD_PARTITIONS_TO_TXN", _versions(0, 5, flexible=3, before_4=(None, None, 1, 1, 5)),
    AddPartitionsToTxnRequest, AddPartitionsToTxnResponse,
    first_versions=MappingProxyType({"producer_fenced": 2, "transactions": 4}),
    errors=lambda response: response.errors.values(),
    error_response=lambda request, error: AddPartitionsToTxnResponse(
        request.transactional_id, dict.fromkeys(request.partitions, error)
    ),
)  # fmt: skip

ADD_OFFSETS_TO_TXN = TransactionApi(
    25, "ADD_OFFSETS_TO_TXN", _versions(0, 4, flexible=3, before_4=(None, None, 1, 1, 4)),
    AddOffsetsToTxnRequest, AddOffsetsToTxnResponse,
    first_versions=MappingProxyType({"producer_fenced": 2}),
    error_response=lambda _, error: AddOffsetsToTxnResponse(error),
)  # fmt: skip

END_TXN = TransactionApi(
    26, "END_TXN", _versions(0, 5, flexible=3, before_4=(None, None, 1, 1, 4)),
    EndTxnRequest, EndTxnResponse,
    first_versions=MappingProxyType({"producer_fenced": 2, "increments_epoch": 5}),
    error_response=lambda _, error: EndTxnResponse(error),
)  # fmt: skip

#: Its request is the part for one partition.
WRITE_TXN_MARKERS = CoordinatorApi(
    27, "WRITE_TXN_MARKERS", _versions(0, 2, flexible=1, before_4=(None, None, 0, 0, 1), lowest_in_4=1),
    TxnMarkerRequest, TxnMarkerResponse,
    first_versions=MappingProxyType({"transaction_version": 2}),
    error_response=lambda _, error: TxnMarkerResponse(error),
)  # fmt: skip

TXN_OFFSET_COMMIT = CoordinatorApi(
    28, "TXN_OFFSET_COMMIT", _versions(0, 5, flexible=3, before_4=(None, None, 1, 2, 4)),
    TxnOffsetCommitRequest, OffsetCommitResponse,
    first_versions=MappingProxyType({"leader_epoch": 2, "member_id": 3, "transaction_abortable": 4, "adds_partition": 5}),
    errors=lambda response: response.errors.values(),
    error_response=lambda request, error: OffsetCommitResponse(dict.fromkeys(request.offsets, error)),
)  # fmt: skip

DESCRIBE_CONFIGS = Api(
    32, "DESCRIBE_CONFIGS", _versions(0, 4, flexible=4, before_4=(None, None, 2, 2, 4), lowest_in_4=1),
    DescribeConfigsRequest, DescribeConfigsResponse,
    first_versions=MappingProxyType({"config_source": 1, "config_type": 3}),
)  # fmt: skip

DESCRIBE_LOG_DIRS = Api(
    35, "DESCRIBE_LOG_DIRS", _versions(0, 5, flexible=2, before_4=(None, None, 1, 1, 4), lowest_in_4=1),
    DescribeLogDirsRequest, DescribeLogDirsResponse,
    first_versions=MappingProxyType({"error": 3, "volume": 4}),
)  # fmt: skip

CREATE_PARTITIONS = Api(
    37, "CREATE_PARTITIONS", _versions(0, 3, flexible=2, before_4=(None, None, 1, 1, 3)),
    CreatePartitionsRequest, CreatePartitionsResponse,
    errors=lambda response: (topic.error for topic in response.topics),
)  # fmt: skip

DELETE_GROUPS = CoordinatorApi(
    42, "DELETE_GROUPS", _versions(0, 2, flexible=2, before_4=(None, None, 1, 1, 2)),
    DeleteGroupRequest, DeleteGroupResponse,
    error_response=lambda request, error: DeleteGroupResponse(request.group_id, error),
    empty_group_id=True,
)  # fmt: skip

#: Its request is the part for one resource.
INCREMENTAL_ALTER_CONFIGS = Api(
    44, "INCREMENTAL_ALTER_CONFIGS", _versions(0, 1, flexible=1, before_4=(None, None, None, 0, 1)),
    AlterConfigsRequest, AlterConfigsResponse,
)  # fmt: skip

OFFSET_DELETE = CoordinatorApi(
    47, "OFFSET_DELETE", _versions(0, 0, flexible=None, before_4=(None, None, None, None, 0)),
    OffsetDeleteRequest, OffsetDeleteResponse,
    errors=lambda response: (response.error, *response.errors.values()),
    error_response=lambda _, error: OffsetDeleteResponse(error, {}),
)  # fmt: skip

DESCRIBE_CLUSTER = Api(
    60, "DESCRIBE_CLUSTER", _versions(0, 2, flexible=0),
    DescribeClusterRequest, DescribeClusterResponse,
    first_versions=MappingProxyType({"endpoint_type": 1}),
)  # fmt: skip

DESCRIBE_PRODUCERS = Api(
    61, "DESCRIBE_PRODUCERS", _versions(0, 0, flexible=0, before_4=(None, None, None, None, 0)),
    DescribeProducersRequest, DescribeProducersResponse,
    errors=lambda response: (partition.error for partition in response.partitions.values()),
)  # fmt: skip

DESCRIBE_TRANSACTIONS = TransactionApi(
    65, "DESCRIBE_TRANSACTIONS", _versions(0, 0, flexible=0, before_4=(None, None, None, None, 0)),
    DescribeTransactionRequest, DescribeTransactionResponse,
    error_response=lambda request, error: DescribeTransactionResponse(error, request.transactional_id),
)  # fmt: skip

LIST_TRANSACTIONS = TransactionApi(
    66, "LIST_TRANSACTIONS", _versions(0, 2, flexible=0, before_4=(None, None, None, None, 1)),
    ListTransactionsRequest, ListTransactionsResponse,
    first_versions=MappingProxyType({"duration_ms": 1, "pattern": 2}),
    error_response=lambda _, error: ListTransactionsResponse(error),
)  # fmt: skip

CONSUMER_GROUP_DESCRIBE = CoordinatorApi(
    69, "CONSUMER_GROUP_DESCRIBE", _versions(0, 1, flexible=0, before_4=(None,) * 5),
    ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse,
    error_response=lambda request, error: ConsumerGroupDescribeResponse(error, request.group_id),
)  # fmt: skip

_TABLE = sorted((each for each in tuple(globals().values()) if isinstance(each, Api)), key=lambda api: api.number)
#: Every API by its number.
APIS: Mapping[int, AnyApi] = MappingProxyType({api.number: api for api in _TABLE})
#: The coordinator's APIs by the type of the request.
COORDINATOR_APIS: Mapping[type[Request], CoordinatorApi[Any, Any]] = MappingProxyType(
    {api.request: api for api in APIS.values() if isinstance(api, CoordinatorApi)}
)
#: The APIs of the transaction coordinator by the type of the request.
TRANSACTION_APIS: Mapping[type[Request], TransactionApi[Any, Any]] = MappingProxyType(
    {api.request: api for api in APIS.values() if isinstance(api, TransactionApi)}
)
_APIS_BY_REQUEST: Mapping[type[Request], AnyApi] = MappingProxyType({api.request: api for api in APIS.values()})


def api_of(request: Request) -> AnyApi:
    """Returns the API of a request."""
    return _APIS_BY_REQUEST[type(request)]


#: Era → API → first version that its brokers serve, of APIs that they list with lower versions.
_SERVED_SINCE: Mapping[str, Mapping[AnyApi, int]] = MappingProxyType({"4": MappingProxyType({PRODUCE: 3})})


def served_versions(era: str) -> Mapping[int, range]:
    """Returns the versions of each API that a coordinator of the era serves, by API number; brokers close the connection of
    a client that sends another one."""
    since = {api.number: first for api, first in _SERVED_SINCE.get(era, {}).items()}
    offered = offered_versions(era)
    return MappingProxyType({number: range(max(each.start, since.get(number, 0)), each.stop) for number, each in offered.items()})


def offered_versions(era: str) -> Mapping[int, range]:
    """Returns the versions of each API that a coordinator of the era lists in ApiVersions, by API number."""
    return MappingProxyType({number: versions for number, api in APIS.items() if (versions := api.versions.offered(era))})
