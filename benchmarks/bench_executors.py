"""Cold load on executors with 1 and with 2 cores in all: how much a further core saves.

`python -m benchmarks.bench_executors [--records 50M] [--keys 200k] [--rounds 2] [--cores 1,2]`. Each executor is a JVM with one
core and its own Python worker, as on a cluster; Spark's mode `local-cluster` starts them on this machine. The driver shares its
cores with them. The best round counts; the first run of all warms caches and does not count.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.arguments import count, counts, parser, short
from benchmarks.logs import PARTITIONS, GeneratedLog, LogShape, describe, generated_log
from benchmarks.report import print_machine, print_table
from benchmarks.runs import Run, expect_tables, grouplake_run

_EXECUTOR_MB = 1024
_PHASES = ("read", "plan", "write_offsets", "write_offset_history")


def main(arguments: list[str] | None = None) -> None:
    parsing = parser(__doc__, records="50M", keys="200k", rounds=2)
    parsing.add_argument("--cores", type=counts, default=(1, 2), help="numbers of executors with one core (default 1,2)")
    parsing.add_argument("--partitions", type=count, default=PARTITIONS, help=f"log partitions (default {PARTITIONS})")
    options = parsing.parse_args(arguments)
    print_machine()
    for records in options.records:
        log = generated_log(LogShape(records, options.keys, partitions=options.partitions), options.cache)
        print(f"Log: {describe(log)}\n", flush=True)
        _load(log, options.cores[-1])
        best = [min((_load(log, cores) for _ in range(options.rounds)), key=_batch_seconds) for cores in options.cores]
        _report(log, options.cores, best)


def _load(log: GeneratedLog, cores: int) -> Run:
    with tempfile.TemporaryDirectory(prefix="grouplake-benchmark-") as scratch:
        conf = Path(scratch, "conf.toml")
        conf.write_text(f"""[spark]
master = "local-cluster[{cores},1,{_EXECUTOR_MB}]"
[spark.conf]
"spark.driver.host" = "127.0.0.1"
"spark.driver.bindAddress" = "127.0.0.1"
"spark.ui.enabled" = "false"
""")
        tables = Path(scratch, "tables")
        run = grouplake_run(f"segments:{log.directory}", tables, ["--conf", str(conf)])
        expect_tables(log, tables, run.batches)
    return run


def _report(log: GeneratedLog, cores: Sequence[int], runs: Sequence[Run]) -> None:
    phases = [run.phase_seconds() for run in runs]
    rows = [
        ("whole command", [run.seconds for run in runs]),
        ("until its batch begins", [run.seconds_to("batch 0") - _batch_seconds(run) for run in runs]),
        ("its batch", [_batch_seconds(run) for run in runs]),
        *((f"… {name}", [phase.get(name, 0.0) for phase in phases]) for name in _PHASES),
    ]
    head = (f"seconds, {short(log.shape.records)} records", *(f"{number} executor cores" for number in cores), "ratio")
    print_table(head, [(name, *(f"{value:.1f}" for value in values), _ratio(values)) for name, values in rows])


def _ratio(values: Sequence[float]) -> str:
    return f"{values[0] / values[-1]:.2f}" if values[-1] else ""


def _batch_seconds(run: Run) -> float:
    return sum(float((batch["finished_at"] - batch["started_at"]).total_seconds()) for batch in run.batches)


if __name__ == "__main__":
    main()
