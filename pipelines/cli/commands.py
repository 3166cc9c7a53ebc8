"""Functions of the commands: each turns parsed arguments into calls of the module that does the work."""

import sys
from argparse import Namespace
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from pipelines.errors import UsageError

if TYPE_CHECKING:
    from coordinator_core.codec import Record
    from coordinator_core.log.entries import LogRecord
    from coordinator_core.state.era import Era
    from pipelines.configuration import Configuration
    from pipelines.job.run_options import RunOptions

_MINUTE_MS = 60_000

#: Values of `--expiry` and of `job.expiry`.
EXPIRY = ("observe", "apply")


def run(options: Namespace) -> int:
    """`grouplake run`, with or without a coordinator."""
    from pipelines.configuration import load_configuration
    from pipelines.job import job
    from pipelines.progress import print_progress
    from pipelines.timestamps import now_ms

    configuration = load_configuration(options.conf)
    run_options = _run_options(options, configuration)
    if options.with_coordinator is None:
        job.run(run_options, print_progress, now_ms)
        return 0

    from pipelines.coordinator import coordinator_options
    from pipelines.job.run_with_coordinator import following, run_with_coordinator

    serving = coordinator_options(options.with_coordinator, run_options.address.location, configuration.coordinator)
    run_with_coordinator(following(run_options, serving, options.trigger), serving, print_progress, now_ms)
    return 0


def _run_options(options: Namespace, configuration: "Configuration") -> "RunOptions":
    from pipelines.job.run_options import RunOptions
    from pipelines.source.address import parse_address

    section = configuration.job
    expiry = options.expiry or section["expiry"]
    if expiry not in EXPIRY:
        raise UsageError(f"job.expiry is {expiry!r}: must be one of {', '.join(EXPIRY)}")
    era = _era(options.era or section["era"])
    minutes = options.retention_minutes or section["retention_minutes"]
    if not minutes and options.with_coordinator is not None:
        from pipelines.coordinator import coordinator_config

        minutes = coordinator_config(configuration.coordinator).offsets_retention_minutes
    return RunOptions(
        address=parse_address(options.source),
        tables=options.tables,
        era=era,
        retention_ms=minutes * _MINUTE_MS or era.default_retention_ms,
        trigger=options.trigger or section["trigger"],
        expiry=expiry,
        now_ms=options.now,
        bulk_rows=section["bulk_rows"],
        max_records=section["max_records_per_batch"],
        lag_interval_seconds=configuration.lag["interval_seconds"],
        tasks=section["tasks"],
        spark=configuration.spark,
        kafka=configuration.kafka_options,
        kafka_jvm=configuration.kafka["jvm"],
    )


def sql(options: Namespace) -> int:
    """`grouplake sql`: print the result of a query."""
    from pipelines.query.engine import Snapshot
    from pipelines.query.output import to_stdout

    to_stdout(Snapshot.open(options.tables, options.as_of).query(options.query), options.format)
    return 0


def show(options: Namespace) -> int:
    """`grouplake show`: print records; undecodable ones and the positions of torn ends go to standard error."""
    from coordinator_core.log.errors import LogError
    from pipelines import show as printing
    from pipelines.configuration import load_configuration
    from pipelines.source.address import open_source, parse_address

    line_of: Callable[[LogRecord, Record], str | None]
    if options.format == "json":
        line_of = partial(printing.json_line, with_position=options.position)
    else:
        line_of = partial(printing.classic_line_of, era=_era(options.era).name, with_position=options.position)
    address = parse_address(options.source)
    kafka = load_configuration(options.conf).kafka_options
    problems = 0
    try:
        with closing(open_source(address, kafka)) as source:
            for found in printing.records(source):
                if isinstance(found, printing.LogProblem):
                    problems += 1
                    print(found, file=sys.stderr)
                elif (line := line_of(*found)) is not None:
                    print(line)
            for end in source.torn_ends():
                print(end, file=sys.stderr)
    except LogError as error:
        raise UsageError(str(error)) from error
    return 1 if problems else 0


