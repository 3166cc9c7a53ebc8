"""Tables of any number of offsets, made by the batch code of the job itself from plausible change rows.

The shape: groups of 50 offsets (two topics of 25 partitions each), spread over the 50 partitions of `__consumer_offsets` as Kafka
spreads them, every fifth group a classic one with two members, the others simple; commits a millisecond apart, over and over
through all groups. One batch has it all, so files are those that a first load leaves.
"""

import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from coordinator_core.codec import Record, encode, encode_assignment, encode_subscription
from coordinator_core.codec.messages.classic import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from coordinator_core.codec.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    ProtocolTopicPartitions,
)
from coordinator_core.log.partitioner import partition_for
from coordinator_core.state.era import Era
from pipelines.batch.apply import BatchApplier
from pipelines.configuration import load_configuration
from pipelines.source.changes import SCHEMA, Kind, rows
from pipelines.tables.store import TableStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOG_PARTITIONS = 50
TOPICS_PER_GROUP = 2
PARTITIONS_PER_TOPIC = 25
PER_GROUP = TOPICS_PER_GROUP * PARTITIONS_PER_TOPIC
CLASSIC_EVERY = 5
ERA = Era.named("4")

#: When the newest of the commits was made, ms.
NEWEST_MS = 1_795_000_000_000

#: Above this many the job leaves the writing to the executors; the limit of conf/local.toml.
BULK_ROWS = 300_000


@dataclass(frozen=True)
class Shape:
    """What is in the tables."""

    offsets: int

    @property
    def groups(self) -> int:
        """Number of groups."""
        return self.offsets // PER_GROUP

    @cached_property
    def log_partitions(self) -> np.ndarray:
        """The log partition of every group."""
        return np.array([partition_for(group_name(group), LOG_PARTITIONS) for group in range(self.groups)], np.int32)

    @cached_property
    def next_offsets(self) -> dict[int, int]:
        """Where the log of every partition ends."""
        groups = np.bincount(self.log_partitions, minlength=LOG_PARTITIONS)
        return {partition: int(count) * (PER_GROUP + 1) for partition, count in enumerate(groups)}

    def of_partition(self, partition: int) -> np.ndarray:
        """The groups of a log partition."""
        return np.flatnonzero(self.log_partitions == partition)


def group_name(group: int) -> str:
    """Name of the group of that number; neighbours in the order of numbers are not neighbours in that of names."""
    return f"{group * 2_654_435_761 % 2**32:08x}-consumer-{group}"


def topic_names(group: int) -> list[str]:
    """Topics that the group commits for."""
    return [f"orders-{group % 500}", f"shipments-{group % 97}"][:TOPICS_PER_GROUP]


def large_tables(shape: Shape, folder: Path, spark: "SparkSession | None") -> TableStore:
    """The tables, made in `folder` unless they are there; with `spark` as the job makes them, without only small ones."""
    root = folder / f"tables-{shape.offsets}"
    if not (root / "complete").exists():
        shutil.rmtree(root, ignore_errors=True)
        store = TableStore(str(root))
        root.mkdir(parents=True)
        store.create()
        applier = BatchApplier(store, ERA, ERA.default_retention_ms, dict, bulk_rows=BULK_ROWS)
        if spark is None:
            applier.apply_rows(pa.Table.from_batches(change_rows(shape), SCHEMA))
        else:
            changes = folder / f"changes-{shape.offsets}"
            _write_changes(shape, changes, tasks=2)
            applier(spark.read.parquet(str(changes)), 0)
            shutil.rmtree(changes)
        (root / "complete").touch()
    return TableStore(str(root))


def make_tables(sizes: Iterable[int], folder: Path) -> None:
    """Makes the tables of these sizes that are not in `folder` yet, with one Spark session that is gone afterwards."""
    missing = [size for size in sizes if not (folder / f"tables-{size}" / "complete").exists()]
    if missing:
        from pipelines.session import start_session

        folder.mkdir(parents=True, exist_ok=True)
        spark = start_session(load_configuration(None).spark, print).spark
        for size in missing:
            large_tables(Shape(size), folder, spark)
        spark.stop()


def copied(store: TableStore, to: Path) -> TableStore:
    """A copy of tables that a benchmark may write to; data files are shared, since nothing ever changes one."""
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(store.root, to, copy_function=lambda source, target: _copy(Path(source), Path(target)))
    return TableStore(str(to))


def _copy(source: Path, target: Path) -> None:
    if source.suffix == ".parquet" and source.parent.name != "_delta_log":
        os.link(source, target)
    else:
        shutil.copy2(source, target)


