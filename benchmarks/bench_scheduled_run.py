"""Duration of a scheduled `grouplake run` (available-now) that finds some new records, by number of offsets in the tables.

Each run is a fresh process, started as from a shell, over segments that have grown since the run before it. The log, the tables
and compiled code are in the file cache; `--conf` measures other settings.
"""

import argparse
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.arguments import cache_folder, count, counts, short
from benchmarks.large_tables import TablesShape, copied, large_tables
from benchmarks.offset_changes import Changes, GrowingLog
from benchmarks.report import print_machine, print_table
from benchmarks.runs import Run, grouplake_run
from pipelines.runtime.timestamps import now_ms

#: The first run records the classes that Spark loads, and sees the first sample of a process.
_UNCOUNTED = 2


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--offsets", type=counts, default=counts("10k,1M"), help="offsets in the tables")
    parser.add_argument("--records", type=counts, default=counts("1k"), help="new records per run")
    parser.add_argument("--groups", type=count, default=20, help="groups that the new records belong to")
    parser.add_argument("--rounds", type=int, default=5, help="measured runs per case")
    parser.add_argument("--conf", action="append", metavar="[LABEL=]FILE", help="configuration of the run; repeat to compare")
    parser.add_argument("--cache", type=Path, default=cache_folder(), help="folder of generated tables")
    options = parser.parse_args(arguments)
    print_machine()
    options.cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.cache) as scratch:
        rows = list(cases(options, Path(scratch)))
    print_table(
        ["offsets", "new records", "configuration", "median s", "worst s", "to the batch", "batch", "longest phases, ms"], rows
    )


def cases(options: argparse.Namespace, scratch: Path) -> Iterator[list[object]]:
    """One row per case."""
    for size in options.offsets:
        for records in options.records:
            for conf in options.conf or ("default=",):
                label, _, file = conf.rpartition("=")
                runs = measured(options, size, records, ["--conf", file] if file else [], scratch)
                row = [short(size), short(records), label or file, *figures(runs)]
                print(*row, sep="; ", file=sys.stderr, flush=True)
                yield row


def measured(options: argparse.Namespace, size: int, records: int, arguments: Sequence[str], scratch: Path) -> list[Run]:
    """Runs in sequence, each over as many new records."""
    shape = TablesShape(size)
    store = copied(large_tables(shape.offsets, options.cache), scratch / "tables")
    changes = Changes(shape)
    last = store.last_batch()
    assert last is not None
    changes.go_on(last.next_offsets)
    shutil.rmtree(scratch / "log", ignore_errors=True)
    log = GrowingLog(scratch / "log", changes.next_offsets)
    runs = []
    for _ in range(_UNCOUNTED + options.rounds):
        log.append(changes.round(max(options.groups, records // 50), records, now_ms()))
        run = grouplake_run(f"segments:{log.folder}", scratch / "tables", arguments)
        read = [batch for batch in run.batches if batch["records_read"]][-1]
        assert dict(read["next_offsets"]) == changes.next_offsets, "the tables do not have the whole log"
        runs.append(run)
    return runs[_UNCOUNTED:]


def figures(runs: Sequence[Run]) -> list[str]:
    """Median and worst seconds; seconds until the batch begins, and of the batch; its longest phases."""
    seconds = [run.seconds for run in runs]
    ends = [run.seconds_to("batch") for run in runs]
    batches = [[batch for batch in run.batches if batch["records_read"]][-1] for run in runs]
    lasted = [(batch["finished_at"] - batch["started_at"]).total_seconds() for batch in batches]
    begins = [end - took for end, took in zip(ends, lasted, strict=True)]
    phases = [dict(batch["phase_ms"]) for batch in batches]
    middle = {name: statistics.median([each.get(name, 0) for each in phases]) for name in phases[0]}
    longest = sorted(middle.items(), key=lambda item: -item[1])[:3]
    described = ", ".join(f"{name} {ms:.0f}" for name, ms in longest if ms)
    return [
        *(f"{number:.2f}" for number in (statistics.median(seconds), max(seconds), statistics.median(begins))),
        f"{statistics.median(lasted):.2f}",
        described,
    ]


if __name__ == "__main__":
    main()
