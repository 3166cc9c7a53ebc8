"""How fast record batches become columns, checksums included: `python benchmarks/bench_log_columns.py`. One core, CPU time."""

import struct
import time

from coordinator_core.log.columns import parse_columns
from coordinator_core.log.compression import Compression
from coordinator_core.log.record_batch import BatchRecord, write_batch

RECORDS = 100_000
ROUNDS = 5
CASES = [(size, Compression.NONE) for size in (1, 10, 100, 5000)] + [(100, codec) for codec in Compression if codec]


def commits(per_batch: int, codec: Compression) -> bytes:
    """Offset commits as live consumers make them: 1,000 groups, 64 partitions each."""
    records = [
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
        for offset in range(RECORDS)
    ]
    return b"".join(write_batch(records[first : first + per_batch], compression=codec) for first in range(0, RECORDS, per_batch))


def main() -> None:
    print("records/batch  compression  M records/s    MB/s")
    for per_batch, codec in CASES:
        data = commits(per_batch, codec) * (10 if codec is Compression.NONE else 2)
        seconds = []
        for _ in range(ROUNDS):
            started = time.process_time()
            columns = parse_columns(data)
            seconds.append(time.process_time() - started)
            assert not columns.damages
        best = min(seconds)
        print(f"{per_batch:>13}  {codec.name.lower():<11}  {len(columns) / best / 1e6:>11.1f}  {len(data) / best / 1e6:>6.0f}")


if __name__ == "__main__":
    main()