def change_rows(shape: Shape, partitions: range = range(LOG_PARTITIONS)) -> Iterator[pa.RecordBatch]:
    """Change rows as tasks make them of a log with one commit per offset and one record per classic group."""
    for partition in partitions:
        groups = shape.of_partition(partition)
        if not len(groups):
            continue
        names = np.array([group_name(group) for group in groups], object)
        # the log of a partition: each group's record, then its commits
        first = np.arange(len(groups), dtype=np.int64) * (PER_GROUP + 1)
        yield rows(Kind.COMMIT, partition, _commits(shape, groups, names, first))
        yield rows(
            Kind.TOUCHED,
            partition,
            {
                "group_id": pa.array(names, pa.string()),
                "last_value_offset": pa.array(first + PER_GROUP),
                "last_tombstone_offset": pa.array(np.full(len(groups), -1, np.int64)),
                "upserts": pa.array(np.full(len(groups), PER_GROUP, np.int64)),
                "pendings": pa.array(np.zeros(len(groups), np.int64)),
                "removals": pa.array(np.zeros(len(groups), np.int64)),
            },
        )
        yield from _records(partition, groups, first)
        end = len(groups) * (PER_GROUP + 1)
        kept = pa.array([len(groups) * PER_GROUP])
        place = {"start_offset": pa.array([0]), "next_offset": pa.array([end]), "log_offset": pa.array([end - 1])}
        yield rows(Kind.RANGE, partition, {**place, "records_read": kept, "commits": kept})


def _commits(shape: Shape, groups: np.ndarray, names: np.ndarray, first: np.ndarray) -> dict[str, pa.Array]:
    log_offsets = (first[:, None] + 1 + np.arange(PER_GROUP)).ravel()
    number = (groups[:, None] * PER_GROUP + np.arange(PER_GROUP)).ravel()
    committed = number * 7_919 % 10_000_000
    at = pa.array((NEWEST_MS - shape.offsets + number) * 1000, pa.timestamp("us", "UTC"))
    topics = np.array([topic_names(group) for group in groups], object)
    return {
        "group_id": pa.array(np.repeat(names, PER_GROUP), pa.string()),
        "topic": pa.array(np.repeat(topics, PARTITIONS_PER_TOPIC, axis=1).ravel(), pa.string()),
        "partition": pa.array(np.tile(np.arange(PARTITIONS_PER_TOPIC, dtype=np.int32), len(groups) * TOPICS_PER_GROUP)),
        "committed_offset": pa.array(committed),
        "metadata": pa.repeat(pa.scalar(""), len(number)),
        "leader_epoch": pa.array(np.zeros(len(number), np.int32)),
        "commit_timestamp": at,
        "record_timestamp": at,
        "log_offset": pa.array(log_offsets),
        "commits": pa.array(np.ones(len(number), np.int64)),
        "min_offset": pa.array(committed),
        "first_offset": pa.array(committed),
        "rewound": pa.repeat(pa.scalar(False), len(number)),
    }


def _records(partition: int, groups: np.ndarray, first: np.ndarray) -> Iterator[pa.RecordBatch]:
    classic = groups % CLASSIC_EVERY == 0
    if classic.any():
        pairs = [group_record(int(group)) for group in groups[classic]]
        yield rows(
            Kind.RECORD,
            partition,
            {
                "log_offset": pa.array(first[classic]),
                "record_timestamp": pa.repeat(pa.scalar(NEWEST_MS * 1000, pa.timestamp("us", "UTC")), len(pairs)),
                "key": pa.array([key for key, _ in pairs], pa.binary()),
                "value": pa.array([value for _, value in pairs], pa.binary()),
            },
        )


def group_record(group: int, generation: int = 1) -> tuple[bytes, bytes | None]:
    """Key and value of the record of a classic group with two members."""
    topics = topic_names(group)
    subscription = encode_subscription(ConsumerProtocolSubscription(topics=tuple(topics)))
    halves = (range(PARTITIONS_PER_TOPIC // 2), range(PARTITIONS_PER_TOPIC // 2, PARTITIONS_PER_TOPIC))
    members = tuple(
        MemberMetadata(
            f"client-{number}-{group:08x}",
            None,
            f"client-{number}",
            "/10.0.0.1",
            300_000,
            45_000,
            subscription,
            encode_assignment(ConsumerProtocolAssignment(tuple(ProtocolTopicPartitions(t, tuple(half)) for t in topics))),
        )
        for number, half in enumerate(halves)
    )
    value = GroupMetadataValue("consumer", generation, "range", members[0].member_id, NEWEST_MS, members)
    return encode(Record(2, GroupMetadataKey(group_name(group)), value, 3))


def _write_changes(shape: Shape, folder: Path, tasks: int) -> None:
    """The change rows as files, one per task that would have made them."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for task in range(tasks):
        with pq.ParquetWriter(folder / f"{task}.parquet", SCHEMA, compression="lz4") as writer:
            for batch in change_rows(shape, range(task, LOG_PARTITIONS, tasks)):
                writer.write_batch(batch)
