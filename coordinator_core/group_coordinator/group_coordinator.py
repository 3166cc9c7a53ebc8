"""Routing of requests to the shards of their log partitions (`GroupCoordinatorService`)."""

from collections.abc import Mapping

from coordinator_core.group_coordinator.config import CoordinatorConfig
from coordinator_core.group_coordinator.request_checks import check_group_id, check_protocol, error_response
from coordinator_core.group_coordinator.shard import GroupCoordinatorShard
from coordinator_core.log.partitioner import partition_for
from coordinator_core.protocol.api import GroupRequest, Response
from coordinator_core.protocol.error_code import ErrorCode


class GroupCoordinator:
    """Shards by log partition. Holds no group state; the shard that `route` returns must handle the request. Requests without a
    group, ListGroups and transaction markers, are handed to the shards one by one.

    `active` is False before start and after shutdown.
    """

    def __init__(self, config: CoordinatorConfig, shards: Mapping[int, GroupCoordinatorShard]) -> None:
        self.config = config
        self.shards = dict(shards)
        self.active = True

    def route(self, request: GroupRequest) -> GroupCoordinatorShard | Response:
        """Returns the shard that must handle the request, or an error response."""
        invalid = check_protocol(request, self.config) or check_group_id(request, self.config)
        if invalid is not None:
            return invalid
        if not self.active:
            return error_response(request, ErrorCode.COORDINATOR_NOT_AVAILABLE, self.config.behaviour)
        shard = self.shards.get(self.partition_for(request.group_id))
        return error_response(request, ErrorCode.NOT_COORDINATOR, self.config.behaviour) if shard is None else shard

    def partition_for(self, group_id: str) -> int:
        """Returns the log partition of the group."""
        return partition_for(group_id, self.config.offsets_topic_num_partitions)
