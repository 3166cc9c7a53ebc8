"""Position of a stream in the log: the offset object in Spark's checkpoint."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pipelines.source.ranges import Offsets

_EPOCHS = "leader_epochs"


@dataclass(frozen=True)
class Position:
    """The next offset of every log partition, and the leader epoch in which the log contained all records below it, if known."""

    offsets: Offsets
    epochs: Mapping[int, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """`{"0": 17, "1": 4, "leader_epochs": {"0": 2}}`, with a fixed order of keys, because Spark compares texts."""
        offsets: dict[str, Any] = _by_text(self.offsets)
        return {**offsets, _EPOCHS: _by_text(self.epochs)} if self.epochs else offsets

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Position":
        """Parse the result of `to_json`."""
        offsets = {int(partition): offset for partition, offset in value.items() if partition != _EPOCHS}
        return cls(offsets, {int(partition): epoch for partition, epoch in value.get(_EPOCHS, {}).items()})

    def shorter_than(self, other: "Position") -> list[int]:
        """Partitions whose offset is lower than in `other`."""
        return [partition for partition, offset in other.offsets.items() if self.offsets.get(partition, offset) < offset]

    def older_than(self, other: "Position") -> list[int]:
        """Partitions whose leader epoch is lower than in `other`."""
        return [partition for partition, epoch in other.epochs.items() if self.epochs.get(partition, epoch) < epoch]

    def known_epochs(self) -> dict[int, tuple[int, int]]:
        """Partition → offset and leader epoch, for partitions with a known epoch."""
        return {
            partition: (self.offsets[partition], epoch) for partition, epoch in self.epochs.items() if partition in self.offsets
        }


def _by_text(numbers: Mapping[int, int]) -> dict[str, int]:
    return {str(partition): number for partition, number in sorted(numbers.items())}
