"""The random history of a group: a list of events that a broker of some generation loads to the end.

Everything is drawn from one `random.Random`: a story is a function of seed, generation, and times and topic ids of its setting.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from generations import Generation
from subscription_bytes import TAKEN

from coordinator_core.codec import Record, encode, encode_assignment, encode_subscription
from coordinator_core.codec.messages.classic import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from coordinator_core.codec.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    ProtocolTopicPartitions,
)
from coordinator_core.codec.messages.offsets import ZERO_UUID, OffsetCommitKey, OffsetCommitValue
from coordinator_core.log.entries import ControlType

HOUR_MS = 3_600_000
#: Half an hour, as session and rebalance timeout: no loaded member expires while the broker is queried.
PATIENT_MS = 1_800_000
TOPICS = ("orders", "payments", "clicks", "audit.log")
TOPIC_PARTITIONS = 4
_NOWHERE = "no-such-topic"
#: All partitions that stories commit to.
ALL_PARTITIONS = tuple((topic, partition) for topic in (*TOPICS, _NOWHERE) for partition in range(TOPIC_PARTITIONS))
_TEXTS = ("", "", "m", "checkpoint é✓", "librdkafka ends it with one\0", "x" * 300)

Pair = tuple[bytes, bytes | None]


@dataclass(frozen=True)
class Event:
    """The contents of one batch: records, or the marker that ends a transaction of `producer`."""

    pairs: tuple[Pair, ...] = ()
    producer: int = -1
    transactional: bool = False
    marker: ControlType | None = None

    @property
    def is_plain(self) -> bool:
        """Neither transactional nor of an idempotent producer: it may share a batch with others, or be an old message."""
        return self.producer == -1


@dataclass(frozen=True)
class Setting:
    """Location and time of the stories. Times in ms; `topic_ids` are those that the broker gave to `TOPICS`."""

    generation: Generation
    now_ms: int
    retention_ms: int
    topic_ids: Mapping[str, UUID]


@dataclass
class StoryWriter:
    """Writes the events of one story. `groups` share the transactions of `producers` and a log partition."""

    random: random.Random
    setting: Setting
    groups: tuple[str, ...]
    #: The first of the producer ids that are free for this story.
    first_producer: int
    events: list[Event] = field(default_factory=list)

    @property
    def generation(self) -> Generation:
        return self.setting.generation

    def commit(self, group: str | None = None, producer: int = -1, transactional: bool = True) -> None:
        """An offset commit; with a producer other than -1, in its transaction or as merely idempotent."""
        draw = self.random
        record_type = 0 if draw.random() < 0.07 else 1
        version = draw.choice(self.generation.offset_versions if record_type else self.generation.old_commit_versions)
        key = self._key(group)
        value = OffsetCommitValue(
            draw.choice((0, 1, 7, 900, 2**40)),
            draw.choice((-1, -1, 0, 5, -2)) if version >= 3 else -1,
            draw.choice(_TEXTS),
            self.past(),
            self.expiry() if version == 1 else -1,
            self._topic_id(key.topic) if version >= 4 else ZERO_UUID,
        )
        self._write(Record(record_type, key, value, version), producer, transactional)

    def tombstone(self, group: str | None = None, producer: int = -1, transactional: bool = True) -> None:
        """The tombstone of an offset."""
        self._write(Record(self.random.choice((1, 1, 1, 0)), self._key(group), None, None), producer, transactional)

    def marker(self, producer: int, control: ControlType | None = None) -> None:
        """The marker of a transaction, also if none is open."""
        chosen = self.random.choice((ControlType.COMMIT, ControlType.COMMIT, ControlType.ABORT)) if control is None else control
        self.events.append(Event(producer=producer, transactional=True, marker=chosen))

    def classic_group(self, producer: int = -1) -> None:
        """A group record with any number of members."""
        draw = self.random
        version = draw.choice(self.generation.group_versions)
        members = draw.sample(range(4), draw.choice((0, 0, 1, 2, 3)))
        protocol_type = draw.choice(("consumer", "consumer", "consumer", "connect") if members else ("consumer", "connect", ""))
        value = GroupMetadataValue(
            protocol_type,
            draw.choice((0, 1, 2, 41)),
            draw.choice(("range", "roundrobin", "cooperative-sticky")) if members else None,
            draw.choice((f"member-{members[0]}", None)) if members else None,
            draw.choice((-1, self.past())) if version >= 2 else -1,
            tuple(self._member(number, protocol_type, version) for number in members),
        )
        self._write(Record(2, GroupMetadataKey(self._group()), value, version), producer, True)

    def group_tombstone(self) -> None:
        self._write(Record(2, GroupMetadataKey(self._group()), None, None), -1, False)

    def stranger(self) -> None:
        """A record of a type that the generation skips."""
        record_type = self.random.choice(self.generation.unknown_types)
        key = record_type.to_bytes(2, "big") + self.random.randbytes(self.random.choice((0, 5)))
        self.events.append(Event(((key, self.random.choice((None, b"", b"\0\0whatever"))),)))

    def write(self, *records: Record) -> None:
        """The records of one batch."""
        self.events.append(Event(tuple(encode(record) for record in records)))

    def past(self) -> int:
        """A time that is hours away from the end of the retention."""
        retention = self.setting.retention_ms
        age = self.random.choice((retention // 8, retention // 2, retention * 2, retention * 5))
        when = self.setting.now_ms - age - self.random.randrange(HOUR_MS)
        return self.random.choice((-1, 0)) if self.random.random() < 0.03 else when

    def expiry(self) -> int:
        """An explicit expire timestamp, or none."""
        hours = self.random.choice((-1000, -5, 5, 1000))
        return self.random.choice((-1, self.setting.now_ms + hours * HOUR_MS))

    def _write(self, record: Record, producer: int, transactional: bool) -> None:
        self.events.append(Event((encode(record),), producer, transactional and producer != -1))

    def _group(self) -> str:
        return self.random.choice(self.groups)

    def _key(self, group: str | None) -> OffsetCommitKey:
        topic = _NOWHERE if self.random.random() < 0.03 else self.random.choice(TOPICS)
        return OffsetCommitKey(group or self._group(), topic, self.random.choice((0, 0, 0, 1, TOPIC_PARTITIONS - 1)))

    def _topic_id(self, topic: str) -> UUID:
        """The topic's current id, that of a deleted topic of the same name, or none."""
        earlier = UUID(int=1 + len(topic))
        return self.random.choice((ZERO_UUID, earlier, self.setting.topic_ids.get(topic, earlier)))

    def _member(self, number: int, protocol_type: str, version: int) -> MemberMetadata:
        draw = self.random
        return MemberMetadata(
            f"member-{number}",
            draw.choice((None, f"instance-{number}")) if version >= 3 else None,
            draw.choice(("", f"client-{number}", "kliënt")),
            draw.choice(("/127.0.0.1", "/10.0.0.7")),
            PATIENT_MS if version >= 1 else -1,
            PATIENT_MS,
            self._subscription() if protocol_type == "consumer" else b"\0\0connect",
            self._assignment(number) if protocol_type == "consumer" else b"assigned",
        )

    def _subscription(self) -> bytes:
        draw = self.random
        if draw.random() < 0.1:
            return draw.choice(list(TAKEN.values()))
        topics = tuple(draw.sample(TOPICS, draw.choice((0, 1, 1, 2))))
        owned = tuple(ProtocolTopicPartitions(topic, (0, 2)) for topic in topics)
        version = draw.choice((0, 1, 2, 3))
        data = encode_subscription(
            ConsumerProtocolSubscription(
                topics,
                draw.choice((None, b"", b"user data")),
                owned if version >= 1 else (),
                draw.choice((-1, 4)) if version >= 2 else -1,
                draw.choice((None, "rack-1")) if version >= 3 else None,
            ),
            version,
        )
        # an undefined version: coordinators read the fields of version 0
        return b"\0\x09" + data[2:] if draw.random() < 0.1 else data

    def _assignment(self, number: int) -> bytes:
        draw = self.random
        topics = draw.sample(TOPICS, draw.choice((0, 1, 1, 2)))
        assigned = tuple(ProtocolTopicPartitions(topic, (number % TOPIC_PARTITIONS,)) for topic in topics)
        return draw.choice((b"", *[encode_assignment(ConsumerProtocolAssignment(assigned), 0)] * 4))


