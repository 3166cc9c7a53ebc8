"""Peak memory of each process of a run over a large topic, to show that the driver does not grow with the topic.

`python -m benchmarks.bench_memory [--records 2M,10M] [--keys 1M] [--batch-records 500k]`. Peaks are the kernel's high-water marks
of resident memory, shared pages included.
"""

import tempfile
from pathlib import Path

from benchmarks.arguments import count, parser, short
from benchmarks.logs import GeneratedLog, LogShape, describe, generated_log
from benchmarks.processes import Peak
from benchmarks.report import print_machine, print_table
from benchmarks.runs import Run, expect_tables, grouplake_run

_HEAD = (
    "records",
    "keys",
    "batches",
    "driver, MiB",
    "JVM, MiB",
    "largest Python worker, MiB",
    "Python workers",
    "whole command, s",
)


def main(arguments: list[str] | None = None) -> None:
    parsing = parser(__doc__, records="2M,10M", keys="1M", rounds=1)
    parsing.add_argument(
        "--batch-records", type=count, default=500_000, help="records per batch of the run in many (default 500k)"
    )
    options = parsing.parse_args(arguments)
    print_machine()
    rows = []
    for records in options.records:
        log = generated_log(LogShape(records, options.keys), options.cache)
        print(f"Log: {describe(log)}", flush=True)
        rows.append(_row(log, _measure(log, 0)))
    rows.append(_row(log, _measure(log, options.batch_records)))
    print()
    print_table(_HEAD, rows)


def _measure(log: GeneratedLog, records_per_batch: int) -> Run:
    with tempfile.TemporaryDirectory(prefix="grouplake-benchmark-") as scratch:
        conf = Path(scratch, "conf.toml")
        conf.write_text(f"[job]\nmax_records_per_batch = {records_per_batch}\n")
        tables = Path(scratch, "tables")
        run = grouplake_run(f"segments:{log.directory}", tables, ["--conf", str(conf)], sample_memory=True)
        expect_tables(log, tables, run.batches)
    return run


def _row(log: GeneratedLog, run: Run) -> tuple[object, ...]:
    workers = [peak for peak in run.peaks.values() if _is_worker(peak)]
    jvm = max(peak.mib for peak in run.peaks.values() if Path(peak.command.split()[0]).name == "java")
    largest = max(peak.mib for peak in workers)
    sizes = (short(log.shape.records), short(log.shape.keys), len(run.batches))
    driver = run.peaks[run.pid].mib
    return (*sizes, f"{driver:.0f}", f"{jvm:.0f}", f"{largest:.0f}", len(workers), f"{run.seconds:.0f}")


def _is_worker(peak: Peak) -> bool:
    """Whether it is a Python process of the data source: a task, the reader of offsets, or a daemon that forks them."""
    return any(f" -m {package}" in peak.command for package in ("pyspark.", "pipelines.source."))


if __name__ == "__main__":
    main()
