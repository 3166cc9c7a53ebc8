"""Differences between the transaction coordinators of brokers, as data. An era stands for the last release of its span.

Rules that depend on the version of a request need no entry: `protocol/apis.py` has them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from coordinator_core.protocol.error_code import ErrorCode


@dataclass(frozen=True, slots=True)
class TransactionBehaviour:
    """One transaction coordinator."""

    #: Level of the feature `transaction.version`: used for aborts that the coordinator itself begins.
    transaction_version: int
    #: Value version of the records.
    value_version: int
    #: Error for a producer with another epoch. INVALID_PRODUCER_EPOCH before 2.7 (KAFKA-9911).
    fenced: ErrorCode
    #: EndTxn is refused for any other epoch, not only for a lower one (2.6).
    end_requires_equal_epoch: bool
    #: AddPartitionsToTxn checks for a transition in progress before it checks the producer (KAFKA-18660).
    adding_checks_pending_first: bool
    #: An epoch whose fencing could not be written is used again by the next attempt (KAFKA-9666).
    reuses_failed_fence: bool
    #: A fence at epoch 32767 keeps the epoch; otherwise it fails (KAFKA-20090).
    fences_last_epoch: bool
    #: An id that becomes Empty keeps the start time of its last transaction in memory.
    empty_keeps_start: bool
    #: Enable2Pc is checked (KIP-939).
    has_two_phase_commit: bool
    #: TxnOffsetCommit is checked with the transaction coordinator (KIP-890, 3.7).
    verifies_offset_commits: bool
    #: Error of a partition that is not in the transaction, for brokers that verify it. INVALID_TXN_STATE before 3.8.
    not_in_transaction: ErrorCode = ErrorCode.TRANSACTION_ABORTABLE


_JAVA = TransactionBehaviour(
    transaction_version=2,
    value_version=1,
    fenced=ErrorCode.PRODUCER_FENCED,
    end_requires_equal_epoch=True,
    adding_checks_pending_first=True,
    reuses_failed_fence=True,
    fences_last_epoch=True,
    empty_keeps_start=False,
    has_two_phase_commit=True,
    verifies_offset_commits=True,
)

_3 = replace(
    _JAVA,
    transaction_version=0,
    value_version=0,
    adding_checks_pending_first=False,
    fences_last_epoch=False,
    empty_keeps_start=True,
    has_two_phase_commit=False,
)

_2 = replace(
    _3,
    fenced=ErrorCode.INVALID_PRODUCER_EPOCH,
    end_requires_equal_epoch=False,
    reuses_failed_fence=False,
    verifies_offset_commits=False,
)

#: By era; brokers before 0.11 have no transactions. Each is defined by its differences from the next one.
TRANSACTION_BEHAVIOURS: Mapping[str, TransactionBehaviour] = MappingProxyType({"1": _2, "2": _2, "3": _3, "4": _JAVA})
