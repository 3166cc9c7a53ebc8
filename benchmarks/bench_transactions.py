"""First load of `__transaction_state`: by the job into tables, and by the coordinator.

`python -m benchmarks.bench_transactions [--ids 1M] [--rounds 3]`. Each round is a new process with a peak memory of its own; the
best round counts. Compiled code and page cache are warm.
"""

import argparse
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pyarrow.compute as pc
from deltalake import DeltaTable

from benchmarks.arguments import cache_folder, count, short
from benchmarks.report import print_machine, print_table
from benchmarks.transaction_logs import TransactionLogShape
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.protocol.internal_topics import TRANSACTION_STATE_TOPIC
from coordinator_core.sources.segments import SegmentSource
from coordinator_core.state.era import Era
from coordinator_core.state.transaction_state import ONGOING
from coordinator_core.transaction_coordinator.config import TransactionConfig
from coordinator_core.transaction_coordinator.context import TransactionTopology
from coordinator_core.transaction_coordinator.producer_ids import ProducerIdManager
from coordinator_core.transaction_coordinator.shard import TransactionShard
from pipelines.batch.apply import BatchApplier
from pipelines.runtime.cache.kernels import compile_kernels
from pipelines.source.address import SourceAddress
from pipelines.source.log_reading import SourceOptions
from pipelines.source.transaction_log import TransactionLogReader
from pipelines.tables.store import TableStore

_ERA = Era.named("4")
_KIB_PER_MIB = 1024
_HEAD = ("load by the", "ids", "records", "ids/s", "records/s", "CPU, s", "peak memory, MiB", "seconds of the steps")
_NOW_MS = 1_790_000_100_000
#: A log that loads the compiled functions before the measured one.
_WARM_UP = TransactionLogShape(100)


class _Measured(NamedTuple):
    """Seconds of the steps of one round, in order, the CPU time of all its threads, and the growth of the peak memory in MiB."""

    seconds: dict[str, float]
    cpu_seconds: float
    mib: float


def main(arguments: list[str] | None = None) -> None:
    parsing = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parsing.add_argument("--ids", type=count, default=1_000_000, help="transactional ids (default 1M)")
    parsing.add_argument("--rounds", type=int, default=3, help="repetitions, of which the best counts (default 3)")
    parsing.add_argument("--cache", type=Path, default=cache_folder(), help="folder of generated logs")
    options = parsing.parse_args(arguments)
    print_machine()
    compile_kernels()
    rows = []
    for is_cleaned in (False, True):
        shape = TransactionLogShape(options.ids, is_cleaned)
        folder = shape.generated(options.cache)
        for name, load in (("job", _load_tables), ("coordinator", _load_coordinator)):
            rounds = [_in_new_process(load, shape, folder) for _ in range(options.rounds)]
            best = min(rounds, key=lambda measured: sum(measured.seconds.values()))
            total = sum(best.seconds.values())
            steps = ", ".join(f"{step} {seconds:.2f}" for step, seconds in best.seconds.items())
            rates = (f"{shape.ids / total:,.0f}", f"{shape.records / total:,.0f}", f"{best.cpu_seconds:.2f}", f"{best.mib:,.0f}")
            rows.append((name, short(shape.ids), shape.records, *rates, steps))
    print_table(_HEAD, rows)


def _in_new_process(load: Callable[..., _Measured], shape: TransactionLogShape, folder: Path) -> _Measured:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(load, (shape, folder))


def _load_tables(shape: TransactionLogShape, folder: Path) -> _Measured:
    with tempfile.TemporaryDirectory(prefix="grouplake-benchmark-") as scratch:
        _first_batch(_WARM_UP.generated(Path(scratch)), Path(scratch, "warm-up"))
        before, cpu = _peak_mib(), time.process_time()
        seconds = _first_batch(folder, Path(scratch, "tables"))
        measured = _Measured(seconds, time.process_time() - cpu, _peak_mib() - before)
        loaded = DeltaTable(Path(scratch, "tables", "transactions")).to_pyarrow_table(columns=["state", "producer_id"])
        assert len(loaded) == len(pc.unique(loaded["producer_id"])) == shape.ids
        assert pc.sum(pc.equal(loaded["state"], ONGOING.label)).as_py() == shape.open_transactions
    return measured


def _first_batch(folder: Path, tables: Path) -> dict[str, float]:
    store = TableStore(str(tables))
    store.create()
    address = SourceAddress("segments", str(folder), TRANSACTION_STATE_TOPIC)
    reader = TransactionLogReader(SourceOptions(address, _ERA.name, _ERA.default_retention_ms, {}), print)
    applier = BatchApplier(store, _ERA, _ERA.default_retention_ms, dict, bulk_rows=1_000_000, transactions=reader)
    applier.apply_transactions(required=True)
    batch = store.last_batch()
    assert batch is not None
    return {name: ms / 1000 for name, ms in batch.phase_ms.items()}


def _load_coordinator(shape: TransactionLogShape, folder: Path) -> _Measured:
    with tempfile.TemporaryDirectory(prefix="grouplake-benchmark-") as scratch:
        _load_shards(_WARM_UP.generated(Path(scratch)))
    before, cpu = _peak_mib(), time.process_time()
    seconds, shards = _load_shards(folder)
    measured = _Measured(seconds, time.process_time() - cpu, _peak_mib() - before)
    loaded = [metadata for shard in shards for metadata in shard.context.cache.metadata().values()]
    assert len({metadata.producer_id for metadata in loaded}) == shape.ids
    assert sum(metadata.state is ONGOING for metadata in loaded) == shape.open_transactions
    return measured


def _load_shards(folder: Path) -> tuple[dict[str, float], list[TransactionShard]]:
    """Load all log partitions, each into a shard of its own, as the service does."""
    source = SegmentSource(folder, TRANSACTION_STATE_TOPIC)
    ends = source.end_offsets()
    topology = TransactionTopology(lambda _: True, lambda _: TopicPartition("__consumer_offsets", 0))
    producer_ids = ProducerIdManager(lambda: None, lambda: _NOW_MS)
    seconds = {"read and replay": 0.0, "finish": 0.0}
    shards = []
    for partition, end in ends.items():
        shard = TransactionShard(partition, TransactionConfig(era=_ERA.name), producer_ids, topology)
        shards.append(shard)
        started = time.perf_counter()
        shard.begin_load(0, _NOW_MS)
        assert shard.replay_columns(source.read_columns(partition, 0, end)) == ()
        replayed = time.perf_counter()
        shard.finish_load(_NOW_MS)
        seconds["read and replay"] += replayed - started
        seconds["finish"] += time.perf_counter() - replayed
    return seconds, shards


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _KIB_PER_MIB


if __name__ == "__main__":
    main()
