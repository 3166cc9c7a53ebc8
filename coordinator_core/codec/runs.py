"""Runs of rows that are equal in some columns."""

import numpy as np

from coordinator_core.codec.arrays import Int64s, Numbers

#: Far from 0, and more than 64 bits by more than a sum of floats is inexact.
_LARGE, _ABOVE_64_BITS = 2.0**62, 1.001 * 2.0**63


def begins_run(*columns: Numbers) -> Numbers:
    """True for each row in which a column differs from the row before, and for the first row."""
    begins = np.ones(len(columns[0]), np.bool_)
    begins[1:] = _differs(columns)
    return begins


def ends_run(*columns: Numbers) -> Numbers:
    """True for each row in which a column differs from the row after, and for the last row."""
    ends = np.ones(len(columns[0]), np.bool_)
    ends[:-1] = _differs(columns)
    return ends


def starts_of_runs(*columns: Numbers) -> Int64s:
    """The rows at which a run begins, and the number of rows at the end."""
    return np.append(np.flatnonzero(begins_run(*columns)), len(columns[0]))


def ranks_in_runs(*columns: Numbers) -> Int64s:
    """The number of rows before each row in its run."""
    starts = starts_of_runs(*columns)
    return np.arange(len(columns[0])) - np.repeat(starts[:-1], np.diff(starts))


def sums_of_runs(values: Int64s, starts: Int64s) -> Int64s:
    """The sum of each run that begins at `starts`, the nearest number of 64 bits where it has more. A run has rows."""
    wrapped = np.add.reduceat(values, starts)
    near = np.add.reduceat(values.astype(np.float64), starts)
    limits = np.iinfo(np.int64)
    # a sum that wraps once has the other sign; the float decides where it wraps more often
    overflows = (np.abs(near) > _ABOVE_64_BITS) | ((np.abs(near) > _LARGE) & ((wrapped < 0) != (near < 0)))
    found: Int64s = np.where(overflows, np.where(near < 0, limits.min, limits.max), wrapped)
    return found


def _differs(columns: tuple[Numbers, ...]) -> Numbers:
    """For each row but the first, whether a column differs from the row before."""
    first, *others = columns
    differs: Numbers = first[1:] != first[:-1]
    for column in others:
        differs = differs | (column[1:] != column[:-1])
    return differs
