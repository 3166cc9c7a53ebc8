"""Routing of requests to the shards of their log partitions."""

from collections.abc import Mapping

from coordinator_core.log.partitioner import partition_for
from coordinator_core.protocol.api import Response, TransactionRequest
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.transactions import DescribeTransactionRequest, InitProducerIdRequest
from coordinator_core.transaction_coordinator.config import TransactionConfig
from coordinator_core.transaction_coordinator.context import TransactionTopology
from coordinator_core.transaction_coordinator.init_producer_id import init_idempotent_producer
from coordinator_core.transaction_coordinator.producer_ids import ProducerIdManager
from coordinator_core.transaction_coordinator.request_checks import check_request, error_response, has_whole_producer
from coordinator_core.transaction_coordinator.shard import TransactionShard


class TransactionCoordinator:
    """Shards by log partition. Holds no state of transactional ids; the shard that `route` returns must handle the request.
    ListTransactions is handed to the shards one by one.

    `active` is False before start and after shutdown.
    """

    def __init__(
        self,
        config: TransactionConfig,
        shards: Mapping[int, TransactionShard],
        producer_ids: ProducerIdManager,
        topology: TransactionTopology,
    ) -> None:
        self.config = config
        self.shards = dict(shards)
        self.active = True
        self.producer_ids = producer_ids
        self._topology = topology

    def route(self, request: TransactionRequest) -> TransactionShard | Response:
        """Return the shard that must handle the request, or the response that depends on no shard."""
        if isinstance(request, InitProducerIdRequest) and request.transactional_id is None:
            if not has_whole_producer(request):
                return error_response(request, ErrorCode.INVALID_REQUEST)
            return init_idempotent_producer(self.producer_ids)
        if isinstance(request, DescribeTransactionRequest) and not self.active:
            return error_response(request, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        invalid = check_request(request, self.config, self._topology)
        if invalid is not None:
            return invalid
        shard = self.shards.get(self.partition_for(request.transactional_id or "")) if self.active else None
        return error_response(request, ErrorCode.NOT_COORDINATOR) if shard is None else shard

    def partition_for(self, transactional_id: str) -> int:
        """Return the log partition of the id."""
        return partition_for(transactional_id, self.config.transaction_state_log_num_partitions)
