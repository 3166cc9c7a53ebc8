"""States of a transactional id and their valid transitions (`TransactionState`)."""

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType


class TransactionState(IntEnum):
    """State of a transactional id, by its code in the log. The log of brokers has only the codes 0 to 5."""

    #: A producer has initialized; no partition is in a transaction.
    EMPTY = 0
    #: A transaction with partitions, or with offsets of a group, is open.
    ONGOING = 1
    #: The decision is on the log, and markers are being written to the partitions.
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    #: Every partition has its marker.
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    #: The id has expired, and its tombstone is being written.
    DEAD = 6
    #: The coordinator fences the producer, and is about to abort its transaction.
    PREPARE_EPOCH_FENCE = 7

    @property
    def label(self) -> str:
        """Name in responses to admin clients (`TransactionState.stateName`)."""
        return _LABELS[self]

    @property
    def expires(self) -> bool:
        """True if an id in this state may expire (`isExpirationAllowed`)."""
        return self in _EXPIRING

    @property
    def is_prepared(self) -> bool:
        """True for PrepareCommit and PrepareAbort."""
        return self in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)


EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT, COMPLETE_ABORT, DEAD, PREPARE_EPOCH_FENCE = TransactionState

_IDLE = frozenset({EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT})
_EXPIRING = _IDLE
_LABELS: Mapping[TransactionState, str] = MappingProxyType(
    {state: "".join(word.capitalize() for word in state.name.split("_")) for state in TransactionState}
)
#: Name in responses → state. Names are case-sensitive (`TransactionState.fromName`).
STATES_BY_LABEL: Mapping[str, TransactionState] = MappingProxyType({label: state for state, label in _LABELS.items()})

#: The table of transitions (`VALID_PREVIOUS_STATES`). PrepareAbort without an open transaction belongs to transaction version 2.
VALID_PREVIOUS_STATES: Mapping[TransactionState, frozenset[TransactionState]] = MappingProxyType(
    {
        EMPTY: _IDLE,
        ONGOING: _IDLE | {ONGOING},
        PREPARE_COMMIT: frozenset({ONGOING}),
        PREPARE_ABORT: _IDLE | {ONGOING, PREPARE_EPOCH_FENCE},
        COMPLETE_COMMIT: frozenset({PREPARE_COMMIT}),
        COMPLETE_ABORT: frozenset({PREPARE_ABORT}),
        DEAD: _IDLE,
        PREPARE_EPOCH_FENCE: frozenset({ONGOING}),
    }
)
