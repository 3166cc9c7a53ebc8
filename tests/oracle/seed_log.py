"""A seed: the stories of some hundred groups, dealt out to log partitions of its own and written as segment files."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from modern_stories import MODERN_PLOTS
from segment_builder import LogBuilder, compact
from stories import PLOTS, Event, Setting, StoryWriter

from coordinator_core.codec import Record, encode
from coordinator_core.codec.messages.offsets import OffsetCommitKey, OffsetCommitValue
from coordinator_core.log.compression import Compression
from coordinator_core.log.partitioner import partition_for

#: Log partitions of a seed; in the second one of generations that know them, the new group types appear.
PARTITIONS_PER_SEED = 2
STORIES_PER_PARTITION = 30
_PRODUCERS_PER_STORY = 3
_FIRST_PRODUCER = 1000
_OLD_COMPRESSIONS = (Compression.NONE, Compression.NONE, Compression.GZIP, Compression.SNAPPY)


@dataclass
class SeedLog:
    """The groups of a seed by log partition.

    `sentinels` (log partition → group) have one offset, the last of the log: it exists once the partition is loaded, and is gone
    once it was swept.
    """

    seed: int
    groups: dict[str, int] = field(default_factory=dict)
    sentinels: dict[int, str] = field(default_factory=dict)

    def everyone(self) -> list[str]:
        """All groups."""
        return [*self.groups, *self.sentinels.values()]


def write_seed(
    builder: LogBuilder, seed: int, setting: Setting, first_partition: int, partitions: int, *, only: str | None = None
) -> SeedLog:
    """Write the log of `seed` into partitions from `first_partition` on, out of `partitions`.

    With `only`, just the story of that group is written. The same arguments give the same log.
    """
    draw = random.Random(f"{seed}/{setting.generation.version}")
    log = SeedLog(seed)
    for partition in range(first_partition, first_partition + PARTITIONS_PER_SEED):
        modern = setting.generation.modern_groups and partition % PARTITIONS_PER_SEED == 1
        stories, sentinel = [], _named(f"s{seed}-sentinel", partition, partitions)
        for number in range(STORIES_PER_PARTITION):
            plots = MODERN_PLOTS if modern else PLOTS
            _, title, plot = draw.choices(plots, [weight for weight, _, _ in plots])[0]
            # now and then two groups share their transactions
            suffixes = ("", "-é✓") if title == "chaos" and number % 5 == 0 else ("",)
            names = [f"s{seed}-{title}-{number}{suffix}" for suffix in suffixes]
            groups = tuple(_named(name, partition, partitions) for name in names)
            # each story draws from its own source, so that it does not depend on the other stories
            own = random.Random(f"{seed}/{setting.generation.version}/{partition - first_partition}/{number}")
            story = StoryWriter(own, setting, groups, _FIRST_PRODUCER + number * _PRODUCERS_PER_STORY)
            plot(story)
            if only is None or only in groups:
                stories.append(story.events)
                log.groups |= dict.fromkeys(groups, partition)
        log.sentinels[partition] = sentinel
        events = [*_shuffled(draw, stories), _sentinel_event(sentinel, setting)]
        _write_partition(builder, partition, events, draw, setting, compactable=not modern)
    return log


def _named(name: str, partition: int, partitions: int) -> str:
    """`name` with a suffix that hashes to the partition."""
    return next(found for n in range(100 * partitions) if partition_for(found := f"{name}.{n}", partitions) == partition)


def _sentinel_event(group: str, setting: Setting) -> Event:
    long_ago = setting.now_ms - 10 * setting.retention_ms
    return Event((encode(Record(1, OffsetCommitKey(group, "orders", 0), OffsetCommitValue(1, commit_timestamp=long_ago), 1)),))


def _shuffled(draw: random.Random, stories: Sequence[Sequence[Event]]) -> Iterator[Event]:
    """The events of all stories in random order, each story in its own order."""
    waiting = [group_story for events in stories for group_story in [iter(events)] * len(events)]
    draw.shuffle(waiting)
    return (next(events) for events in waiting)


def _write_partition(
    builder: LogBuilder, partition: int, events: list[Event], draw: random.Random, setting: Setting, *, compactable: bool
) -> None:
    generation = setting.generation
    if draw.random() < 0.2:
        builder.skip(partition, draw.choice((1, 1000, 2**33)))
    first_batch = len(events)
    if generation.batches:
        oldest = next((index for index, event in enumerate(events) if not event.is_plain), len(events))
        first_batch = draw.choice((0, oldest // 2, oldest))
    for index, chunk in _chunks(draw, events):
        at = setting.now_ms - draw.randrange(1000)
        if index and draw.random() < 0.02:
            builder.roll(partition)
        if chunk[0].marker is not None:
            builder.marker(partition, chunk[0].producer, bool(chunk[0].marker), timestamp=at)
            continue
        pairs = [pair for event in chunk for pair in event.pairs]
        if index < first_batch:
            builder.append_messages(
                partition, pairs, magic=draw.choice((0, 1)), compression=draw.choice(_OLD_COMPRESSIONS), timestamp=at
            )
        else:
            compressions = [each for each in Compression if generation.zstd or each is not Compression.ZSTD]
            builder.append(
                partition,
                pairs,
                timestamp=at,
                producer_id=chunk[0].producer,
                transactional=chunk[0].transactional,
                compression=draw.choice((Compression.NONE, *compressions)),
            )
    if generation.batches and compactable and draw.random() < 0.3:
        records = builder.records(partition)
        upto = draw.choice((None, records[len(records) // 2].offset))
        left = compact(records, upto=upto, drop_tombstones=draw.random() < 0.5, drop_markers=draw.random() < 0.5)
        builder.rewrite(partition, left)


def _chunks(draw: random.Random, events: Sequence[Event]) -> Iterator[tuple[int, list[Event]]]:
    """Runs of plain events that share a batch, and single others; with the index of the first."""
    start = 0
    while start < len(events):
        end = start + 1
        while end < len(events) and events[start].is_plain and events[end].is_plain and draw.random() < 0.5:
            end += 1
        yield start, list(events[start:end])
        start = end
