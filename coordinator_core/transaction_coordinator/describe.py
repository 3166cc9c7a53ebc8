"""DescribeTransactions and ListTransactions (KIP-664)."""

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from coordinator_core.coordinator_common.results import ReplyHandle
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.offsets import ProducerEpoch
from coordinator_core.protocol.transactions import (
    DescribeTransactionRequest,
    DescribeTransactionResponse,
    ListedTransaction,
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from coordinator_core.state.transaction_metadata import TransactionMetadata
from coordinator_core.state.transaction_state import DEAD, STATES_BY_LABEL
from coordinator_core.transaction_coordinator.result import TransactionResultBuilder


def describe_transaction(result: TransactionResultBuilder, request: DescribeTransactionRequest, reply: ReplyHandle) -> None:
    """Describe one id. Of a decided transaction, only the partitions without a marker are listed."""
    live = result.context.live.get(request.transactional_id)
    if live is None or live.metadata.state is DEAD:
        result.answer(reply, DescribeTransactionResponse(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, request.transactional_id))
        return
    now = live.metadata
    result.answer(
        reply,
        DescribeTransactionResponse(
            ErrorCode.NONE,
            now.transactional_id,
            now.state.label,
            now.timeout_ms,
            now.start_ms,
            ProducerEpoch(now.producer_id, now.producer_epoch),
            now.partitions,
        ),
    )


def list_transactions(result: TransactionResultBuilder, request: ListTransactionsRequest, reply: ReplyHandle) -> None:
    """List the ids of the log partition that match all filters."""
    unknown = tuple(sorted(request.states - STATES_BY_LABEL.keys()))
    found = [live.metadata for live in result.context.live.values() if _matches(live.metadata, request, result.now_ms)]
    if request.pattern:
        try:
            found = _matching(request.pattern, found)
        except (pa.ArrowInvalid, UnicodeEncodeError):
            result.answer(reply, ListTransactionsResponse(ErrorCode.INVALID_REGULAR_EXPRESSION))
            return
    listed = tuple(ListedTransaction(each.transactional_id, each.producer_id, each.state.label) for each in found)
    result.answer(reply, ListTransactionsResponse(ErrorCode.NONE, unknown, listed))


def merge_lists(responses: Iterable[ListTransactionsResponse]) -> ListTransactionsResponse:
    """Return the list of all log partitions; those of other coordinators are left out. While one of them is being loaded, the
    response is only the error."""
    responses = tuple(responses)
    for error in (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.INVALID_REGULAR_EXPRESSION):
        if any(response.error is error for response in responses):
            return ListTransactionsResponse(error)
    served = [response for response in responses if response.error is ErrorCode.NONE]
    unknown = served[0].unknown_states if served else ()
    return ListTransactionsResponse(ErrorCode.NONE, unknown, tuple(each for response in served for each in response.transactions))


def _matches(now: TransactionMetadata, request: ListTransactionsRequest, now_ms: int) -> bool:
    return (
        now.state is not DEAD
        and (not request.producer_ids or now.producer_id in request.producer_ids)
        and (not request.states or now.state.label in request.states)
        and (request.duration_ms < 0 or now_ms - now.start_ms > request.duration_ms)
    )


def _matching(pattern: str, found: Sequence[TransactionMetadata]) -> list[TransactionMetadata]:
    """The ids that the regular expression matches as a whole. RE2, as in brokers: its time is linear for every pattern.

    Compiled on its own first, so that a pattern with an unbalanced parenthesis cannot end the group around it.
    """
    pc.match_substring_regex(pa.array([""]), pattern)
    ids = pa.array([each.transactional_id for each in found], pa.string())
    matched = pc.match_substring_regex(ids, rf"\A(?:{pattern})\z").to_pylist()
    return [each for each, is_match in zip(found, matched, strict=True) if is_match]