def check(options: Namespace) -> int:
    """`grouplake check`: print the broken rules."""
    from pipelines.query.check import RULES
    from pipelines.query.check import check as find

    findings = find(options.tables)
    for found in findings:
        print(f"{found.rule}: broken {found.count} times, for example {found.example}")
    if not findings:
        print(f"{len(RULES)} rules hold")
    return 1 if findings else 0


def lag(options: Namespace) -> int:
    """`grouplake lag`: print the lag of groups."""
    from pipelines.query.lag_report import print_lag

    if bool(options.group) == options.all_groups:
        raise UsageError("name groups with --group, or all with --all-groups (see grouplake lag --help)")
    print_lag(
        options.tables,
        options.group or (),
        as_of=options.as_of,
        format_name=options.format,
        verbose=options.verbose,
        seconds=options.seconds,
    )
    return 0


#: Commands that read tables and write nothing.
READING = (sql, lag, check)


def maintain(options: Namespace) -> int:
    """`grouplake maintain`: compact the tables."""
    from pipelines.configuration import load_configuration
    from pipelines.maintain import Maintenance
    from pipelines.maintain import maintain as keep_small
    from pipelines.progress import print_progress

    limits = Maintenance(**load_configuration(options.conf).maintain)
    keep_small(options.tables, limits, datetime.now(UTC), print_progress)
    return 0


def coordinator(options: Namespace) -> int:
    """`grouplake coordinator`: serve until a signal."""
    from pipelines.configuration import load_configuration
    from pipelines.coordinator import coordinator_options, run_coordinator, until_signalled

    scheme, _, directory = options.log.partition(":")
    if scheme != "segments" or not directory:
        raise UsageError(f"--log {options.log!r}: expected a folder, segments:DIR")
    run_coordinator(coordinator_options(options.listen, directory, load_configuration(options.conf).coordinator), until_signalled)
    return 0


def demo(options: Namespace) -> int:
    """`grouplake demo`, with or without a Kafka broker."""
    if options.kafka is not None:
        from pipelines.demo.with_kafka import run_demo_with_kafka

        run_demo_with_kafka(options.kafka, options.tables)
    else:
        from pipelines.demo.demo import run_demo

        run_demo(options.tables)
    return 0


def example(options: Namespace) -> int:
    """`grouplake example`: write the example log and print its source address."""
    from pipelines.example.example_log import write_example_log

    print(write_example_log(options.directory))
    return 0


def cache(options: Namespace) -> int:
    """`grouplake cache`: list or remove entries of the cache."""
    import pyarrow as pa

    from pipelines.cache.folder import ALL, KINDS, cache_root, entries, remove
    from pipelines.query.output import to_stdout

    found = list(entries())
    if options.clear is None:
        rows = {
            "kind": [entry.kind for entry in found],
            "name": [entry.name for entry in found],
            "mb": [f"{entry.bytes / 1e6:,.1f}" for entry in found],
            "last_used": [datetime.fromtimestamp(entry.last_used, UTC).isoformat(timespec="seconds") for entry in found],
        }
        to_stdout(pa.table({name: pa.array(values, pa.string()) for name, values in rows.items()}), "table")
        print(f"{sum(entry.bytes for entry in found) / 1e6:,.1f} MB in {cache_root()}")
        return 0
    kinds = {entry.kind for entry in found}
    if options.clear not in {ALL, *KINDS, *kinds}:
        raise UsageError(
            f"--clear {options.clear}: no such kind: use {', '.join(sorted({*KINDS, *kinds}))}, or no kind to remove all"
        )
    for entry in found:
        if options.clear in (ALL, entry.kind):
            is_removed = remove(entry.path)
            print(f"{'removed' if is_removed else 'in use, kept'}: {entry.kind}/{entry.name}, {entry.bytes / 1e6:,.1f} MB")
    return 0


def completion(options: Namespace) -> int:
    """`grouplake completion`: print a completion script."""
    import shtab

    print(shtab.complete(options.parser, shell=options.shell))
    return 0


def _era(name: str) -> "Era":
    from coordinator_core.state.era import Era

    try:
        return Era.named(name)
    except ValueError as error:
        raise UsageError(str(error)) from error
