"""Speed of parsing record batches to columns, with checksums, by batch size and compression: CPU time on one core."""

import struct
import time

from benchmarks.arguments import parser
from benchmarks.report import print_machine, print_table
from coordinator_core.log.columns import parse_columns
from coordinator_core.log.compression import Compression
from coordinator_core.log.record_batch import BatchRecord, write_batch

_CASES = [(size, Compression.NONE) for size in (1, 10, 100, 5000)] + [(100, codec) for codec in Compression if codec]


def main(arguments: list[str] | None = None) -> None:
    options = parser(__doc__, records="100k", keys="64k", rounds=5).parse_args(arguments)
    print_machine()
    rows = [_row(options.records[0], options.rounds, *case) for case in _CASES]
    print_table(("records per batch", "compression", "M records/s", "MB/s"), rows)


def _row(records: int, rounds: int, per_batch: int, codec: Compression) -> tuple[object, ...]:
    data = _commits(records, per_batch, codec) * (10 if codec is Compression.NONE else 2)
    seconds = []
    for _ in range(rounds):
        started = time.process_time()
        columns = parse_columns(data)
        seconds.append(time.process_time() - started)
        assert not columns.damages
    best = min(seconds)
    return per_batch, codec.name.lower(), f"{len(columns) / best / 1e6:.1f}", f"{len(data) / best / 1e6:,.0f}"


def _commits(records: int, per_batch: int, codec: Compression) -> bytes:
    """Offset commits like those of live consumers: 1,000 groups, 64 partitions each."""
    written = [
        BatchRecord(
            offset,
            1_700_000_000_000 + offset,
            struct.pack(">hh", 1, 9)
            + b"group-%03d" % (offset % 1000)
            + struct.pack(">h", 6)
            + b"orders"
            + struct.pack(">i", offset % 64),
            struct.pack(">hqihq", 3, offset, -1, 0, 1_700_000_000_000 + offset),
        )
        for offset in range(records)
    ]
    return b"".join(write_batch(written[first : first + per_batch], compression=codec) for first in range(0, records, per_batch))


if __name__ == "__main__":
    main()
