"""Lag and Burrow's rules of many groups and partitions at one sample, from columns: CPU time of one core."""

import time

import numpy as np

from benchmarks.arguments import parser, short
from benchmarks.report import print_machine, print_table
from coordinator_core.health import (
    NONE,
    CommitColumns,
    FactColumns,
    GrowthStarts,
    SampleColumns,
    StatusSettings,
    TrendColumns,
    WindowColumns,
    burrow_rule_numbers,
    lag_columns,
)

_INTERVAL_MS = 30_000
_REQUEST_MS = 20
#: Samples of a partition: a day at an interval of five minutes, and a day as `lag.keep` thins it.
_SAMPLES = (288, 1_500)
#: Of the rules of Burrow, in random windows.
_RULES_THAT_OCCUR = 4


def main(arguments: list[str] | None = None) -> None:
    options = parser(__doc__, records="500k", keys="10k", rounds=3).parse_args(arguments)
    print_machine()
    head = ("group partitions", "topic partitions", "samples", "seconds", "M rows/s")
    print_table(head, [_row(options.records[0], options.keys, samples, options.rounds) for samples in _SAMPLES])
    print_table(("windows of ten commits", "seconds", "M rows/s"), [_windows(options.records[0], options.rounds)])


def _row(rows: int, partitions: int, per_partition: int, rounds: int) -> tuple[object, ...]:
    random = np.random.default_rng(1)
    rates = random.integers(1, 1_000, partitions)
    samples = _samples(rates, per_partition)
    partition = np.arange(rows) % partitions
    now = per_partition * _INTERVAL_MS
    # the record at the committed offset became readable at this time
    readable_at = random.integers(-now // 10, now, rows)
    offset = np.maximum(0, readable_at) * rates[partition] // 1_000
    commits = CommitColumns(
        partition,
        offset,
        committed_at_ms=np.full(rows, now),
        topic_id=partition,
        moved_at_ms=np.full(rows, now - _INTERVAL_MS),
    )
    slope, window, produced, consumed = (random.uniform(low, 900, rows) for low in (-900, 60, 0, 0))
    trend = TrendColumns(slope, window, produced, consumed, GrowthStarts.none(rows))
    facts = FactColumns(np.zeros(partitions, np.int64), np.zeros(partitions, np.int64), np.full(partitions, 7 * 86_400_000))
    seconds = []
    for _ in range(rounds):
        started = time.process_time()
        table = lag_columns(commits, samples, facts, trend=trend)
        seconds.append(time.process_time() - started)
    low, high = (table[name].to_numpy(zero_copy_only=False) for name in ("lag_seconds_low", "lag_seconds_high"))
    sampled_at = (per_partition - 1) * _INTERVAL_MS + _REQUEST_MS
    # the first millisecond in which the record exists
    truth = np.maximum(0, sampled_at - -(-(offset + 1) * 1_000 // rates[partition])) / 1_000
    bounded = ~np.isnan(high)
    assert bounded.sum() > rows // 2
    assert (low[bounded] <= truth[bounded] + 0.001).all()
    assert (truth[bounded] <= high[bounded] + 0.001).all()
    best = min(seconds)
    return short(rows), short(partitions), f"{len(samples.log_end) / 1e6:.1f} M", f"{best:.2f}", f"{rows / best / 1e6:.2f}"


def _windows(rows: int, rounds: int) -> tuple[object, ...]:
    """Burrow's rules for windows of commits 30 s apart, with lags of any trend."""
    random = np.random.default_rng(1)
    settings = StatusSettings()
    at = np.tile(np.arange(settings.window_commits) * _INTERVAL_MS, (rows, 1))
    offset = np.cumsum(random.integers(-1, 20, at.shape), axis=1)
    windows = WindowColumns(offset, at, random.integers(0, 50, at.shape), random.integers(0, 2, rows), offset[:, -1] + 1)
    now = settings.window_commits * _INTERVAL_MS
    seconds = []
    for _ in range(rounds):
        started = time.process_time()
        numbers = burrow_rule_numbers(windows, now, settings)
        seconds.append(time.process_time() - started)
    # no rule is left out, so no condition is skipped
    assert len(np.unique(numbers)) >= _RULES_THAT_OCCUR
    best = min(seconds)
    return short(rows), f"{best:.2f}", f"{rows / best / 1e6:.2f}"


def _samples(rates: "np.ndarray[tuple[int], np.dtype[np.int64]]", per_partition: int) -> SampleColumns:
    """Samples of topics that grow at a steady rate (records per second), all taken at the same times."""
    partitions = len(rates)
    asked = np.tile(np.arange(per_partition) * _INTERVAL_MS, partitions)
    log_end = asked * np.repeat(rates, per_partition) // 1_000
    return SampleColumns(
        starts=np.arange(partitions + 1) * per_partition,
        asked_at_ms=asked,
        answered_at_ms=asked + _REQUEST_MS,
        log_start=np.zeros_like(asked),
        log_end=log_end,
        last_stable=log_end,
        leader_epoch=np.zeros_like(asked),
        topic_id=np.repeat(np.arange(partitions), per_partition),
        reason=np.full(len(asked), NONE),
    )


if __name__ == "__main__":
    main()
