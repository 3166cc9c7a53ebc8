"""Shared state of the handlers of one log partition."""

from collections.abc import Callable
from dataclasses import dataclass, field

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.state.transaction_cache import TransactionMetadataCache
from coordinator_core.state.transaction_metadata import TransactionMetadata
from coordinator_core.transaction_coordinator.behaviour import TransactionBehaviour
from coordinator_core.transaction_coordinator.config import TransactionConfig
from coordinator_core.transaction_coordinator.live_transaction import LiveTransaction
from coordinator_core.transaction_coordinator.producer_ids import ProducerIdManager
from coordinator_core.transaction_coordinator.timers import TransactionTimers


@dataclass(frozen=True, slots=True)
class TransactionTopology:
    """The cluster as the coordinator sees it.

    `has_partition` is False for a partition that does not exist (any more): a transaction cannot contain it, and it needs no
    marker. `offsets_partition` is the partition of `__consumer_offsets` that has the offsets of a group.
    """

    has_partition: Callable[[TopicPartition], bool]
    offsets_partition: Callable[[str], TopicPartition]


@dataclass(slots=True)
class TransactionContext:
    """State of one log partition.

    Only records change `cache`, which equals the content of the log. `live` has the same ids, with the transitions in progress
    and the fields that are never in the log. `completions` has the last state of transactions whose markers are being written.
    """

    config: TransactionConfig
    producer_ids: ProducerIdManager
    topology: TransactionTopology
    coordinator_epoch: int
    cache: TransactionMetadataCache
    live: dict[str, LiveTransaction] = field(default_factory=dict)
    timers: TransactionTimers = field(default_factory=TransactionTimers)
    completions: dict[str, TransactionMetadata] = field(default_factory=dict)
    marker_retries: dict[str, set[TopicPartition]] = field(default_factory=dict)

    @property
    def behaviour(self) -> TransactionBehaviour:
        """Rules of the configured era."""
        return self.config.behaviour

    def add(self, metadata: TransactionMetadata) -> LiveTransaction:
        """Add an id that has no record yet, or that was loaded."""
        live = self.live[metadata.transactional_id] = LiveTransaction(metadata, self.behaviour)
        return live
