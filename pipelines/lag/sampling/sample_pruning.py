"""Samples that a job keeps in memory: those that the lag of the present commits needs, and few of the older ones. Times in ms.

The tables keep all samples of `lag.keep`. A day of them for 10,000 partitions is 14 million rows, and searching them would take
longer than all other parts of a sample. Groups read forwards, so samples before the last one that no group has read up to only
matter for the age of the first record of a log, and for resets to an old offset: there the bounds are an hour apart.
"""

import numpy as np
import pyarrow as pa

from coordinator_core.codec.arrays import Numbers
from coordinator_core.health import NONE, SampledPartitions, keep_rules, kept_samples
from coordinator_core.health.sample_columns import integers

#: Samples before those that the present commits need.
_KEEP = keep_rules("1h:all 24h:1h 30d:6h")
_ORDER = [("topic", "ascending"), ("partition", "ascending"), ("answered_at", "ascending")]


def pruned_samples(stored: pa.Table, positions: pa.Table, now_ms: int) -> pa.Table:
    """The samples to keep, sorted. `positions` has a row for each group and partition."""
    table = stored.sort_by(_ORDER)
    sampled = SampledPartitions(table)
    return table.filter(pa.array(kept_samples(sampled.columns, now_ms, _KEEP) | _needed(sampled, positions)))


def _needed(sampled: SampledPartitions, positions: pa.Table) -> Numbers:
    """Samples from the last one on whose log end all commits of the partition have reached."""
    columns = sampled.columns
    partition = sampled.partition_numbers(positions["topic"], positions["partition"])
    offset = integers(positions["committed_offset"])
    known = (partition >= 0) & (offset != NONE)
    least = np.full(len(columns.starts) - 1, np.iinfo(np.int64).max)
    np.minimum.at(least, partition[known], offset[known])
    of_row = np.repeat(np.arange(len(least)), np.diff(columns.starts))
    unread: Numbers = columns.log_end > least[of_row]
    precedes = np.append(unread[1:] & (of_row[1:] == of_row[:-1]), False)
    needed: Numbers = unread | precedes
    return needed
