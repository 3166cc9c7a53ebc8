"""Random parts of requests: names, members, generations, producers, records; mostly valid ones."""

import random
import time
from typing import Any

from data_partitions import batch
from differential_side import Bound, Side

from coordinator_core.codec.messages.offsets import ZERO_UUID
from coordinator_core.protocol.api import AnyApi

ACTORS = 4
PARTITIONS = 2
#: A producer id that no test gives out.
UNKNOWN_PRODUCER = 987_654_321
#: Recent, so that no retention deletes the records.
TIMESTAMP_MS = int(time.time() * 1000)

Body = dict[str, Any]


class Draws:
    """The state that both sides have in common, and values drawn by it."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.prefix = f"s{seed}-"
        self.topic = f"{self.prefix}t"
        self._generations: dict[str, int] = {}
        self._epochs: dict[str, int] = {}
        self._sequences: dict[tuple[str, int], int] = {}

    def _chance(self, share: float) -> bool:
        return self.random.random() < share

    def _some(self, values: list[Any]) -> list[Any]:
        """One of the values, or all of them without duplicates."""
        return list(dict.fromkeys(values)) if self._chance(0.3) else values[:1]

    def _group(self) -> str:
        return self.random.choice([f"{self.prefix}g0"] * 6 + [f"{self.prefix}g1"] * 3 + [f"{self.prefix}missing", ""])

    def _id(self) -> str:
        return self.random.choice([f"{self.prefix}x0"] * 6 + [f"{self.prefix}x1"] * 3 + [f"{self.prefix}unknown", ""])

    def _member(self, group: str, actor: int) -> Any:
        own = Bound(f"member {group} {actor}", "")
        other = Bound(f"member {group} {(actor + 1) % ACTORS}", "")
        return self.random.choice([own] * 8 + ["", other, "no-member"])

    def _generation(self, group: str) -> int:
        now = self._generations.get(group, -1)
        return self.random.choice([now] * 8 + [-1, now + 1, max(now - 1, 0)])

    def _instance(self, actor: int) -> str | None:
        return self.random.choice([None] * 7 + [f"i{actor}", "i0"])

    def _topic_name(self) -> str:
        return self.random.choice([self.topic] * 8 + ["nope", "__consumer_offsets"])

    def _partition(self) -> int:
        return self.random.choice([0] * 5 + [1] * 3 + [PARTITIONS, -1])

    def _named_topic(self, has_ids: bool) -> tuple[str, Body]:
        name = self._topic_name()
        if not has_ids:
            return name, {"name": name}
        topic_id = self.random.choice([Bound(f"topic {name}", ZERO_UUID)] * 5 + [ZERO_UUID])
        return name, {"topic_id": topic_id}

    def _producer(self, name: str | None) -> tuple[Any, int]:
        """Producer id and epoch."""
        known = name or "idempotent"
        epoch = self._epochs.get(known, -1)
        own = Bound(f"producer {known}", -1)
        return self.random.choice(
            [(own, epoch)] * 12 + [(own, epoch + 1), (own, epoch - 1), (own, -1), (-1, -1), (-1, 0), (UNKNOWN_PRODUCER, 0)]
        )

    def _has(self, api: AnyApi, version: int, field: str) -> bool:
        return api.has_field(version, field)


class Records:
    """A batch with the producer id of a side."""

    def __init__(self, name: str, producer: Any, epoch: int, sequence: int, count: int, *, transactional: bool) -> None:
        self.name = name
        self.sequence = sequence
        self.count = count
        self._producer = producer
        self._epoch = epoch
        self._transactional = transactional

    def __call__(self, side: Side) -> bytes:
        return batch(
            [b"value"] * self.count,
            producer=side.resolved(self._producer),
            epoch=self._epoch,
            sequence=self.sequence,
            transactional=self._transactional,
            timestamp=TIMESTAMP_MS,
        )

    def __repr__(self) -> str:
        kind = "transactional" if self._transactional else "plain"
        return f"<{self.count} {kind} records of {self._producer} epoch {self._epoch} sequence {self.sequence}>"