def chaos(story: StoryWriter) -> None:
    """Any events in any order: offsets, transactions, classic groups, tombstones, unknown records."""
    draw, generation = story.random, story.generation
    producers = range(story.first_producer, story.first_producer + 2)
    idempotent = story.first_producer + 2

    def commit() -> None:
        story.commit()

    def transactional() -> None:
        (story.commit if draw.random() < 0.85 else story.tombstone)(producer=draw.choice(producers))

    def idempotence() -> None:
        (story.commit if draw.random() < 0.7 else story.tombstone)(producer=idempotent, transactional=False)

    def marker() -> None:
        story.marker(draw.choice((*producers, *producers, idempotent)))

    def group_in_transaction() -> None:
        story.classic_group(producer=draw.choice(producers))

    acts: list[tuple[int, Callable[[], None]]] = [
        (6, commit),
        (3, story.tombstone),
        (3, story.classic_group),
        (2, story.group_tombstone),
    ]
    if generation.batches:
        acts += [(5, transactional), (4, marker), (1, idempotence), (1, group_in_transaction)]
    if generation.unknown_types:
        acts.append((1, story.stranger))
    weights = [weight for weight, _ in acts]
    for _ in range(draw.choice((1, 2, 3, 4, 6, 9, 14))):
        draw.choices([act for _, act in acts], weights)[0]()


def life(story: StoryWriter) -> None:
    """A classic group as clients use it: rebalances, commits in and outside of transactions, perhaps its deletion."""
    draw = story.random
    group = story.groups[0]
    for _ in range(draw.choice((1, 2, 3))):
        story.classic_group()
        for _ in range(draw.choice((0, 1, 3))):
            story.commit(group)
        if story.generation.batches and draw.random() < 0.5:
            for _ in range(draw.choice((1, 2))):
                story.commit(group, producer=story.first_producer)
            if draw.random() < 0.7:
                story.marker(story.first_producer)
    if draw.random() < 0.3:
        story.group_tombstone()


def offsets_only(story: StoryWriter) -> None:
    """A group without members, whose offsets may all be deleted again."""
    for _ in range(story.random.choice((1, 2, 4))):
        story.commit()
        if story.random.random() < 0.3:
            story.events.append(Event(((story.events[-1].pairs[0][0], None),)))


Plot = Callable[[StoryWriter], Any]
PLOTS: Sequence[tuple[int, str, Plot]] = ((5, "chaos", chaos), (3, "life", life), (2, "offsets", offsets_only))
