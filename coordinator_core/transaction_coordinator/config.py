"""Configuration of the transaction coordinator: Kafka's names, Kafka's defaults."""

from dataclasses import dataclass

from coordinator_core.transaction_coordinator.behaviour import TRANSACTION_BEHAVIOURS, TransactionBehaviour

_INT32_MAX = 2**31 - 1
#: Minimum of each key; the maximum is 2³¹ - 1.
_LOWEST = {
    "transaction_state_log_num_partitions": 1,
    "transaction_state_log_segment_bytes": 1,
    "transaction_max_timeout_ms": 1,
    "transactional_id_expiration_ms": 1,
    "transaction_abort_timed_out_transaction_cleanup_interval_ms": 1,
    "transaction_remove_expired_transaction_cleanup_interval_ms": 1,
    "message_max_bytes": 1,
}


@dataclass(frozen=True, slots=True)
class TransactionConfig:
    """`TransactionConfig` of brokers, with underscores for dots. Raises ValueError for a value out of its range."""

    era: str = "4"
    transaction_state_log_num_partitions: int = 50
    transaction_state_log_segment_bytes: int = 100 * 1024 * 1024
    transaction_max_timeout_ms: int = 900_000
    transactional_id_expiration_ms: int = 604_800_000
    #: Brokers before 2.5 scan every minute.
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = 10_000
    transaction_remove_expired_transaction_cleanup_interval_ms: int = 3_600_000
    transaction_partition_verification_enable: bool = True
    transaction_two_phase_commit_enable: bool = False
    #: Bounds a batch of tombstones.
    message_max_bytes: int = 1_048_588

    def __post_init__(self) -> None:
        if self.era not in TRANSACTION_BEHAVIOURS:
            raise ValueError(f"era {self.era!r} has no transactions: use {', '.join(TRANSACTION_BEHAVIOURS)}")
        for key, lowest in _LOWEST.items():
            value = getattr(self, key)
            if not lowest <= value <= _INT32_MAX:
                raise ValueError(f"{key} is {value}: use {lowest}–{_INT32_MAX}")

    @property
    def behaviour(self) -> TransactionBehaviour:
        """Rules of the era's coordinator."""
        return TRANSACTION_BEHAVIOURS[self.era]

    def is_valid_timeout(self, timeout_ms: int, *, two_phase: bool = False) -> bool:
        """True if a producer may have this transaction timeout (`validateTransactionTimeoutMs`)."""
        return two_phase or 0 < timeout_ms <= self.transaction_max_timeout_ms
