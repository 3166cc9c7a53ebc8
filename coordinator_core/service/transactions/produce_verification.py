"""Verification of transactional batches by the transaction coordinator of this node (`AddPartitionsToTxnManager`)."""

from collections.abc import Callable, Sequence

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.protocol.api import Response
from coordinator_core.protocol.offsets import ProducerEpoch
from coordinator_core.protocol.transactions import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from coordinator_core.service.topics.produce import VerificationErrors
from coordinator_core.service.transactions.transaction_service import TransactionService


class CoordinatorVerifier:
    """Implements `TransactionVerifier` with the coordinator's AddPartitionsToTxn."""

    def __init__(self, transactions: TransactionService) -> None:
        self._transactions = transactions

    def verify(
        self,
        transactional_id: str,
        producer: ProducerEpoch,
        partitions: Sequence[TopicPartition],
        done: Callable[[VerificationErrors], None],
        *,
        adds: bool,
    ) -> None:
        """Check that the partitions are in the transaction or, with `adds`, add them."""
        request = AddPartitionsToTxnRequest(transactional_id, producer, tuple(partitions), verify_only=not adds, from_broker=True)
        self._transactions.submit(request, _Verified(done))


class _Verified:
    """The reply handle of a verification."""

    __slots__ = ("_done",)

    def __init__(self, done: Callable[[VerificationErrors], None]) -> None:
        self._done = done

    def answer(self, response: Response) -> None:
        """Receive the response of the transaction coordinator."""
        assert isinstance(response, AddPartitionsToTxnResponse)
        self._done(response.errors)
