"""The time within which the next batch of a job is expected: readers call the tables old after it (docs/adr/0046)."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise

from pipelines.job.run_options import AVAILABLE_NOW, RunOptions, batch_ms
from pipelines.query.engine import Snapshot
from pipelines.tables.store import Batch, TableStore

#: Sources whose samples differ at every interval, so that each of them is a batch.
_SAMPLED_SCHEMES = ("kafka", "kafka-groups", "segments")

#: Distances of runs that are looked at, and the least number of them that must be alike.
_LAST_DISTANCES = 5
_LEAST_ALIKE = 3
#: Distances up to this factor are alike.
_ALIKE = 1.5
#: No scheduler starts runs more often; runs of a script may have any distance.
_LEAST_DISTANCE = timedelta(seconds=50)

#: First batch of each run: a writer epoch with a batch that read the log or took a sample. Maintenance has other phases.
_RUNS = """
SELECT min(started_at) AS at FROM batches
WHERE generation > {after} AND (phase_ms['read'] IS NOT NULL OR phase_ms['plan'] IS NOT NULL)
GROUP BY generation ORDER BY at DESC LIMIT {most}
"""
#: Writer epochs that are looked at: maintenance beside the runs takes some, and a run may take two.
_EPOCHS = 4 * _LAST_DISTANCES


def expected_interval(options: RunOptions, store: TableStore, last: Batch | None, now: datetime) -> int:
    """Expected seconds between two batches of the job, for a run that begins at `now`; 0 if none is expected.

    - A job that follows the log and samples writes a batch at each interval of its samples. Without samples it writes one only
      when the log has new records.
    - A run with AVAILABLE_NOW is followed by the next one of its schedule. A schedule that is not declared is the regular
      distance of the last runs, if they have one.
    """
    if options.trigger == AVAILABLE_NOW:
        return options.schedule_seconds or (0 if last is None else regular_distance([*_last_runs(store, last), now]))
    if not options.lag_interval_seconds or options.address.scheme not in _SAMPLED_SCHEMES:
        return 0
    return max(options.lag_interval_seconds, -(-batch_ms(options) // 1_000))


def _last_runs(store: TableStore, last: Batch) -> list[datetime]:
    """Starts of the last runs, in the order of time."""
    rows = Snapshot(store, last).query(_RUNS.format(after=last.generation - _EPOCHS, most=_LAST_DISTANCES))
    found: list[datetime] = rows["at"].to_pylist()
    return found[::-1]


def regular_distance(starts: Sequence[datetime]) -> int:
    """Seconds between runs that were started at these times: the greatest of the usual distances; 0 if there is no rule in them.

    A missed run, or a night without a scheduler, is one unusual distance among usual ones.
    """
    distances = [after - before for before, after in pairwise(starts)][-_LAST_DISTANCES:]
    if len(distances) < _LEAST_ALIKE:
        return 0
    usual = sorted(distances)[len(distances) // 2]
    alike = [each for each in distances if usual / _ALIKE <= each <= usual * _ALIKE]
    if len(alike) < _LEAST_ALIKE or usual < _LEAST_DISTANCE:
        return 0
    return -(-max(alike) // timedelta(seconds=1))
