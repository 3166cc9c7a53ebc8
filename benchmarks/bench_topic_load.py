"""Load of one log partition by a node whose log is a topic, beside the broker's own load of the same records.

`python -m benchmarks.bench_topic_load [--records 1M] [--keys 200k] [--per-append 100] [--rounds 3]`. The topic is written as an
owner writes it: one transaction for each append of `--per-append` records. A load begins with InitProducerId. The broker loads
the records from its `__consumer_offsets`, where each append is a plain batch. Each round is a new process, with warm caches; the
best one counts.
"""

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.arguments import count, parser, short
from benchmarks.brokers import JVM, STILL_LOG, VERSION, LoadTime, broker_with
from benchmarks.coordinators import node_load
from benchmarks.logs import GeneratedLog, LogShape, describe, generated_log
from benchmarks.report import print_machine, print_table
from coordinator_core.log.columns import to_log_records
from coordinator_core.segment_log.append_batch import AppendBatch
from coordinator_core.sources.segments import SegmentSource
from coordinator_core.topic_log.log_topic import LogTopicSettings
from coordinator_core.topic_log.topic_log import TopicLog
from pipelines.examples.private.kafka.broker import PrivateBroker

_TOPIC = "grouplake_offsets"
_SETTINGS = LogTopicSettings(partitions=1, replication_factor=1, segment_bytes=104_857_600)
_APPEND_MS = 60_000


def main(arguments: list[str] | None = None) -> None:
    parsing = parser(__doc__, records="1M", keys="200k", rounds=3)
    parsing.add_argument("--per-append", type=count, default=100, help="records of an append (default 100)")
    options = parsing.parse_args(arguments)
    print_machine("confluent-kafka")
    for records in options.records:
        log = generated_log(LogShape(records, options.keys, per_batch=options.per_append, partitions=1), options.cache)
        print(f"Log: {describe(log)}\n", flush=True)
        ours = _ours(log, options.rounds)
        with broker_with(log) as broker:
            theirs = [broker.reload() for _ in range(options.rounds)]
        assert all(load.records == records for load in (*ours, *theirs))
        head = [f"load of {short(records)} records, {short(options.per_append)} per append", "s", "records/s"]
        head.append("from the start of the process, s")
        print_table(head, [_row("ours, log on Kafka", ours), _row(f"Kafka {VERSION}", theirs)])


def _ours(log: GeneratedLog, rounds: int) -> list[LoadTime]:
    with (
        PrivateBroker(VERSION, properties=STILL_LOG, jvm_arguments=JVM) as broker,
        tempfile.TemporaryDirectory(prefix="grouplake-benchmark-") as scratch,
    ):
        address = f"kafka://{broker.bootstrap}/{_TOPIC}"
        _write_topic(log, address)
        return [node_load(Path(scratch, "node"), address, _SETTINGS.partitions) for _ in range(rounds)]


def _write_topic(log: GeneratedLog, address: str) -> None:
    """Append the records of `log` as the owner of the partition does."""
    source = SegmentSource(str(log.directory), "__consumer_offsets")
    to = TopicLog(address, {}, _SETTINGS, _APPEND_MS)
    partition = to.partition(0)
    assert sum(map(len, partition.read_columns())) == 0
    append: list[tuple[bytes, bytes | None]] = []
    for columns in source.read_columns(0, 0, source.end_offsets()[0]):
        for record in to_log_records(columns, 0):
            assert record.key is not None
            append.append((record.key, record.value))
            if len(append) == log.shape.per_batch:
                partition.append([AppendBatch(append)], int(time.time() * 1000))
                append = []
    if append:
        partition.append([AppendBatch(append)], int(time.time() * 1000))
    to.close()


def _row(name: str, loads: Sequence[LoadTime]) -> list[str]:
    best = min(loads, key=lambda load: load.wall)
    since_start = min(load.since_start for load in loads)
    return [name, f"{best.wall:.2f}", f"{best.records / best.wall:,.0f}", f"{since_start:.2f}"]


if __name__ == "__main__":
    main()
