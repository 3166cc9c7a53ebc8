"""Routing of requests to the shards of their log partitions (`GroupCoordinatorService`)."""

from collections.abc import Mapping

from coordinator_core.coordinator.config import CoordinatorConfig
from coordinator_core.coordinator.errors import ErrorCode
from coordinator_core.coordinator.messages.groups import ListGroupsRequest
from coordinator_core.coordinator.messages.offsets import TxnMarkerRequest
from coordinator_core.coordinator.request_checks import Request, error_response, refusal
from coordinator_core.coordinator.result import Response
from coordinator_core.coordinator.shard import GroupCoordinatorShard
from coordinator_core.log.partitioner import partition_for


class GroupCoordinator:
    """Shards by log partition. Holds no group state; the shard that `route` returns must handle the request.

    `active` is False before start and after shutdown.
    """

    def __init__(self, config: CoordinatorConfig, shards: Mapping[int, GroupCoordinatorShard]) -> None:
        self.config = config
        self.shards = dict(shards)
        self.active = True

    def route(self, request: Request) -> GroupCoordinatorShard | Response:
        """Returns the shard that must handle the request, or an error response.

        Raises TypeError for ListGroups and transaction markers, which name no group: hand them to the shards one by one.
        """
        if isinstance(request, ListGroupsRequest | TxnMarkerRequest):
            raise TypeError(f"{type(request).__name__} names no group: hand it to each shard")
        inactive = ErrorCode.NONE if self.active else ErrorCode.COORDINATOR_NOT_AVAILABLE
        refused = refusal(request, inactive, self.config)
        if refused is not None:
            return refused
        shard = self.shards.get(self.partition_for(request.group_id))
        return error_response(request, ErrorCode.NOT_COORDINATOR, self.config.behaviour) if shard is None else shard

    def partition_for(self, group_id: str) -> int:
        """Returns the log partition of the group."""
        return partition_for(group_id, self.config.offsets_topic_num_partitions)
