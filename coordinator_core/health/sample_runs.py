"""Runs of equal samples, folded to their first and last sample.

An idle partition then costs two rows. Ages need the last sample of a run: it is the last moment at which the next record was
not readable.
"""

from collections.abc import Iterable, Sequence

from coordinator_core.health.end_offsets import EndOffsetSample


def fold_runs(samples: Iterable[EndOffsetSample]) -> tuple[EndOffsetSample, ...]:
    """Keep the first and the last sample of each run of equal values; samples of one topic partition, oldest first."""
    kept: tuple[EndOffsetSample, ...] = ()
    for sample in samples:
        kept = add_sample(kept, sample)
    return kept


def add_sample(kept: Sequence[EndOffsetSample], sample: EndOffsetSample) -> tuple[EndOffsetSample, ...]:
    """Add a newer sample to folded ones: it replaces the last sample of its run.

    Raises ValueError if the sample is older than the last one.
    """
    if kept and sample.answered_at_ms < kept[-1].answered_at_ms:
        raise ValueError(f"sample answered at {sample.answered_at_ms} ms after one of {kept[-1].answered_at_ms} ms")
    continues_run = len(kept) > 1 and kept[-2].values == kept[-1].values == sample.values
    return (*(kept[:-1] if continues_run else kept), sample)
