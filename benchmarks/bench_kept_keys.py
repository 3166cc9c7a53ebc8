"""Cold load of logs with more and more keys: time and memory of the driver, below and above `job.bulk_rows`.

`python -m benchmarks.bench_kept_keys [--kept 500k,1M,4M,10M] [--bulk-rows 2M] [--heap 1g]`. Every key has about 1.3 records. With
more kept rows than `bulk_rows` the executors write them. `--heap` is the limit of the heap of the JVM, which in a local session
has driver and executors. Peaks are the kernel's high-water marks of resident memory.
"""

import tempfile
from pathlib import Path

from deltalake import DeltaTable

from benchmarks.arguments import count, counts, parser, short
from benchmarks.logs import GeneratedLog, LogShape, describe, generated_log
from benchmarks.report import print_machine, print_table
from benchmarks.runs import Run, expect_tables, grouplake_run

_RECORDS_PER_KEY = 1.3
_HEAD = (
    "keys",
    "kept rows",
    "files of offsets",
    "read, s",
    "plan, s",
    "write, s",
    "whole command, s",
    "driver (Python), MiB",
    "JVM, MiB",
)


def main(arguments: list[str] | None = None) -> None:
    parsing = parser(__doc__, records="0", keys="0", rounds=1)
    parsing.add_argument("--kept", type=counts, default=counts("500k,1M,4M,10M"), help="keys (default 500k,1M,4M,10M)")
    parsing.add_argument("--bulk-rows", type=count, default=2_000_000, help="job.bulk_rows (default 2M)")
    parsing.add_argument("--heap", default="1g", help="heap of the JVM (default 1g)")
    options = parsing.parse_args(arguments)
    print_machine()
    print(f"bulk_rows {short(options.bulk_rows)}, heap {options.heap}\n")
    rows = []
    for keys in options.kept:
        log = generated_log(LogShape(int(keys * _RECORDS_PER_KEY), keys), options.cache)
        print(f"Log: {describe(log)}", flush=True)
        rows.append(_measured(log, options.bulk_rows, options.heap))
    print()
    print_table(_HEAD, rows)


def _measured(log: GeneratedLog, bulk_rows: int, heap: str) -> tuple[object, ...]:
    with tempfile.TemporaryDirectory(prefix="grouplake-benchmark-") as scratch:
        conf = Path(scratch, "conf.toml")
        conf.write_text(f'[job]\nbulk_rows = {bulk_rows}\n[lag]\ninterval_seconds = 0\n[spark]\ndriver_memory = "{heap}"\n')
        tables = Path(scratch, "tables")
        run = grouplake_run(f"segments:{log.directory}", tables, ["--conf", str(conf)], sample_memory=True)
        expect_tables(log, tables, run.batches)
        files = len(DeltaTable(tables / "offsets").file_uris())
    return (short(log.shape.keys), f"{_kept(run):,}", f"{files:,}", *_times(run), *_memory(run))


def _kept(run: Run) -> int:
    return sum(batch["records_kept"] for batch in run.batches)


def _times(run: Run) -> tuple[str, ...]:
    phases = run.phase_seconds()
    written = sum(seconds for name, seconds in phases.items() if name.startswith("write_"))
    return tuple(f"{value:.1f}" for value in (phases.get("read", 0), phases.get("plan", 0), written, run.seconds))


def _memory(run: Run) -> tuple[str, ...]:
    jvm = max(peak.mib for peak in run.peaks.values() if Path(peak.command.split()[0]).name == "java")
    return (f"{run.peaks[run.pid].mib:,.0f}", f"{jvm:,.0f}")


if __name__ == "__main__":
    main()
