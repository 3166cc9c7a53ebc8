"""TxnOffsetCommit: the partition of the group must be in the transaction (KIP-890), which the transaction coordinator checks."""

from collections.abc import Mapping

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.protocol.api import Response
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.internal_topics import OFFSETS_TOPIC
from coordinator_core.protocol.offsets import OffsetCommitResponse, TxnOffsetCommitRequest
from coordinator_core.protocol.transactions import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from coordinator_core.service.groups.group_service import GroupCoordinatorService
from coordinator_core.service.runtime.reply_handles import ReplyHandle
from coordinator_core.service.transactions.transaction_service import TransactionService

#: Errors of the transaction coordinator, and those that the partition's leader makes of them.
_LEADER_ERRORS: Mapping[ErrorCode, ErrorCode] = {ErrorCode.PRODUCER_FENCED: ErrorCode.INVALID_PRODUCER_EPOCH}


class OffsetCommitVerification:
    """Passes TxnOffsetCommit to the group coordinator once its partition is verified.

    Since v5 the partition is added to the transaction. Older versions only verify it, if
    `transaction.partition.verification.enable` is set and the era's brokers do (3.7).
    """

    def __init__(self, groups: GroupCoordinatorService, transactions: TransactionService) -> None:
        self._groups = groups
        self._transactions = transactions
        config = transactions.config
        self._verifies = config.behaviour.verifies_offset_commits and config.transaction_partition_verification_enable

    def submit(self, request: TxnOffsetCommitRequest, reply_handle: ReplyHandle) -> None:
        """Verify the commit, then submit it."""
        if not request.group_id or not (self._verifies or request.adds_partition):
            self._groups.submit(request, reply_handle)
            return
        partition = TopicPartition(OFFSETS_TOPIC, self._groups.partition_for(request.group_id))
        verification = AddPartitionsToTxnRequest(
            request.transactional_id,
            request.producer,
            (partition,),
            verify_only=not request.adds_partition,
            from_broker=True,
        )
        self._transactions.submit(verification, _VerifiedCommit(self._groups, request, reply_handle))


class _VerifiedCommit:
    """A commit that waits for its verification."""

    __slots__ = ("_groups", "_reply_handle", "_request")

    def __init__(self, groups: GroupCoordinatorService, request: TxnOffsetCommitRequest, reply_handle: ReplyHandle) -> None:
        self._groups = groups
        self._request = request
        self._reply_handle = reply_handle

    def answer(self, response: Response) -> None:
        """Receive the response of the transaction coordinator."""
        assert isinstance(response, AddPartitionsToTxnResponse)
        (error,) = response.errors.values()
        if error is ErrorCode.NONE:
            self._groups.submit(self._request, self._reply_handle)
            return
        if self._groups.config.behaviour.transactions_make_groups:
            # Scala brokers create a missing group before they verify the commit
            self._groups.create_group(self._request.group_id)
        error = _LEADER_ERRORS.get(error, error)
        if error is ErrorCode.TRANSACTION_ABORTABLE and not self._request.knows_transaction_abortable:
            error = ErrorCode.INVALID_TXN_STATE
        self._reply_handle.answer(OffsetCommitResponse(dict.fromkeys(self._request.offsets, error)))
