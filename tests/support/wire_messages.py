"""Hypothesis strategies for the requests and responses of every supported API and version, with what that version can express."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, get_type_hints
from uuid import UUID

from hypothesis import strategies as st

from coordinator_core.codec.messages.offsets import ZERO_UUID
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.log.entries import ControlType
from coordinator_core.protocol import apis, cluster, topics
from coordinator_core.protocol.api import AnyApi
from coordinator_core.protocol.apis import APIS
from coordinator_core.protocol.configs import (
    ConfigEntry,
    ConfigSource,
    ConfigType,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
)
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.groups import (
    CoordinatorType,
    DescribedMember,
    DescribeGroupRequest,
    DescribeGroupResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    FoundCoordinator,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
    Node,
)
from coordinator_core.protocol.membership import (
    JoinGroupMember,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    LeavingMember,
    LeftMember,
    Protocol,
    SyncGroupRequest,
    SyncGroupResponse,
)
from coordinator_core.protocol.offsets import (
    FetchedOffset,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetToCommit,
    ProducerEpoch,
    TxnMarkerRequest,
    TxnOffsetCommitRequest,
)
from coordinator_core.protocol.transactions import (
    NO_PRODUCER,
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    DescribeTransactionRequest,
    DescribeTransactionResponse,
    EndTxnRequest,
    EndTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    ListedTransaction,
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from coordinator_core.wire import PartitionMarker
from coordinator_core.wire.log_codec import lowest_timestamp

#: Topics that have ids.
IDS: Mapping[str, UUID] = {f"t{number}": UUID(int=number + 7) for number in range(4)}
NAMES: Mapping[UUID, str] = {topic_id: name for name, topic_id in IDS.items()}

EVERY_VERSION: tuple[tuple[AnyApi, int], ...] = tuple((api, version) for api in APIS.values() for version in api.versions.all)
_OfVersion = Callable[[int], st.SearchStrategy[Any]]
CLIENT_ID, HOST = "client-1", "/127.0.0.1"

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_NULLABLE = st.none() | TEXTS
_BYTES = st.binary(max_size=20)
_INT8 = st.integers(-128, 127)
_INT16 = st.integers(-(1 << 15), (1 << 15) - 1)
_INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
_INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
_ERRORS = st.sampled_from(ErrorCode)
_OPERATIONS = st.none() | st.frozensets(st.integers(0, 14), max_size=4)
_ISOLATION = st.sampled_from(cluster.IsolationLevel)
_FILTERS = st.frozensets(TEXTS, max_size=3)


def _since(version: int, first: int, strategy: st.SearchStrategy[Any], before: Any) -> st.SearchStrategy[Any]:
    return strategy if version >= first else st.just(before)


def _tuples(strategy: st.SearchStrategy[Any], least: int = 0) -> st.SearchStrategy[Any]:
    return st.lists(strategy, min_size=least, max_size=3).map(tuple)


def _topics(by_id: bool) -> st.SearchStrategy[str]:
    return st.sampled_from(sorted(IDS)) if by_id else TEXTS


def _places(by_id: bool = False) -> st.SearchStrategy[TopicPartition]:
    return st.builds(TopicPartition, _topics(by_id), _INT32)


def _in_order(places: Any) -> tuple[TopicPartition, ...]:
    """Partitions in wire order: grouped by topic, each once."""
    by_topic: dict[str, list[TopicPartition]] = {}
    for place in dict.fromkeys(places):
        by_topic.setdefault(place.topic, []).append(place)
    return tuple(place for each in by_topic.values() for place in each)


def _at_places(values: st.SearchStrategy[Any], by_id: bool = False) -> st.SearchStrategy[Any]:
    return st.dictionaries(_places(by_id), values, max_size=4)


def _join(version: int) -> st.SearchStrategy[Any]:
    def with_v0_timeout(request: JoinGroupRequest) -> JoinGroupRequest:
        fields = {name: getattr(request, name) for name in JoinGroupRequest.__slots__}
        return JoinGroupRequest(**fields | {"rebalance_timeout_ms": request.session_timeout_ms})

    made = st.builds(
        JoinGroupRequest, TEXTS, TEXTS, TEXTS, _tuples(st.builds(Protocol, TEXTS, _BYTES)), _INT32, _INT32,
        _since(version, 5, _NULLABLE, None), st.just(CLIENT_ID), st.just(HOST), _since(version, 8, _NULLABLE, None),
        st.just(version >= 4), st.just(version >= 9),
    )  # fmt: skip
    return made if version >= 1 else made.map(with_v0_timeout)


def _joined(version: int) -> st.SearchStrategy[Any]:
    members = st.builds(JoinGroupMember, TEXTS, _since(version, 5, _NULLABLE, None), _BYTES)
    protocol = _NULLABLE if version >= 7 else TEXTS.map(lambda name: name or None)
    return st.builds(
        JoinGroupResponse, _ERRORS, TEXTS, _INT32, _since(version, 7, _NULLABLE, None), protocol, TEXTS,
        _since(version, 9, st.booleans(), False), _tuples(members),
    )  # fmt: skip


def _sync(version: int) -> st.SearchStrategy[Any]:
    name = _since(version, 5, _NULLABLE, None)
    assignments = st.dictionaries(TEXTS, _BYTES, max_size=3)
    instance = _since(version, 3, _NULLABLE, None)
    return st.builds(SyncGroupRequest, TEXTS, _INT32, TEXTS, instance, name, name, assignments, st.just(version >= 5))


def _leave(version: int) -> st.SearchStrategy[Any]:
    if version < 3:
        return st.builds(LeaveGroupRequest, TEXTS, st.tuples(st.builds(LeavingMember, TEXTS, st.none(), st.none())))
    return st.builds(
        LeaveGroupRequest, TEXTS, _tuples(st.builds(LeavingMember, TEXTS, _NULLABLE, _since(version, 5, _NULLABLE, None)))
    )


def _left(version: int) -> st.SearchStrategy[Any]:
    members = _tuples(st.builds(LeftMember, TEXTS, _NULLABLE, _ERRORS))
    return st.builds(LeaveGroupResponse, _ERRORS, _since(version, 3, members, ()))


def _commit(version: int) -> st.SearchStrategy[Any]:
    epoch, by_id = _since(version, 6, _INT32, -1), version >= 10
    timestamp = _INT64 if version == 1 else st.just(-1)
    plain = _at_places(st.builds(OffsetToCommit, _INT64, epoch, _NULLABLE, st.just(ZERO_UUID), timestamp), by_id)
    offsets = (
        plain.map(lambda each: {at: value._replace(topic_id=IDS[at.topic]) for at, value in each.items()}) if by_id else plain
    )
    return st.builds(
        OffsetCommitRequest, TEXTS, offsets, _since(version, 1, TEXTS, ""), _since(version, 1, _INT32, -1),
        _since(version, 7, _NULLABLE, None), _INT64 if version in range(2, 5) else st.just(-1), st.just(version >= 9),
        st.just(version == 0),
    )  # fmt: skip


def _txn_commit(version: int) -> st.SearchStrategy[Any]:
    offset = st.builds(OffsetToCommit, _INT64, _since(version, 2, _INT32, -1), _NULLABLE, st.just(ZERO_UUID), st.just(-1))
    offsets = _at_places(offset)
    return st.builds(
        TxnOffsetCommitRequest, TEXTS, TEXTS, st.builds(ProducerEpoch, _INT64, _INT16), offsets,
        _since(version, 3, TEXTS, ""), _since(version, 3, _INT32, -1), _since(version, 3, _NULLABLE, None),
        st.just(version >= 4), st.just(version >= 5),
    )  # fmt: skip


def _fetch_parts(version: int) -> st.SearchStrategy[Any]:
    by_id = version >= 10

    def ids(places: Any) -> Any:
        if not by_id:
            return None
        return dict(IDS) if places is None else {at.topic: IDS[at.topic] for at in places}

    def parts(groups: Any, stable: bool) -> Any:
        return tuple(OffsetFetchRequest(group, places, stable, ids(places), version == 0) for group, places in groups)

    named = st.lists(_places(by_id), max_size=4).map(_in_order)
    group = st.tuples(TEXTS, named if version < 2 else st.none() | named)
    groups = st.lists(group, min_size=0 if version >= 8 else 1, max_size=3 if version >= 8 else 1)
    return st.builds(parts, groups, _since(version, 7, st.booleans(), False))


def _fetched(version: int) -> st.SearchStrategy[Any]:
    epoch = _since(version, 5, _INT32, -1)
    offsets = _at_places(st.builds(FetchedOffset, _INT64, epoch, TEXTS, _ERRORS), version >= 10)
    return st.builds(OffsetFetchResponse, _since(version, 2, _ERRORS, ErrorCode.NONE), offsets)


def _markers(version: int) -> st.SearchStrategy[Any]:
    producer, kind = st.builds(ProducerEpoch, _INT64, _INT16), st.sampled_from(ControlType)
    marker = st.builds(TxnMarkerRequest, producer, kind, _INT32, _since(version, 2, _INT8, 0))
    places = st.lists(_places(), min_size=1, max_size=3).map(_in_order)
    return st.dictionaries(marker, places, max_size=3).map(
        lambda each: tuple(PartitionMarker(*place, marker) for marker, places in each.items() for place in places)
    )


def _find(version: int) -> st.SearchStrategy[Any]:
    kinds = _since(version, 1, st.sampled_from(CoordinatorType), CoordinatorType.GROUP)
    return st.builds(FindCoordinatorRequest, _tuples(TEXTS) if version >= 4 else st.tuples(TEXTS), kinds)


def _found(version: int) -> st.SearchStrategy[Any]:
    found = st.builds(FoundCoordinator, _since(version, 4, TEXTS, ""), _ERRORS, st.builds(Node, _INT32, TEXTS, _INT32))
    return st.builds(FindCoordinatorResponse, _tuples(found) if version >= 4 else st.tuples(found))


def _described(version: int) -> st.SearchStrategy[Any]:
    members = st.builds(DescribedMember, TEXTS, _since(version, 4, _NULLABLE, None), TEXTS, TEXTS, _BYTES, _BYTES)
    return st.builds(
        DescribeGroupResponse, _ERRORS, TEXTS, TEXTS, TEXTS, TEXTS, _tuples(members), _since(version, 6, _NULLABLE, None)
    )


def _listed(version: int) -> st.SearchStrategy[Any]:
    group = st.builds(ListedGroup, TEXTS, TEXTS, _since(version, 4, TEXTS, ""), _since(version, 5, TEXTS, ""))
    return st.builds(ListGroupsResponse, _ERRORS, _tuples(group))


def _metadata(version: int) -> st.SearchStrategy[Any]:
    topic_ids = _since(version, 10, st.uuids() | st.just(ZERO_UUID), ZERO_UUID)
    named = _tuples(st.builds(cluster.RequestedTopic, TEXTS if version < 12 else _NULLABLE, topic_ids), least=version == 0)
    return st.builds(
        cluster.MetadataRequest,
        st.none() | named,
        _since(version, 4, st.booleans(), True),
        _since(version, 8, st.booleans(), False),
    )


def _metadata_told(version: int) -> st.SearchStrategy[Any]:
    numbers = _tuples(_INT32)
    partitions = st.builds(cluster.PartitionMetadata, _INT32, _INT32, _since(version, 7, _INT32, -1), numbers, numbers, _ERRORS)
    topic_ids = _since(version, 10, st.uuids(), ZERO_UUID)
    internal = _since(version, 1, st.booleans(), False)
    described = st.builds(
        cluster.MetadataResponseTopic, _NULLABLE if version >= 12 else TEXTS, _tuples(partitions), _ERRORS, topic_ids, internal,
        _since(version, 8, _OPERATIONS, None),
    )  # fmt: skip
    return st.builds(
        cluster.MetadataResponse, _tuples(_brokers(version >= 1)), _tuples(described), _since(version, 2, _NULLABLE, None),
        _since(version, 1, _INT32, -1), _since(version, 13, _ERRORS, ErrorCode.NONE),
    )  # fmt: skip


def _brokers(with_racks: bool) -> st.SearchStrategy[Any]:
    return st.builds(cluster.Broker, _INT32, TEXTS, _INT32, _NULLABLE if with_racks else st.none())


def _cluster_told(version: int) -> st.SearchStrategy[Any]:
    return st.builds(
        cluster.DescribeClusterResponse, _ERRORS, TEXTS, _INT32, _tuples(_brokers(True)), _NULLABLE,
        _since(version, 1, st.integers(-128, 127), 1), _OPERATIONS,
    )  # fmt: skip


def _listed_offsets(version: int) -> st.SearchStrategy[Any]:
    listed = st.builds(cluster.ListedOffset, _ERRORS, _INT64, _INT64, _since(version, 4, _INT32, -1))
    return st.builds(cluster.ListOffsetsResponse, _at_places(listed))


def _fetch_places(version: int, kind: Any, *fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    def in_order(each: Any) -> Any:
        order = list(dict.fromkeys(part[0] for part in each))
        return tuple(sorted(each, key=lambda part: order.index(part[0])))

    def make(topic: str, *rest: Any) -> Any:
        return kind(topic, IDS[topic] if version >= 13 else ZERO_UUID, *rest)

    return _tuples(st.builds(make, _topics(version >= 13), _INT32, *fields)).map(in_order)


def _records_wanted(version: int) -> st.SearchStrategy[Any]:
    return st.builds(
        cluster.FetchRequest,
        _fetch_places(version, cluster.FetchPartition, _INT64, _INT32, _since(version, 9, _INT32, -1)), _INT32, _INT32,
        _since(version, 7, _INT32, 0), _since(version, 7, _INT32, -1), _since(version, 3, _INT32, (1 << 31) - 1),
        _since(version, 4, _ISOLATION, cluster.IsolationLevel.READ_UNCOMMITTED),
        _since(version, 7, _fetch_places(version, cluster.ForgottenPartition), ()), st.just(version >= 13),
    )  # fmt: skip


def _records_told(version: int) -> st.SearchStrategy[Any]:
    start = _since(version, 5, _INT64, -1)
    aborted = st.none() | _tuples(st.builds(cluster.AbortedFetch, _INT64, _INT64))
    return st.builds(
        cluster.FetchResponse,
        _fetch_places(
            version, cluster.FetchedPartition, _ERRORS, _INT64, start, _since(version, 4, _INT64, -1),
            _since(version, 4, aborted, None), _BYTES,
        ),
        _since(version, 7, _ERRORS, ErrorCode.NONE), _since(version, 7, _INT32, 0),
    )  # fmt: skip


def _produced(version: int) -> st.SearchStrategy[Any]:
    message = _since(version, 8, _NULLABLE, None)
    offsets = _INT64, _since(version, 2, _INT64, -1), _since(version, 5, _INT64, -1)
    return st.builds(cluster.ProduceResponse, _fetch_places(version, cluster.ProducedPartition, _ERRORS, message, *offsets))


def _produce(version: int) -> st.SearchStrategy[Any]:
    return st.builds(
        cluster.ProduceRequest, _fetch_places(version, cluster.ProducePartition, st.none() | _BYTES), _INT16,
        _since(version, 3, _NULLABLE, None), st.just(version >= 11), st.just(version >= 12),
        st.just(version >= 7),
    )  # fmt: skip


def _list_offsets(version: int) -> st.SearchStrategy[Any]:
    def make(timestamps: Any, isolation: Any, epochs: Any) -> Any:
        known = {at: epoch for at, epoch in zip(timestamps, epochs, strict=False) if epoch != -1}
        return cluster.ListOffsetsRequest(timestamps, lowest_timestamp(version), isolation, known)

    isolation = _since(version, 2, _ISOLATION, cluster.IsolationLevel.READ_UNCOMMITTED)
    return st.builds(make, _at_places(_INT64), isolation, _since(version, 4, st.lists(_INT32, max_size=3), []))


def _create_topics(version: int) -> st.SearchStrategy[Any]:
    assignments = _tuples(st.tuples(_INT32, _tuples(_INT32)))
    new = st.builds(topics.NewTopic, TEXTS, _INT32, _INT16, assignments, _tuples(st.tuples(TEXTS, _NULLABLE)))
    return st.builds(topics.CreateTopicsRequest, _tuples(new), _since(version, 1, st.booleans(), False))


def _created_topics(version: int) -> st.SearchStrategy[Any]:
    entries = _tuples(
        st.builds(ConfigEntry, TEXTS, _NULLABLE, st.sampled_from(ConfigSource), st.just(ConfigType.UNKNOWN), st.booleans())
    )
    created = st.builds(
        topics.CreatedTopic, TEXTS, _ERRORS, _since(version, 1, _NULLABLE, None), _since(version, 7, st.uuids(), ZERO_UUID),
        _since(version, 5, _INT32, -1), _since(version, 5, _INT16, -1), _since(version, 5, entries, ()),
    )  # fmt: skip
    return st.builds(topics.CreateTopicsResponse, _tuples(created))


def _deleted_topics(version: int) -> st.SearchStrategy[Any]:
    deleted = st.builds(
        topics.DeletedTopic, _NULLABLE if version >= 6 else TEXTS, _since(version, 6, st.uuids(), ZERO_UUID), _ERRORS,
        _since(version, 5, _NULLABLE, None),
    )  # fmt: skip
    return st.builds(topics.DeleteTopicsResponse, _tuples(deleted))


def _delete_topics(version: int) -> st.SearchStrategy[Any]:
    topic = st.builds(topics.DeletableTopic, _NULLABLE if version >= 6 else TEXTS, _since(version, 6, st.uuids(), ZERO_UUID))
    return st.builds(topics.DeleteTopicsRequest, _tuples(topic))


def _create_partitions(_version: int) -> st.SearchStrategy[Any]:
    new = st.builds(topics.NewPartitions, TEXTS, _INT32, st.none() | _tuples(_tuples(_INT32)))
    return st.builds(topics.CreatePartitionsRequest, _tuples(new), st.booleans())


def _alter_configs(_version: int) -> st.SearchStrategy[Any]:
    changes = _tuples(st.builds(topics.ConfigChange, TEXTS, _INT8, _NULLABLE))

    def same(parts: Any, validate_only: bool) -> Any:
        return tuple(replace(part, validate_only=validate_only) for part in parts)

    return st.builds(same, _tuples(st.builds(topics.AlterConfigsRequest, _INT8, TEXTS, changes)), st.booleans())


def _producers(_version: int) -> st.SearchStrategy[Any]:
    producer = st.builds(topics.ActiveProducer, _INT64, _INT32, _INT32, _INT64, _INT32, _INT64)
    return st.builds(
        topics.DescribeProducersResponse,
        _at_places(st.builds(topics.DescribedProducers, _ERRORS, _tuples(producer), _NULLABLE)),
    )


def _log_dirs(version: int) -> st.SearchStrategy[Any]:
    space = _since(version, 4, _INT64, -1)
    return st.builds(topics.DescribeLogDirsResponse, _ERRORS, TEXTS, _at_places(_INT64), space, space)


def _versions_asked(version: int) -> st.SearchStrategy[Any]:
    name = TEXTS if version >= 3 else st.none()
    return st.builds(cluster.ApiVersionsRequest, name, name)


def _versions_told(_version: int) -> st.SearchStrategy[Any]:
    ranges = _tuples(st.builds(cluster.ApiVersionRange, _INT16, _INT16, _INT16))
    return st.builds(cluster.ApiVersionsResponse, st.just(ErrorCode.NONE), ranges)


_PRODUCER = st.builds(ProducerEpoch, _INT64, _INT16)


def _txn_partitions() -> st.SearchStrategy[Any]:
    return st.lists(_places(), max_size=3).map(_in_order)


def _add_to_txn(version: int) -> st.SearchStrategy[Any]:
    if version < 4:
        one = st.builds(
            AddPartitionsToTxnRequest, TEXTS, _PRODUCER, _txn_partitions(), knows_producer_fenced=st.just(version >= 2)
        )
        return st.tuples(one)
    return _tuples(
        st.builds(AddPartitionsToTxnRequest, TEXTS, _PRODUCER, _txn_partitions(), st.booleans(), from_broker=st.just(True))
    )


def _added_to_txn(version: int) -> st.SearchStrategy[Any]:
    return st.builds(AddPartitionsToTxnResponse, TEXTS if version >= 4 else st.none(), _at_places(_ERRORS))


#: API → strategy of one request, or of all parts of a frame, by version.
_ONE_REQUEST: Mapping[AnyApi, _OfVersion] = {
    apis.JOIN_GROUP: _join,
    apis.SYNC_GROUP: _sync,
    apis.LEAVE_GROUP: _leave,
    apis.OFFSET_COMMIT: _commit,
    apis.TXN_OFFSET_COMMIT: _txn_commit,
    apis.OFFSET_DELETE: lambda _: st.builds(OffsetDeleteRequest, TEXTS, st.lists(_places(), max_size=4).map(_in_order)),
    apis.LIST_GROUPS: lambda version: st.builds(
        ListGroupsRequest, _since(version, 4, _FILTERS, frozenset()), _since(version, 5, _FILTERS, frozenset())
    ),
    apis.FIND_COORDINATOR: _find,
    apis.API_VERSIONS: _versions_asked,
    apis.METADATA: _metadata,
    apis.DESCRIBE_CLUSTER: lambda version: st.builds(
        cluster.DescribeClusterRequest, _since(version, 1, st.integers(-128, 127), 1), st.booleans()
    ),
    apis.LIST_OFFSETS: _list_offsets,
    apis.CREATE_TOPICS: _create_topics,
    apis.DELETE_TOPICS: _delete_topics,
    apis.CREATE_PARTITIONS: _create_partitions,
    apis.DELETE_RECORDS: lambda _: st.builds(topics.DeleteRecordsRequest, _at_places(_INT64)),
    apis.OFFSET_FOR_LEADER_EPOCH: lambda version: st.builds(
        topics.OffsetForLeaderEpochRequest, _at_places(st.builds(topics.RequestedEpoch, _INT32, _since(version, 2, _INT32, -1)))
    ),
    apis.DESCRIBE_PRODUCERS: lambda _: st.builds(topics.DescribeProducersRequest, st.lists(_places(), max_size=4).map(_in_order)),
    apis.DESCRIBE_LOG_DIRS: lambda _: st.builds(
        topics.DescribeLogDirsRequest, st.none() | st.dictionaries(TEXTS, _tuples(_INT32), max_size=3)
    ),
    apis.FETCH: _records_wanted,
    apis.PRODUCE: _produce,
    apis.INIT_PRODUCER_ID: lambda version: st.builds(
        InitProducerIdRequest, _NULLABLE, _INT32, _since(version, 3, _PRODUCER, NO_PRODUCER),
        knows_producer_fenced=st.just(version >= 4),
    ),
    apis.ADD_OFFSETS_TO_TXN: lambda version: st.builds(AddOffsetsToTxnRequest, TEXTS, _PRODUCER, TEXTS, st.just(version >= 2)),
    apis.END_TXN: lambda version: st.builds(
        EndTxnRequest, TEXTS, _PRODUCER, st.booleans(), st.just(version >= 5), st.just(version >= 2)
    ),
    apis.LIST_TRANSACTIONS: lambda version: st.builds(
        ListTransactionsRequest, _FILTERS, st.frozensets(_INT64, max_size=3), _since(version, 1, _INT64, -1),
        _since(version, 2, _NULLABLE, None),
    ),
}  # fmt: skip
#: APIs whose requests have a part per group.
_ONE_PART_PER_GROUP = frozenset({apis.DELETE_GROUPS, apis.CONSUMER_GROUP_DESCRIBE})
_MANY_REQUESTS: Mapping[AnyApi, _OfVersion] = {
    apis.DESCRIBE_CONFIGS: lambda _: _tuples(st.builds(DescribeConfigsRequest, _INT8, TEXTS, st.none() | _tuples(TEXTS))),
    apis.INCREMENTAL_ALTER_CONFIGS: _alter_configs,
    apis.OFFSET_FETCH: _fetch_parts,
    apis.WRITE_TXN_MARKERS: _markers,
    apis.ADD_PARTITIONS_TO_TXN: _add_to_txn,
    apis.DESCRIBE_TRANSACTIONS: lambda _: _tuples(st.builds(DescribeTransactionRequest, TEXTS)),
    apis.DESCRIBE_GROUPS: lambda version: _tuples(
        st.builds(DescribeGroupRequest, TEXTS, st.just(apis.DESCRIBE_GROUPS.has_field(version, "missing_is_error")))
    ),
}


def _configs(version: int) -> st.SearchStrategy[Any]:
    kind = _since(version, 3, st.sampled_from(ConfigType), ConfigType.UNKNOWN)
    sources = ConfigSource if version >= 1 else (ConfigSource.TOPIC_CONFIG, ConfigSource.DEFAULT_CONFIG)
    entries = _tuples(st.builds(ConfigEntry, TEXTS, _NULLABLE, st.sampled_from(sources), kind, st.booleans()))
    return st.builds(DescribeConfigsResponse, _ERRORS, _INT8, TEXTS, entries, _NULLABLE)


_RESPONSES: Mapping[AnyApi, _OfVersion] = {
    apis.JOIN_GROUP: _joined,
    apis.SYNC_GROUP: lambda version: st.builds(
        SyncGroupResponse, _ERRORS, _since(version, 5, _NULLABLE, None), _since(version, 5, _NULLABLE, None), _BYTES
    ),
    apis.LEAVE_GROUP: _left,
    apis.OFFSET_COMMIT: lambda version: st.builds(OffsetCommitResponse, _at_places(_ERRORS, version >= 10)),
    apis.TXN_OFFSET_COMMIT: lambda _: st.builds(OffsetCommitResponse, _at_places(_ERRORS)),
    apis.OFFSET_FETCH: _fetched,
    apis.OFFSET_DELETE: lambda _: st.builds(OffsetDeleteResponse, _ERRORS, _at_places(_ERRORS)),
    apis.DESCRIBE_GROUPS: _described,
    apis.LIST_GROUPS: _listed,
    apis.FIND_COORDINATOR: _found,
    apis.DESCRIBE_CONFIGS: _configs,
    apis.API_VERSIONS: _versions_told,
    apis.METADATA: _metadata_told,
    apis.DESCRIBE_CLUSTER: _cluster_told,
    apis.LIST_OFFSETS: _listed_offsets,
    apis.FETCH: _records_told,
    apis.PRODUCE: _produced,
    apis.CREATE_TOPICS: _created_topics,
    apis.DELETE_TOPICS: _deleted_topics,
    apis.CREATE_PARTITIONS: lambda _: st.builds(
        topics.CreatePartitionsResponse, _tuples(st.builds(topics.CreatedPartitions, TEXTS, _ERRORS, _NULLABLE))
    ),
    apis.DELETE_RECORDS: lambda _: st.builds(
        topics.DeleteRecordsResponse, _at_places(st.builds(topics.DeletedRecords, _ERRORS, _INT64))
    ),
    apis.OFFSET_FOR_LEADER_EPOCH: lambda version: st.builds(
        topics.OffsetForLeaderEpochResponse,
        _at_places(st.builds(topics.EpochEnd, _ERRORS, _since(version, 1, _INT32, -1), _INT64)),
    ),
    apis.DESCRIBE_PRODUCERS: _producers,
    apis.DESCRIBE_LOG_DIRS: _log_dirs,
    apis.INCREMENTAL_ALTER_CONFIGS: lambda _: st.builds(topics.AlterConfigsResponse, _ERRORS, _INT8, TEXTS, _NULLABLE),
    apis.INIT_PRODUCER_ID: lambda _: st.builds(InitProducerIdResponse, _ERRORS, _PRODUCER),
    apis.ADD_PARTITIONS_TO_TXN: _added_to_txn,
    apis.END_TXN: lambda version: st.builds(EndTxnResponse, _ERRORS, _since(version, 5, _PRODUCER, NO_PRODUCER)),
    apis.DESCRIBE_TRANSACTIONS: lambda _: st.builds(
        DescribeTransactionResponse, _ERRORS, TEXTS, TEXTS, _INT32, _INT64, _PRODUCER, st.frozensets(_places(), max_size=3)
    ),
    apis.LIST_TRANSACTIONS: lambda _: st.builds(
        ListTransactionsResponse, _ERRORS, _tuples(TEXTS), _tuples(st.builds(ListedTransaction, TEXTS, _INT64, TEXTS))
    ),
}


#: Strategies of fields whose types have one.
_OF_TYPE: Mapping[Any, st.SearchStrategy[Any]] = {
    str: TEXTS,
    str | None: _NULLABLE,
    int: _INT32,
    bool: st.booleans(),
    bytes: _BYTES,
    ErrorCode: _ERRORS,
}


def _from_fields(api: AnyApi, message: type, version: int) -> st.SearchStrategy[Any]:
    """A message whose fields have types of `_OF_TYPE`; a field that the version lacks has its default."""
    fields = {}
    for name, kind in get_type_hints(message).items():
        if version >= api.first_versions.get(name, 0):
            fields[name] = _OF_TYPE[kind]
    return st.builds(message, **fields)


def request_parts(api: AnyApi, version: int) -> st.SearchStrategy[Any]:
    """The parts of one request."""
    if api in _MANY_REQUESTS:
        return _MANY_REQUESTS[api](version)
    if api in _ONE_REQUEST:
        return st.tuples(_ONE_REQUEST[api](version))
    one = _from_fields(api, api.request, version)
    return _tuples(one) if api in _ONE_PART_PER_GROUP else st.tuples(one)


def responses(api: AnyApi, version: int) -> st.SearchStrategy[Any]:
    """The response to one part."""
    return _RESPONSES[api](version) if api in _RESPONSES else _from_fields(api, api.response, version)
