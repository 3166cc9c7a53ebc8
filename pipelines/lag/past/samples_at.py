"""Samples of end offsets as they were known at a past time. Times in ms.

The tables hold the first and the last sample of a run of equal ones. A time within a run has a sample with the values of the
run, since the log did not change. The newest run may still go on: then `lag` has the time of its newest sample.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.health import EndOffsetSample, SampledPartitions, samples_table
from pipelines.query.engine import Snapshot
from pipelines.runtime.timestamps import to_ms
from pipelines.tables.store import is_in

_SAMPLES = "SELECT * FROM end_offsets WHERE {topics} ORDER BY topic, partition, answered_at, batch_id"
_NEWEST = "SELECT topic, partition, max(sampled_at) AS sampled_at FROM lag WHERE {topics} GROUP BY topic, partition"


def samples_until(snapshot: Snapshot, at_ms: int, topics: Collection[str]) -> dict[TopicPartition, tuple[EndOffsetSample, ...]]:
    """The samples of the partitions of some topics that were answered until `at_ms`, with the one of a run that spans it."""
    found = {partition: known_samples(*taken, at_ms) for partition, taken in all_samples(snapshot, topics).items()}
    return {partition: samples for partition, samples in found.items() if samples}


def sampled_until(snapshot: Snapshot, at_ms: int, topics: Collection[str]) -> SampledPartitions:
    """The same as columns."""
    known = samples_until(snapshot, at_ms, topics)
    return SampledPartitions(samples_table(sample for samples in known.values() for sample in samples))


def all_samples(
    snapshot: Snapshot, topics: Collection[str]
) -> dict[TopicPartition, tuple[tuple[EndOffsetSample, ...], int | None]]:
    """All stored samples of the partitions of some topics, oldest first, and the time of the newest sample in `lag`."""
    if "end_offsets" not in snapshot.batch.versions or not topics:
        return {}
    named = is_in("topic", topics)
    newest = {
        TopicPartition(row["topic"], row["partition"]): to_ms(row["sampled_at"])
        for row in snapshot.query(_NEWEST.format(topics=named)).to_pylist()
    }
    taken: dict[TopicPartition, list[EndOffsetSample]] = {}
    for row in snapshot.query(_SAMPLES.format(topics=named)).to_pylist():
        taken.setdefault(TopicPartition(row["topic"], row["partition"]), []).append(sample_of(row))
    return {partition: (tuple(samples), newest.get(partition)) for partition, samples in taken.items()}


def known_samples(samples: Sequence[EndOffsetSample], newest_ms: int | None, at_ms: int) -> tuple[EndOffsetSample, ...]:
    """The samples of one partition until `at_ms`. `newest_ms` is the time of its newest sample, which may not be stored."""
    known = [sample for sample in samples if sample.answered_at_ms <= at_ms]
    if not known:
        return ()
    last = known[-1]
    later = samples[len(known)] if len(samples) > len(known) else None
    run_end = (newest_ms or 0) if later is None else later.answered_at_ms if later.values == last.values else 0
    until = min(at_ms, run_end)
    if until > last.answered_at_ms:
        known.append(replace(last, asked_at_ms=until, answered_at_ms=until))
    return tuple(known)


def sample_of(row: Mapping[str, Any]) -> EndOffsetSample:
    """A row of `end_offsets` as a sample."""
    names = ("log_start", "log_end", "last_stable", "leader_epoch", "reason")
    return EndOffsetSample(
        row["topic_id"],
        row["topic"],
        row["partition"],
        to_ms(row["asked_at"]),
        to_ms(row["answered_at"]),
        *(row[name] for name in names),
    )
