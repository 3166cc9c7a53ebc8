"""The life of a group of the consumer protocol (KIP-848): members join and leave, and partitions move one member at a time."""

from collections.abc import Mapping

from coordinator_core.codec.messages.consumer import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
)
from coordinator_core.codec.messages.modern import TargetAssignmentMemberValue, TargetAssignmentMetadataValue, TopicPartitions
from coordinator_core.codec.uuids import uuid_text
from pipelines.examples.history.assignment import Owned, TopicPartition, balanced, by_topic
from pipelines.examples.history.log import ExampleLog, random_id

_EPOCH, _METADATA, _TARGET_EPOCH, _TARGET, _CURRENT = 3, 5, 6, 7, 8
#: Times after a new epoch at which members have given up, or taken, partitions.
_REVOKED_MS, _ASSIGNED_MS = 700, 1_500


class ExampleConsumerGroup:
    """A group of the consumer protocol. Methods are called in the order of their times."""

    def __init__(self, log: ExampleLog, name: str, partitions: Mapping[str, int], epoch: int = 0) -> None:
        self._log, self._name, self._partitions = log, name, partitions
        self._epoch = epoch
        self._ids: dict[str, str] = {}
        self._runs: dict[str, int] = {}
        self._owned: Owned = {}

    def join(self, at: int, hosts: Mapping[str, str]) -> None:
        """Members, with their hosts, join."""
        for name, host in hosts.items():
            self._runs[name] = self._runs.get(name, 0) + 1
            self._ids[name] = uuid_text(random_id(name, self._runs[name]))
            metadata = ConsumerGroupMemberMetadataValue(
                None, None, name, f"/{host}", tuple(self._partitions), classic_member_metadata=None
            )
            self._log.modern(self._name, at, _METADATA, metadata, self._ids[name])
        self._rebalance(at)

    def leave(self, at: int, *names: str) -> None:
        """Members leave."""
        for name in names:
            member_id = self._ids.pop(name)
            self._owned.pop(name, None)
            for record_type in (_CURRENT, _TARGET, _METADATA):
                self._log.modern(self._name, at, record_type, None, member_id)
        self._rebalance(at)

    def restart(self, at: int, name: str, host: str, *, down_ms: int = 25_000) -> None:
        """A member leaves and joins again."""
        self.leave(at, name)
        self.join(at + down_ms, {name: host})

    def _rebalance(self, at: int) -> None:
        self._epoch += 1
        target = balanced(self._partitions, self._owned, list(self._ids))
        self._log.modern(self._name, at, _EPOCH, ConsumerGroupMetadataValue(self._epoch, 1))
        for name, owned in target.items():
            self._log.modern(self._name, at, _TARGET, TargetAssignmentMemberValue(self._parts(owned)), self._ids[name])
        self._log.modern(self._name, at, _TARGET_EPOCH, TargetAssignmentMetadataValue(self._epoch))
        taking = [name for name, owned in target.items() if not set(owned) <= set(self._owned.get(name, ()))]
        for after_ms, names in ((_REVOKED_MS, target.keys() - set(taking)), (_ASSIGNED_MS, set(taking))):
            for name in sorted(names):
                current = ConsumerGroupCurrentMemberAssignmentValue(self._epoch, self._epoch - 1, 0, self._parts(target[name]))
                self._log.modern(self._name, at + after_ms, _CURRENT, current, self._ids[name])
        self._owned = target

    def _parts(self, owned: list[TopicPartition]) -> tuple[TopicPartitions, ...]:
        found = by_topic(self._partitions, owned)
        return tuple(TopicPartitions(self._log.topic_ids[topic], numbers) for topic, numbers in found.items() if numbers)
