"""Load of a log partition from a topic: a node becomes the owner of one partition and replays it.

`python -m benchmarks.bench_topic_load [--records 1M] [--keys 200k] [--rounds 3]`. The topic has one partition. Each batch of 30
records is a transaction with its marker, as an owner writes them. The node's time is that of its event `load finished`; its CPU
time is that of the process from the accepted connection to the loaded partition. The best round counts.
"""

import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import crc32c

from benchmarks.arguments import parser, short
from benchmarks.logs import GeneratedLog, LogShape, generated_log
from benchmarks.processes import cpu_seconds
from benchmarks.report import print_machine, print_table
from coordinator_core.log.record_batch import CRC_START, HEADER_SIZE
from pipelines.examples.private.kafka.broker import PrivateBroker
from pipelines.examples.private.private_coordinator import PrivateCoordinator

_TOPIC = "grouplake_offsets"
#: Base offset, length, leader epoch, magic, crc; attributes, last offset delta, first and last time, producer, sequence, count.
_START, _REST = struct.Struct(">qiibI"), struct.Struct(">hiqqqhii")
_TRANSACTIONAL, _CONTROL = 0x10, 0x20
_PRODUCER = 1
#: The record of a COMMIT marker: its key is version 0, type 1; its value version 0, coordinator epoch 0.
_MARKER = b"\x20\0\0\0" + b"\x08" + struct.pack(">hh", 0, 1) + b"\x0c" + struct.pack(">hi", 0, 0) + b"\0"


class Load(NamedTuple):
    """Records that were applied, and the seconds of one load."""

    records: int
    seconds: float
    cpu: float


def main(arguments: list[str] | None = None) -> None:
    options = parser(__doc__, records="1M", keys="200k", rounds=3).parse_args(arguments)
    print_machine("confluent-kafka")
    rows = []
    for records in options.records:
        log = generated_log(LogShape(records, options.keys, partitions=1), options.cache)
        best = min(_loads(log, options.rounds), key=lambda load: load.seconds)
        assert best.records == records
        rates = (f"{records / seconds / 1000:,.0f}" for seconds in (best.seconds, best.cpu))
        rows.append((short(records), f"{best.seconds:.2f}", f"{best.cpu:.2f}", *rates))
    print_table(["records", "load, s", "CPU, s", "1,000 records/s", "1,000 records per CPU second"], rows)


def _loads(log: GeneratedLog, rounds: int) -> Iterator[Load]:
    with PrivateBroker(properties={"log.cleaner.enable": "false"}) as broker, tempfile.TemporaryDirectory() as scratch:
        _load(broker, Path(scratch, "creates-the-topic"))
        broker.stop()
        _write_transactions(log.directory / "__consumer_offsets-0", Path(scratch, "log", f"{_TOPIC}-0"))
        broker.place_segments(Path(scratch, "log"), _TOPIC)
        broker.start()
        for number in range(rounds):
            yield _load(broker, Path(scratch, f"round-{number}"))


def _load(broker: PrivateBroker, folder: Path) -> Load:
    node = PrivateCoordinator(folder, log=f"kafka://{broker.bootstrap}/{_TOPIC}", offsets_topic_num_partitions=1)
    node.start()
    try:
        before = cpu_seconds(node.pid)
        node.wait_until_active(1)
        cpu = cpu_seconds(node.pid) - before
        (finished,) = node.events("load finished") or [{"records": 0, "seconds": 0.0}]
        return Load(finished["records"], finished["seconds"], cpu)
    finally:
        node.kill()


def _write_transactions(source: Path, target: Path) -> None:
    """Copy a segment, each batch as a transaction of one producer."""
    target.mkdir(parents=True)
    for path in sorted(source.glob("*.log")):
        data, at, markers, sequence = path.read_bytes(), 0, 0, 0
        with (target / path.name).open("wb") as file:
            while at < len(data):
                base, length, *_ = _START.unpack_from(data, at)
                attributes, last, first_ms, last_ms, _, _, _, count = _REST.unpack_from(data, at + _START.size)
                body = data[at + HEADER_SIZE : at + length + 12]
                rest = (attributes | _TRANSACTIONAL, last, first_ms, last_ms, _PRODUCER, 0, sequence, count)
                file.write(_batch(base + markers, rest, body))
                marker = (_TRANSACTIONAL | _CONTROL, 0, last_ms, last_ms, _PRODUCER, 0, -1, 1)
                file.write(_batch(base + markers + last + 1, marker, _MARKER))
                at, markers, sequence = at + length + 12, markers + 1, sequence + count


def _batch(base: int, rest: tuple[int, ...], body: bytes) -> bytes:
    checked = _REST.pack(*rest) + body
    return _START.pack(base, CRC_START - 12 + len(checked), 0, 2, crc32c.crc32c(checked)) + checked


if __name__ == "__main__":
    main()
