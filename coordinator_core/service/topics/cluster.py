"""Responses about the cluster: its nodes, and the leader of every partition of every topic."""

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar
from uuid import UUID

from coordinator_core.codec.messages.offsets import ZERO_UUID
from coordinator_core.group_coordinator.find import NO_NODE, find_coordinators
from coordinator_core.protocol import apis
from coordinator_core.protocol.api import Api, NodeRequest, Response
from coordinator_core.protocol.cluster import (
    AclOperation,
    ApiVersionRange,
    ApiVersionsRequest,
    ApiVersionsResponse,
    Broker,
    DescribeClusterRequest,
    DescribeClusterResponse,
    FinalizedFeature,
    MetadataRequest,
    MetadataResponse,
    MetadataResponseTopic,
    PartitionMetadata,
    RequestedTopic,
)
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.groups import (
    CoordinatorType,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    Node,
)
from coordinator_core.protocol.internal_topics import OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from coordinator_core.service.topics.nodes import Nodes
from coordinator_core.service.topics.topic_registry import KnownTopic, TopicRegistry

#: Topic of each kind of coordinator that this node may have.
_TOPICS: Mapping[CoordinatorType, str] = {
    CoordinatorType.GROUP: OFFSETS_TOPIC,
    CoordinatorType.TRANSACTION: TRANSACTION_STATE_TOPIC,
}
_BROKERS = 1
#: `AclEntry.supportedOperations` of topics and of the cluster: without an authorizer, clients may do everything.
_TOPIC_OPERATIONS = frozenset(
    {
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.CREATE,
        AclOperation.DELETE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    }
)
_CLUSTER_OPERATIONS = frozenset(
    {
        AclOperation.CREATE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.CLUSTER_ACTION,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
        AclOperation.IDEMPOTENT_WRITE,
    }
)


class TransactionTopic(NamedTuple):
    """`__transaction_state`, and the finalized level of the feature `transaction.version`."""

    partitions: int
    topic_id: UUID
    version: int


class ClusterResponses:
    """Cluster metadata, and the responses made from it.

    `nodes` has the nodes, `topics` has all topics, `offered` the served versions of each API.
    `transaction_version` is the finalized level of the feature, 0 without transactions.
    """

    def __init__(
        self, nodes: Nodes, cluster_id: str, topics: TopicRegistry, offered: Mapping[int, range], transaction_version: int = 0
    ) -> None:
        self._nodes = nodes
        self._cluster_id = cluster_id
        self._topics = topics
        self.offered = offered
        self._features: tuple[FinalizedFeature, ...] = ()
        if transaction_version:
            self._features = (FinalizedFeature("transaction.version", transaction_version),)

    @property
    def topic_names(self) -> Mapping[UUID, str]:
        """Topic id → topic name."""
        return self._topics.names

    def answer(self, request: NodeRequest) -> Response:
        """Return the response."""
        return HANDLERS[type(request)](self, request)

    # ---- `Topology`

    def partitions(self, kind: CoordinatorType) -> int | None:
        """Return the number of partitions of the coordinator's topic; None for a coordinator that this node does not have."""
        name = _TOPICS.get(kind)
        topic = None if name is None else self._topics.find(name)
        return None if topic is None else topic.partitions

    def leader(self, kind: CoordinatorType, partition: int) -> Node | None:
        """Return the owner of the group coordinator's partition; each node coordinates transactions for its clients."""
        return self._nodes.owner(partition) if kind is CoordinatorType.GROUP else self._nodes.own

    def _brokers(self) -> tuple[Broker, ...]:
        return tuple(Broker(*node) for node in self._nodes.all())

    def _leader_of(self, topic: KnownTopic, partition: int) -> int:
        """Return the node id of a partition's leader, -1 for none."""
        if topic.name == OFFSETS_TOPIC:
            owner = self._nodes.owner(partition)
            return NO_NODE.node_id if owner is None else owner.node_id
        if topic.data is not None or topic.is_internal:
            return self._nodes.own.node_id
        # any node serves a topic without data; all nodes name the same one
        nodes = self._nodes.all()
        return nodes[partition % len(nodes)].node_id

    # ---- handlers of requests, by API

    def find_coordinator(self, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
        """Find the coordinators of groups and of transactional ids."""
        return find_coordinators(self, request)

    def api_versions(self, request: ApiVersionsRequest) -> ApiVersionsResponse:
        ranges = tuple(ApiVersionRange(api, versions.start, versions.stop - 1) for api, versions in self.offered.items())
        return ApiVersionsResponse(ErrorCode.NONE if request.valid else ErrorCode.INVALID_REQUEST, ranges, self._features)

    def metadata(self, request: MetadataRequest) -> MetadataResponse:
        requested = request.topics
        if requested is None:
            requested = tuple(RequestedTopic(topic.name) for topic in self._topics.topics())
        operations = _TOPIC_OPERATIONS if request.include_topic_operations else None
        topics = tuple(self._topic(topic, operations) for topic in requested)
        return MetadataResponse(self._brokers(), topics, self._cluster_id, self._nodes.own.node_id)

    def _topic(self, requested: RequestedTopic, operations: frozenset[int] | None) -> MetadataResponseTopic:
        topic = self._topics.find(requested.name, requested.topic_id)
        if topic is None:
            if requested.topic_id != ZERO_UUID or requested.name is None:
                return MetadataResponseTopic(None, error=ErrorCode.UNKNOWN_TOPIC_ID, topic_id=requested.topic_id)
            return MetadataResponseTopic(requested.name, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        epochs = [0] * topic.partitions if topic.data is None else [each.log.leader_epoch for each in topic.data.partitions]
        partitions = tuple(_partition(number, self._leader_of(topic, number), epoch) for number, epoch in enumerate(epochs))
        return MetadataResponseTopic(
            topic.name,
            partitions,
            topic_id=topic.topic_id,
            is_internal=topic.is_internal,
            authorized_operations=operations,
        )

    def describe_cluster(self, request: DescribeClusterRequest) -> DescribeClusterResponse:
        if request.endpoint_type != _BROKERS:
            message = f"endpoint type {request.endpoint_type} is not supported: use {_BROKERS} (brokers)"
            return DescribeClusterResponse(ErrorCode.INVALID_REQUEST, error_message=message)
        operations = _CLUSTER_OPERATIONS if request.include_operations else None
        return DescribeClusterResponse(
            ErrorCode.NONE, self._cluster_id, self._nodes.own.node_id, self._brokers(), authorized_operations=operations
        )


def _partition(number: int, leader: int, epoch: int) -> PartitionMetadata:
    if leader == NO_NODE.node_id:
        return PartitionMetadata(number, leader, epoch, error=ErrorCode.LEADER_NOT_AVAILABLE)
    return PartitionMetadata(number, leader, epoch, (leader,), (leader,))


RequestT = TypeVar("RequestT", bound=NodeRequest)
ResponseT = TypeVar("ResponseT", bound=Response)


def _handler(
    api: Api[RequestT, ResponseT], handle: Callable[[ClusterResponses, RequestT], ResponseT]
) -> tuple[type[NodeRequest], Callable[..., Response]]:
    """Return an entry of the table; the signature checks that the handler has the API's types."""
    return api.request, handle


#: Handlers by the type of the request.
HANDLERS = dict(
    (
        _handler(apis.METADATA, ClusterResponses.metadata),
        _handler(apis.FIND_COORDINATOR, ClusterResponses.find_coordinator),
        _handler(apis.API_VERSIONS, ClusterResponses.api_versions),
        _handler(apis.DESCRIBE_CLUSTER, ClusterResponses.describe_cluster),
    )
)
