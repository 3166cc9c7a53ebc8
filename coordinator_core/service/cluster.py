"""What clients ask about the cluster: one node that leads everything, its topics without data, and the coordinators' own topic.

The topics of the configuration are there so that members can be assigned something. A consumer may list and fetch their offsets:
each partition ends wherever it is asked, with nothing in it, so that committed positions are never out of range.
"""

from collections.abc import Mapping
from typing import assert_never
from uuid import UUID, uuid5

from coordinator_core.codec.messages.offsets import ZERO_UUID
from coordinator_core.coordinator.errors import ErrorCode
from coordinator_core.coordinator.find import find_coordinators
from coordinator_core.coordinator.messages.groups import (
    CoordinatorType,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    Node,
)
from coordinator_core.wire.cluster_messages import (
    ApiVersionRange,
    ApiVersionsRequest,
    ApiVersionsResponse,
    Broker,
    ClusterRequest,
    ClusterResponse,
    DescribeClusterRequest,
    DescribeClusterResponse,
    FetchedPartition,
    FetchPartition,
    FetchRequest,
    FetchResponse,
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

#: `Topic.GROUP_METADATA_TOPIC_NAME`.
OFFSETS_TOPIC = "__consumer_offsets"
#: `FetchRequest.INVALID_SESSION_ID`: no session is kept, and none is offered.
_NO_SESSION = 0
_BROKERS = 1
#: Positions that an empty partition has; it has no record for any other.
_AT_THE_ENDS = frozenset({ListOffsetsPosition.LATEST, ListOffsetsPosition.EARLIEST, ListOffsetsPosition.EARLIEST_LOCAL})
#: What producers of Produce v8+ report.
_NO_DATA = "The topics of this coordinator hold no data: they exist so that consumers can be assigned partitions."
_ACKS = frozenset({-1, 0, 1})
_TOPIC_IDS = UUID("6f9a1c5e-53d8-4c9b-9a3e-2f6f0a7c3b11")


class Cluster:
    """`node` as clients are to reach it, `topics` as configured; `partitions` and `offsets_topic_id` are of the
    coordinators' topic. `offered` are the versions of each API that are served."""

    def __init__(
        self,
        node: Node,
        cluster_id: str,
        topics: Mapping[str, int],
        partitions: int,
        offsets_topic_id: UUID,
        offered: Mapping[int, range],
    ) -> None:
        self._node = node
        self._cluster_id = cluster_id
        self._broker = Broker(*node)
        self._declared = topics
        self.offered = offered
        self._partitions = {**topics, OFFSETS_TOPIC: partitions}
        self._ids = {name: uuid5(_TOPIC_IDS, f"{cluster_id}/{name}") for name in topics} | {OFFSETS_TOPIC: offsets_topic_id}
        #: Names of topic ids.
        self.topic_names: Mapping[UUID, str] = {topic_id: name for name, topic_id in self._ids.items()}

    def answer(self, request: ClusterRequest | FindCoordinatorRequest) -> ClusterResponse | FindCoordinatorResponse:
        """Everything here is known at once."""
        match request:
            case MetadataRequest():
                return self._metadata(request)
            case FetchRequest():
                return self._fetch(request)
            case ListOffsetsRequest():
                return self._list_offsets(request)
            case FindCoordinatorRequest():
                return find_coordinators(self, request)
            case ApiVersionsRequest():
                return self._api_versions(request)
            case DescribeClusterRequest():
                return self._describe(request)
            case ProduceRequest():
                return self._produce(request)
            case _:
                assert_never(request)

    # ---- `Topology`

    def partitions(self, kind: CoordinatorType) -> int | None:
        """There are coordinators of groups only."""
        return self._partitions[OFFSETS_TOPIC] if kind is CoordinatorType.GROUP else None

    def leader(self, kind: CoordinatorType, partition: int) -> Node | None:  # noqa: ARG002 - this node leads all of them
        """This node."""
        return self._node

    # ---- answers

    def _api_versions(self, request: ApiVersionsRequest) -> ApiVersionsResponse:
        apis = tuple(ApiVersionRange(api, versions.start, versions.stop - 1) for api, versions in self.offered.items())
        return ApiVersionsResponse(ErrorCode.NONE if request.valid else ErrorCode.INVALID_REQUEST, apis)

    def _metadata(self, request: MetadataRequest) -> MetadataResponse:
        asked = request.topics
        if asked is None:
            asked = tuple(RequestedTopic(name) for name in self._partitions)
        topics = tuple(self._topic(topic) for topic in asked)
        return MetadataResponse((self._broker,), topics, self._cluster_id, self._node.node_id)

    def _topic(self, asked: RequestedTopic) -> TopicMetadata:
        name = asked.name if asked.topic_id == ZERO_UUID else self.topic_names.get(asked.topic_id)
        if name is None:
            return TopicMetadata(None, error=ErrorCode.UNKNOWN_TOPIC_ID, topic_id=asked.topic_id)
        if name not in self._partitions:
            return TopicMetadata(name, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        node = self._node.node_id
        partitions = tuple(PartitionMetadata(number, node, 0, (node,), (node,)) for number in range(self._partitions[name]))
        return TopicMetadata(name, partitions, topic_id=self._ids[name], is_internal=name == OFFSETS_TOPIC)

    def _describe(self, request: DescribeClusterRequest) -> DescribeClusterResponse:
        if request.endpoint_type != _BROKERS:
            message = f"endpoint type {request.endpoint_type}: there are brokers only"
            return DescribeClusterResponse(ErrorCode.INVALID_REQUEST, error_message=message)
        return DescribeClusterResponse(ErrorCode.NONE, self._cluster_id, self._node.node_id, (self._broker,))

    def _list_offsets(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        return ListOffsetsResponse(
            {place: self._listed_offset(request, *place, timestamp) for place, timestamp in request.timestamps.items()}
        )

    def _listed_offset(self, request: ListOffsetsRequest, topic: str, partition: int, timestamp: int) -> ListedOffset:
        """As of a partition that was never written to: no record has a timestamp, and nothing is tiered."""
        if timestamp < request.lowest_timestamp:
            return ListedOffset(ErrorCode.UNSUPPORTED_VERSION)
        if not self._has(topic, partition):
            return ListedOffset(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if timestamp in _AT_THE_ENDS:
            return ListedOffset(ErrorCode.NONE, 0, leader_epoch=0)
        return ListedOffset(ErrorCode.NONE)

    def _fetch(self, request: FetchRequest) -> FetchResponse:
        if request.session_id != _NO_SESSION:
            return FetchResponse((), ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        return FetchResponse(tuple(self._fetched(asked) for asked in request.partitions))

    def _fetched(self, asked: FetchPartition) -> FetchedPartition:
        name = asked.topic or self.topic_names.get(asked.topic_id)
        if name is None:
            return FetchedPartition(asked.topic, asked.topic_id, asked.partition, ErrorCode.UNKNOWN_TOPIC_ID)
        if not self._has(name, asked.partition):
            return FetchedPartition(asked.topic, asked.topic_id, asked.partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return FetchedPartition(asked.topic, asked.topic_id, asked.partition, ErrorCode.NONE, max(asked.offset, 0), 0)

    def _produce(self, request: ProduceRequest) -> ProduceResponse:
        return ProduceResponse(tuple(self._refused(asked, request.acks) for asked in request.partitions))

    def _refused(self, asked: ProducePartition, acks: int) -> ProducedPartition:
        """INVALID_TOPIC_EXCEPTION, as brokers answer for topics that no client may write to: clients do not retry it."""
        name = asked.topic or self.topic_names.get(asked.topic_id)
        if acks not in _ACKS:
            return ProducedPartition(*asked, ErrorCode.INVALID_REQUIRED_ACKS)
        if name is None:
            return ProducedPartition(*asked, ErrorCode.UNKNOWN_TOPIC_ID)
        if name == OFFSETS_TOPIC or self._has(name, asked.partition):
            return ProducedPartition(*asked, ErrorCode.INVALID_TOPIC_EXCEPTION, _NO_DATA)
        return ProducedPartition(*asked, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

    def _has(self, topic: str, partition: int) -> bool:
        return 0 <= partition < self._declared.get(topic, 0)
