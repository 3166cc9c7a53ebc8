"""Responses about the cluster: one node that leads every partition of every topic."""

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar
from uuid import UUID

from coordinator_core.codec.messages.offsets import ZERO_UUID
from coordinator_core.coordinator.find import find_coordinators
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
    PartitionMetadata,
    RequestedTopic,
    TopicMetadata,
)
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.groups import (
    CoordinatorType,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    Node,
)
from coordinator_core.protocol.internal_topics import OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC
from coordinator_core.service.topic_registry import TopicRegistry

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


class Cluster:
    """Cluster metadata, and the responses made from it.

    `node` has the advertised address, `topics` has all topics, `offered` the served versions of each API.
    `transaction_version` is the finalized level of the feature, 0 without transactions.
    """

    def __init__(
        self, node: Node, cluster_id: str, topics: TopicRegistry, offered: Mapping[int, range], transaction_version: int = 0
    ) -> None:
        self._node = node
        self._cluster_id = cluster_id
        self._broker = Broker(*node)
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

    def leader(self, kind: CoordinatorType, partition: int) -> Node | None:  # noqa: ARG002 - this node leads all of them
        """Return this node."""
        return self._node

    # ---- handlers of requests, by API

    def find_coordinator(self, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
        """Find the coordinators of groups and of transactional ids: this node."""
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
        return MetadataResponse((self._broker,), topics, self._cluster_id, self._node.node_id)

    def _topic(self, requested: RequestedTopic, operations: frozenset[int] | None) -> TopicMetadata:
        topic = self._topics.find(requested.name, requested.topic_id)
        if topic is None:
            if requested.topic_id != ZERO_UUID or requested.name is None:
                return TopicMetadata(None, error=ErrorCode.UNKNOWN_TOPIC_ID, topic_id=requested.topic_id)
            return TopicMetadata(requested.name, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        node = self._node.node_id
        epochs = [0] * topic.partitions if topic.data is None else [each.log.leader_epoch for each in topic.data.partitions]
        partitions = tuple(PartitionMetadata(number, node, epoch, (node,), (node,)) for number, epoch in enumerate(epochs))
        return TopicMetadata(
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
            ErrorCode.NONE, self._cluster_id, self._node.node_id, (self._broker,), authorized_operations=operations
        )


RequestT = TypeVar("RequestT", bound=NodeRequest)
ResponseT = TypeVar("ResponseT", bound=Response)


def _handler(
    api: Api[RequestT, ResponseT], handle: Callable[[Cluster, RequestT], ResponseT]
) -> tuple[type[NodeRequest], Callable[..., Response]]:
    """Return an entry of the table; the signature checks that the handler has the API's types."""
    return api.request, handle


#: Handlers by the type of the request.
HANDLERS = dict(
    (
        _handler(apis.METADATA, Cluster.metadata),
        _handler(apis.FIND_COORDINATOR, Cluster.find_coordinator),
        _handler(apis.API_VERSIONS, Cluster.api_versions),
        _handler(apis.DESCRIBE_CLUSTER, Cluster.describe_cluster),
    )
)
