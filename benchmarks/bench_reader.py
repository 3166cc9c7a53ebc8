"""Speed of the reader: records per second from segments and a live broker, compared with Spark's Kafka source and aiokafka.

`python -m benchmarks.bench_reader [--records 2M,10M] [--only segments|broker]`. CPU time is that of the reading process (of
the JVM for Spark), without the broker; "per core" is records per CPU second. Each reader first reads everything once to warm up;
then the best round counts.
"""

import time
from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from typing import Any

from benchmarks.arguments import parser, short
from benchmarks.brokers import broker_with
from benchmarks.logs import GeneratedLog, LogShape, describe, generated_log
from benchmarks.processes import cpu_seconds
from benchmarks.readers import Seen, aiokafka, open_broker, open_segments, parse_only, reduce_all, spark_kafka
from benchmarks.report import print_machine, print_table
from coordinator_core.log.compression import Compression

_HEAD = ("records", "log", "records per batch", "reader", "does", "M records/s", "M records/s per core", "MB/s")
_BATCH = 30
#: Measured only at the first size.
_LARGE_BATCH = 1000
_TOKEN_PROVIDER = "4.0.0"


def main(arguments: list[str] | None = None) -> None:
    parsing = parser(__doc__, records="2M,10M", keys="200k", rounds=3)
    parsing.add_argument("--only", choices=("segments", "broker"), help="run one half (default: both)")
    parsing.add_argument("--compressions", default="none,lz4", help="of the logs (default none,lz4)")
    parsing.add_argument("--without-rivals", action="store_true", help="without Spark's source and aiokafka")
    options = parsing.parse_args(arguments)
    print_machine("aiokafka", "kafka-python")
    codecs = [Compression[name.upper()] for name in options.compressions.split(",")]
    shapes = [
        LogShape(records, options.keys, per_batch=per_batch, compression=codec)
        for records in options.records
        for codec in codecs
        for per_batch in (_BATCH, _LARGE_BATCH)
        if per_batch == _BATCH or records == options.records[0]
    ]
    rows = []
    with ExitStack() as stack:
        spark = None
        for shape in shapes:
            log = generated_log(shape, options.cache)
            print(f"Log: {describe(log)}", flush=True)
            if options.only != "broker":
                rows += _segments(log, options.rounds)
            if options.only != "segments" and shape.per_batch != _LARGE_BATCH:
                if spark is None and not options.without_rivals:
                    spark = stack.enter_context(_spark())
                rows += _broker(log, options.rounds, spark)
    print()
    print_table(_HEAD, rows)


def _segments(log: GeneratedLog, rounds: int) -> list[tuple[str, ...]]:
    source = open_segments(str(log.directory))
    return [
        _row(log, "segments:", "parse", _measure(log, lambda: parse_only(source), time.process_time, rounds)),
        _row(log, "segments:", "parse, decode, reduce", _measure(log, lambda: reduce_all(source), time.process_time, rounds)),
    ]


def _broker(log: GeneratedLog, rounds: int, spark: Any) -> list[tuple[str, ...]]:
    with broker_with(log) as broker:
        source, partitions = open_broker(broker.bootstrap), log.shape.partitions
        rows = [
            _row(log, "kafka://", "parse", _measure(log, lambda: parse_only(source), time.process_time, rounds)),
            _row(log, "kafka://", "parse, decode, reduce", _measure(log, lambda: reduce_all(source), time.process_time, rounds)),
        ]
        if spark is not None:
            jvm = spark.sparkContext._gateway.proc.pid
            through_spark = _measure(
                log, lambda: spark_kafka(spark, broker.bootstrap, partitions), lambda: cpu_seconds(jvm), rounds
            )
            rows.append(_row(log, "Spark's Kafka source", "bytes only", through_spark))
            through_aiokafka = _measure(log, lambda: aiokafka(broker.bootstrap, partitions), time.process_time, rounds)
            rows.append(_row(log, "aiokafka", "bytes only", through_aiokafka))
    return rows


def _measure(log: GeneratedLog, read: Callable[[], Seen], cpu: Callable[[], float], rounds: int) -> tuple[float, float]:
    """Best wall-clock and best CPU seconds of all rounds."""
    walls, cpus = [], []
    for number in range(rounds + 1):
        cpu_before, started = cpu(), time.perf_counter()
        seen = read()
        wall, used = time.perf_counter() - started, cpu() - cpu_before
        _expect(log, seen)
        if number:
            walls.append(wall)
            cpus.append(used)
    return min(walls), min(cpus)


def _expect(log: GeneratedLog, seen: Seen) -> None:
    """Raise an error unless the reader has seen the generated log."""
    assert seen.records == log.shape.records, f"{seen.records} records read, {log.shape.records} in the log"
    if not seen.reductions:
        return
    assert sum(len(each.commits) for each in seen.reductions) == log.live_keys
    assert sum(len(each.tombstones) for each in seen.reductions) == log.removed_keys
    assert sum(len(each.others) for each in seen.reductions) == log.group_records
    expected = log.expected_offsets()
    groups = {group for group, _, _ in expected}
    columns = ["group_id", "topic", "partition", "committed_offset"]
    rows = (row for each in seen.reductions for row in zip(*(each.commits[name].to_pylist() for name in columns), strict=True))
    actual = {row[:3]: row[3] for row in rows if row[0] in groups}
    assert expected.items() <= actual.items()


def _row(log: GeneratedLog, reader: str, does: str, seconds: tuple[float, float]) -> tuple[str, ...]:
    wall, used = seconds
    rates = (log.shape.records / wall / 1e6, log.shape.records / used / 1e6)
    name = "uncompressed" if log.shape.compression is Compression.NONE else log.shape.compression.name.lower()
    size = (short(log.shape.records), name, str(log.shape.per_batch), reader, does)
    return (*size, *(f"{rate:.2f}" for rate in rates), f"{log.bytes / wall / 1e6:,.0f}")


@contextmanager
def _spark() -> Any:
    from pipelines.job.spark.session import start_session
    from pipelines.job.spark.spark_kafka import connector_jars
    from pipelines.runtime.configuration import load_configuration

    settings = {**load_configuration(None).spark, "master": "local[2]"}
    session = start_session(settings, print, connector_jars(_TOKEN_PROVIDER, print)).spark
    try:
        yield session
    finally:
        session.stop()


if __name__ == "__main__":
    main()
