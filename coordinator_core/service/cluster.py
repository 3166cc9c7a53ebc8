"""Responses about the cluster: one node that leads every partition, topics without data, and the coordinators' topics.

The topics of the configuration exist so that members can be assigned partitions. A consumer may list and fetch their offsets.
A fetch at any offset finds an empty partition that ends at this offset, so that committed offsets are never out of range.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar
from uuid import UUID, uuid5

from coordinator_core.codec.messages.offsets import ZERO_UUID
from coordinator_core.coordinator.config import CoordinatorConfig
from coordinator_core.coordinator.find import find_coordinators
from coordinator_core.coordinator.group_configs import describe_configs
from coordinator_core.protocol import apis
from coordinator_core.protocol.api import Api, NodeRequest, Response
from coordinator_core.protocol.cluster import (
    ApiVersionRange,
    ApiVersionsRequest,
    ApiVersionsResponse,
    Broker,
    DescribeClusterRequest,
    DescribeClusterResponse,
    FetchedPartition,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FinalizedFeature,
    ListedOffset,
    ListOffsetsPosition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    MetadataRequest,
    MetadataResponse,
    PartitionMetadata,
    ProducedPartition,
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
    RequestedTopic,
    TopicMetadata,
)
from coordinator_core.protocol.configs import DescribeConfigsRequest, DescribeConfigsResponse
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.groups import (
    CoordinatorType,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    Node,
)
from coordinator_core.protocol.internal_topics import INTERNAL_TOPICS, OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC

#: Topic of each kind of coordinator that this node may have.
_TOPICS: Mapping[CoordinatorType, str] = {
    CoordinatorType.GROUP: OFFSETS_TOPIC,
    CoordinatorType.TRANSACTION: TRANSACTION_STATE_TOPIC,
}
#: `FetchRequest.INVALID_SESSION_ID`: fetch sessions are not supported.
_NO_SESSION = 0
_BROKERS = 1
#: Positions with an offset in an empty partition; for any other position it has no record.
_AT_THE_ENDS = frozenset({ListOffsetsPosition.LATEST, ListOffsetsPosition.EARLIEST, ListOffsetsPosition.EARLIEST_LOCAL})
#: Error message of Produce v8+, which producers report.
_NO_DATA = "The topics of this coordinator hold no data: they exist so that consumers can be assigned partitions."
_ACKS = frozenset({-1, 0, 1})
_TOPIC_IDS = UUID("6f9a1c5e-53d8-4c9b-9a3e-2f6f0a7c3b11")


class TransactionTopic(NamedTuple):
    """`__transaction_state`, and the finalized level of the feature `transaction.version`."""

    partitions: int
    topic_id: UUID
    version: int


class Cluster:
    """Cluster metadata, and the responses made from it.

    `node` has the advertised address, `topics` are those of the configuration; `partitions` and `offsets_topic_id` belong to
    `__consumer_offsets`. `offered` has the served versions of each API, `config` the settings of groups. `transactions` is None
    in eras without transactions.
    """

    def __init__(
        self,
        node: Node,
        cluster_id: str,
        topics: Mapping[str, int],
        partitions: int,
        offsets_topic_id: UUID,
        offered: Mapping[int, range],
        config: CoordinatorConfig,
        transactions: TransactionTopic | None = None,
    ) -> None:
        self._config = config
        self._node = node
        self._cluster_id = cluster_id
        self._broker = Broker(*node)
        self._declared = topics
        self.offered = offered
        self._partitions = {**topics, OFFSETS_TOPIC: partitions}
        self._ids = {name: uuid5(_TOPIC_IDS, f"{cluster_id}/{name}") for name in topics} | {OFFSETS_TOPIC: offsets_topic_id}
        self._features: tuple[FinalizedFeature, ...] = ()
        if transactions is not None:
            self._partitions[TRANSACTION_STATE_TOPIC] = transactions.partitions
            self._ids[TRANSACTION_STATE_TOPIC] = transactions.topic_id
            if transactions.version:
                self._features = (FinalizedFeature("transaction.version", transactions.version),)
        #: Topic id → topic name.
        self.topic_names: Mapping[UUID, str] = {topic_id: name for name, topic_id in self._ids.items()}

    def answer(self, request: NodeRequest) -> Response:
        """Return the response; it depends only on the configuration."""
        return HANDLERS[type(request)](self, request)

    # ---- `Topology`

    def partitions(self, kind: CoordinatorType) -> int | None:
        """Return the number of partitions of the coordinator's topic; None for a coordinator that this node does not have."""
        topic = _TOPICS.get(kind)
        return None if topic is None else self._partitions.get(topic)

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
            requested = tuple(RequestedTopic(name) for name in self._partitions)
        topics = tuple(self._topic(topic) for topic in requested)
        return MetadataResponse((self._broker,), topics, self._cluster_id, self._node.node_id)

    def _topic(self, requested: RequestedTopic) -> TopicMetadata:
        name = requested.name if requested.topic_id == ZERO_UUID else self.topic_names.get(requested.topic_id)
        if name is None:
            return TopicMetadata(None, error=ErrorCode.UNKNOWN_TOPIC_ID, topic_id=requested.topic_id)
        if name not in self._partitions:
            return TopicMetadata(name, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        node = self._node.node_id
        partitions = tuple(PartitionMetadata(number, node, 0, (node,), (node,)) for number in range(self._partitions[name]))
        return TopicMetadata(name, partitions, topic_id=self._ids[name], is_internal=name in INTERNAL_TOPICS)

    def describe_cluster(self, request: DescribeClusterRequest) -> DescribeClusterResponse:
        if request.endpoint_type != _BROKERS:
            message = f"endpoint type {request.endpoint_type} is not supported: use {_BROKERS} (brokers)"
            return DescribeClusterResponse(ErrorCode.INVALID_REQUEST, error_message=message)
        return DescribeClusterResponse(ErrorCode.NONE, self._cluster_id, self._node.node_id, (self._broker,))

    def describe_configs(self, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
        """Describe the settings that apply to groups."""
        return describe_configs(self._config, request)

    def list_offsets(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        return ListOffsetsResponse(
            {key: self._listed_offset(request, *key, timestamp) for key, timestamp in request.timestamps.items()}
        )

    def _listed_offset(self, request: ListOffsetsRequest, topic: str, partition: int, timestamp: int) -> ListedOffset:
        """Answer for an empty partition: it has no record with a timestamp, and no tiered segment."""
        if timestamp < request.lowest_timestamp:
            return ListedOffset(ErrorCode.UNSUPPORTED_VERSION)
        if not self._has(topic, partition):
            return ListedOffset(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if timestamp in _AT_THE_ENDS:
            return ListedOffset(ErrorCode.NONE, 0, leader_epoch=0)
        return ListedOffset(ErrorCode.NONE)

    def fetch(self, request: FetchRequest) -> FetchResponse:
        if request.session_id != _NO_SESSION:
            return FetchResponse((), ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        return FetchResponse(tuple(self._fetched_partition(requested) for requested in request.partitions))

    def _fetched_partition(self, requested: FetchPartition) -> FetchedPartition:
        topic, topic_id, partition = requested.topic, requested.topic_id, requested.partition
        name = topic or self.topic_names.get(topic_id)
        if name is None:
            return FetchedPartition(topic, topic_id, partition, ErrorCode.UNKNOWN_TOPIC_ID)
        if not self._has(name, partition):
            return FetchedPartition(topic, topic_id, partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return FetchedPartition(topic, topic_id, partition, ErrorCode.NONE, max(requested.offset, 0), 0)

    def produce(self, request: ProduceRequest) -> ProduceResponse:
        return ProduceResponse(tuple(self._produce_error(requested, request.acks) for requested in request.partitions))

    def _produce_error(self, requested: ProducePartition, acks: int) -> ProducedPartition:
        """Return INVALID_TOPIC_EXCEPTION, the brokers' error for internal topics: producers do not retry it."""
        name = requested.topic or self.topic_names.get(requested.topic_id)
        if acks not in _ACKS:
            return ProducedPartition(*requested, ErrorCode.INVALID_REQUIRED_ACKS)
        if name is None:
            return ProducedPartition(*requested, ErrorCode.UNKNOWN_TOPIC_ID)
        if name in INTERNAL_TOPICS or self._has(name, requested.partition):
            return ProducedPartition(*requested, ErrorCode.INVALID_TOPIC_EXCEPTION, _NO_DATA)
        return ProducedPartition(*requested, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def has_partition(self, topic: str, partition: int) -> bool:
        """Whether this node has the partition, internal topics included."""
        return 0 <= partition < self._partitions.get(topic, 0)

    def _has(self, topic: str, partition: int) -> bool:
        return 0 <= partition < self._declared.get(topic, 0)


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
        _handler(apis.PRODUCE, Cluster.produce),
        _handler(apis.FETCH, Cluster.fetch),
        _handler(apis.LIST_OFFSETS, Cluster.list_offsets),
        _handler(apis.METADATA, Cluster.metadata),
        _handler(apis.FIND_COORDINATOR, Cluster.find_coordinator),
        _handler(apis.API_VERSIONS, Cluster.api_versions),
        _handler(apis.DESCRIBE_CONFIGS, Cluster.describe_configs),
        _handler(apis.DESCRIBE_CLUSTER, Cluster.describe_cluster),
    )
)
