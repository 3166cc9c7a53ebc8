"""Cold load: one new `grouplake run` from a live broker into new tables, compared with the broker's load of the partitions.

`python -m benchmarks.bench_cold_load [--records 2M,10M] [--keys 200k] [--rounds 3]`. Caches are warm (compiled code, page cache);
processes and tables are new. The broker runs with the JVM settings of Kafka's own scripts. Its load lasts, according to its log,
from the first start of a partition to the last end. The best round counts, for both.
"""

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.arguments import parser, short
from benchmarks.brokers import LoadTime, broker_with
from benchmarks.logs import LogShape, describe, generated_log
from benchmarks.report import print_machine, print_table
from benchmarks.runs import Run, expect_tables, grouplake_run
from coordinator_core.log.compression import Compression

#: Shorter phases of a batch are not listed.
_SHORTEST_PHASE = 0.05


@dataclass
class Measured:
    """The best rounds of both at one size."""

    records: int
    broker: LoadTime
    run: Run


def main(arguments: list[str] | None = None) -> None:
    parsing = parser(__doc__, records="2M,10M", keys="200k", rounds=3)
    parsing.add_argument("--compression", choices=("none", "lz4"), default="none")
    options = parsing.parse_args(arguments)
    print_machine()
    measured = []
    for number, records in enumerate(options.records):
        shape = LogShape(records, options.keys, compression=Compression[options.compression.upper()])
        measured.append(_measure(shape, options.cache, options.rounds, warm_up=number == 0))
    _report(measured)


def _measure(shape: LogShape, cache: Path, rounds: int, *, warm_up: bool) -> Measured:
    log = generated_log(shape, cache)
    print(f"Log: {describe(log)}\n", flush=True)
    with broker_with(log) as broker, tempfile.TemporaryDirectory(prefix="grouplake-benchmark-") as scratch:
        loads = [broker.reload() for _ in range(rounds)]
        assert all(load.records == shape.records for load in loads)
        runs = []
        for number in range(rounds + warm_up):
            tables = Path(scratch, "tables")
            run = grouplake_run(f"kafka://{broker.bootstrap}/__consumer_offsets", tables)
            expect_tables(log, tables, run.batches)
            shutil.rmtree(tables)
            if number or not warm_up:
                runs.append(run)
    return Measured(shape.records, min(loads, key=lambda load: load.wall), min(runs, key=lambda run: run.seconds))


def _report(measured: list[Measured]) -> None:
    sizes = [short(one.records) for one in measured]
    broker, whole = [one.broker.wall for one in measured], [one.run.seconds for one in measured]
    batch = [_batch_seconds(one.run) for one in measured]
    rows = [
        ("broker's own load, first start to last end", broker),
        ("broker's own load, sum over partitions", [one.broker.total for one in measured]),
        ("broker, start of its process to the end of its load", [one.broker.since_start for one in measured]),
        ("`grouplake run`, whole command", whole),
        ("… until it starts Spark", [one.run.seconds_to("starting Spark") for one in measured]),
        ("… until its batch begins", [one.run.seconds_to("batch 0") - _batch_seconds(one.run) for one in measured]),
        ("… its batch", batch),
        ("… after its batch", [one.run.seconds - one.run.seconds_to("batch 0") for one in measured]),
    ]
    print_table(["seconds", *sizes], [(name, *(f"{value:.1f}" for value in values)) for name, values in rows])
    phases = [one.run.phase_seconds() for one in measured]
    names = dict.fromkeys(name for phase in phases for name, seconds in phase.items() if seconds >= _SHORTEST_PHASE)
    print_table(["phase of the batch, s", *sizes], [(n, *(f"{phase.get(n, 0):.2f}" for phase in phases)) for n in names])
    if len(measured) > 1:
        more = (measured[-1].records - measured[0].records) / 1e6
        slopes = [(values[-1] - values[0]) / more for values in (broker, batch, whole)]
        print_table(
            ["seconds per further million records", "", "of the broker's"],
            [
                (name, f"{slope:.2f}", f"{slope / slopes[0]:.2f}")
                for name, slope in zip(("broker's own load", "batch of the run", "whole command"), slopes, strict=True)
            ],
        )


def _batch_seconds(run: Run) -> float:
    return sum(float((batch["finished_at"] - batch["started_at"]).total_seconds()) for batch in run.batches)


if __name__ == "__main__":
    main()
