"""Thinning of many partitions or groups in numpy: the older a sample, the wider its distance to the next one. Times in ms."""

from collections.abc import Sequence

import numpy as np

from coordinator_core.codec.arrays import Int64s, Numbers
from coordinator_core.codec.runs import begins_run, ends_run
from coordinator_core.health.sample_columns import NONE, LogEvents, SampleColumns
from coordinator_core.health.sample_retention import DEFAULT_KEEP, KeepRule, spans_of


def kept_samples(samples: SampleColumns, now_ms: int, rules: Sequence[KeepRule] = DEFAULT_KEEP) -> Numbers:
    """True for the samples that remain.

    - the last one of each span of a rule's distance, and the first one after an empty span: it may be the end of a folded run;
    - both samples around a recreation or truncation;
    - the newest sample that is older than all rules, while newer ones exist: a record that no member has read for 30 days grows
      older still.
    """
    at, starts = samples.answered_at_ms, samples.starts
    rows = len(at)
    good = samples.log_end != NONE
    horizon = spans_of(now_ms, rules)[-1].from_ms
    kept = _of_spans(starts, at, good, now_ms, rules) & (at >= horizon)
    partition = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    # the newest successful sample that is older than all rules, or else the first one
    oldest = starts[:-1].copy()
    old = np.flatnonzero(good & (at < horizon))
    oldest[partition[old]] = old
    kept[oldest] = True
    kept[samples.newest] = True
    # an event has two rows: just before and just after it
    rows_of_good = np.flatnonzero(good)
    starts_of_good = np.concatenate([[0], np.cumsum(good)])[starts]
    events = LogEvents(
        samples.log_start[good], samples.log_end[good], samples.leader_epoch[good], samples.topic_id[good], starts_of_good
    )
    after = np.sort(np.concatenate([events.recreated, events.truncated]))
    of_partition = partition[rows_of_good[after]]
    is_last = ends_run(of_partition)
    for row in (rows_of_good[after - 1], rows_of_good[after]):
        kept[row[is_last | (row >= oldest[of_partition])]] = True
    expired = at[samples.newest] < horizon if rows else np.zeros(0, np.bool_)
    remaining: Numbers = kept & ~expired[partition]
    return remaining


def kept_times(starts: Int64s, at_ms: Int64s, now_ms: int, rules: Sequence[KeepRule] = DEFAULT_KEEP) -> Numbers:
    """True for the times that remain of a history without events, such as the lag of groups; `starts` as in `SampleColumns`."""
    kept = _of_spans(starts, at_ms, np.full(len(at_ms), True), now_ms, rules)
    remaining: Numbers = kept & (at_ms >= spans_of(now_ms, rules)[-1].from_ms)
    return remaining


def _of_spans(starts: Int64s, at: Int64s, good: Numbers, now_ms: int, rules: Sequence[KeepRule]) -> Numbers:
    """The last row of each span, and the first after an empty one; failed samples have their own spans."""
    spans = spans_of(now_ms, rules)
    distance = np.select([at >= span.from_ms for span in spans], [span.distance_ms for span in spans], spans[-1].distance_ms)
    number = np.where(distance > 0, at // np.maximum(distance, 1), np.arange(len(at)))
    partition = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    kept = np.zeros(len(at), np.bool_)
    for rows in (np.flatnonzero(good), np.flatnonzero(~good)):
        p, d, n = partition[rows], distance[rows], number[rows]
        is_first = begins_run(p)
        is_first[1:] |= at[rows][:-1] // np.maximum(d[1:], 1) < n[1:] - 1
        kept[rows[ends_run(p, d, n) | (is_first & (d > 0))]] = True
    return kept
