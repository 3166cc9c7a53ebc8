"""Requests to the transaction coordinator: InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn, EndTxn, DescribeTransactions and
ListTransactions. Times in ms.

`knows_producer_fenced`: the response may have PRODUCER_FENCED; clients of older versions get INVALID_PRODUCER_EPOCH.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.protocol.api import Response, TransactionRequest
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.offsets import ProducerEpoch

#: Producer of a request without one, and of an error response.
NO_PRODUCER = ProducerEpoch(-1, -1)
#: Producer of DescribeTransactions with an error.
_ZERO_PRODUCER = ProducerEpoch(0, 0)


@dataclass(frozen=True, slots=True)
class InitProducerIdRequest(TransactionRequest):
    """`transactional_id` is None for an idempotent producer. `producer` is the client's current one (KIP-360).

    `enable_two_phase_commit` and `keep_prepared` are fields of v6 (KIP-939), which is not offered.
    """

    transactional_id: str | None
    timeout_ms: int
    producer: ProducerEpoch = NO_PRODUCER
    enable_two_phase_commit: bool = False
    keep_prepared: bool = False
    knows_producer_fenced: bool = True


@dataclass(frozen=True, slots=True)
class InitProducerIdResponse(Response):
    error: ErrorCode
    producer: ProducerEpoch = NO_PRODUCER


@dataclass(frozen=True, slots=True)
class AddPartitionsToTxnRequest(TransactionRequest):
    """Partitions of one transaction. `from_broker`: v4+, which only brokers send; with `verify_only` nothing is added."""

    transactional_id: str | None
    producer: ProducerEpoch
    partitions: tuple[TopicPartition, ...]
    verify_only: bool = False
    from_broker: bool = False
    knows_producer_fenced: bool = True


@dataclass(frozen=True, slots=True)
class AddPartitionsToTxnResponse(Response):
    transactional_id: str | None
    errors: Mapping[TopicPartition, ErrorCode]


@dataclass(frozen=True, slots=True)
class AddOffsetsToTxnRequest(TransactionRequest):
    transactional_id: str | None
    producer: ProducerEpoch
    group_id: str
    knows_producer_fenced: bool = True


@dataclass(frozen=True, slots=True)
class AddOffsetsToTxnResponse(Response):
    error: ErrorCode


@dataclass(frozen=True, slots=True)
class EndTxnRequest(TransactionRequest):
    """`increments_epoch`: v5+, transaction version 2 (KIP-890); the response has the producer of the next transaction."""

    transactional_id: str | None
    producer: ProducerEpoch
    commit: bool
    increments_epoch: bool = False
    knows_producer_fenced: bool = True


@dataclass(frozen=True, slots=True)
class EndTxnResponse(Response):
    error: ErrorCode
    producer: ProducerEpoch = NO_PRODUCER


@dataclass(frozen=True, slots=True)
class DescribeTransactionRequest(TransactionRequest):
    transactional_id: str


@dataclass(frozen=True, slots=True)
class DescribeTransactionResponse(Response):
    error: ErrorCode
    transactional_id: str
    state: str = ""
    timeout_ms: int = 0
    start_ms: int = 0
    producer: ProducerEpoch = _ZERO_PRODUCER
    partitions: frozenset[TopicPartition] = frozenset()


@dataclass(frozen=True, slots=True)
class ListTransactionsRequest(TransactionRequest):
    """Filters, which must all match: states and producer ids, empty for all; a duration since v1 (KIP-994), negative for any;
    a regular expression for the whole id since v2 (KIP-1152), empty for any."""

    states: frozenset[str] = frozenset()
    producer_ids: frozenset[int] = frozenset()
    duration_ms: int = -1
    pattern: str | None = None


class ListedTransaction(NamedTuple):
    transactional_id: str
    producer_id: int
    state: str


@dataclass(frozen=True, slots=True)
class ListTransactionsResponse(Response):
    error: ErrorCode
    unknown_states: tuple[str, ...] = ()
    transactions: tuple[ListedTransaction, ...] = ()
