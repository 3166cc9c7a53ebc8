"""Generated tables with any number of offsets, equal to those of the job after a first load and `maintain`.

The shape: groups of 50 offsets (two topics of 25 partitions each), spread over the 50 partitions of `__consumer_offsets` as Kafka
spreads them, every fifth group a classic one with two members, the others simple; one commit per offset, a
millisecond apart. The code of the job writes the files; only the processing of the commits by Spark is left out.
"""

import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from coordinator_core.codec import Record, encode, encode_assignment, encode_subscription
from coordinator_core.codec.messages.classic import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from coordinator_core.codec.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    ProtocolTopicPartitions,
)
from coordinator_core.log.partitioner import partition_for
from coordinator_core.state.era import Era
from pipelines.batch.context import BatchContext
from pipelines.batch.plan import plan_batch
from pipelines.batch.previous_batch import PreviousBatch
from pipelines.runtime.configuration import load_configuration
from pipelines.runtime.phases import Phases
from pipelines.runtime.timestamps import TIMESTAMP, at_ms
from pipelines.source.changes import SCHEMA, ChangeKind, rows
from pipelines.tables import definitions
from pipelines.tables.delta_writes import stamped
from pipelines.tables.sorted_files.sorted_files import replace_files, split_rows, write_file
from pipelines.tables.store import TableStore
from pipelines.tables.table_files import file_threads, files_of
from pipelines.tables.writer import TablesWriter
from pipelines.tables.writers.delta_rs import DeltaRsWriter

LOG_PARTITIONS = 50
TOPICS_PER_GROUP = 2
PARTITIONS_PER_TOPIC = 25
PER_GROUP = TOPICS_PER_GROUP * PARTITIONS_PER_TOPIC
CLASSIC_EVERY = 5
ERA = Era.named("4")

#: Time of the newest commit, ms.
NEWEST_MS = 1_795_000_000_000

#: Number of groups whose offsets are in memory at a time.
_GROUPS_AT_ONCE = 4_000

#: Above this number of rows the executors write in the job.
BULK_ROWS = int(load_configuration(None).job["bulk_rows"])


@dataclass(frozen=True)
class TablesShape:
    """Number of offsets in the tables, and properties that follow from it.

    `committed` is the offset that all groups have committed; None for offsets of all sizes.
    """

    offsets: int
    committed: int | None = None

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
        """End offset of every log partition."""
        groups = np.bincount(self.log_partitions, minlength=LOG_PARTITIONS)
        return {partition: int(count) * (PER_GROUP + 1) for partition, count in enumerate(groups)}

    def of_partition(self, partition: int) -> np.ndarray:
        """The groups of a log partition."""
        return np.flatnonzero(self.log_partitions == partition)


def group_name(group: int) -> str:
    """Name of the group with this number. Consecutive numbers do not have neighbouring names."""
    return f"{group * 2_654_435_761 % 2**32:08x}-consumer-{group}"


def topic_names(group: int) -> list[str]:
    """Topics for which the group commits."""
    return [f"orders-{group % 500}", f"shipments-{group % 97}"][:TOPICS_PER_GROUP]


def large_tables(size: int, folder: Path, committed: int | None = None) -> TableStore:
    """Tables of this shape, created in `folder` unless they exist."""
    shape = TablesShape(size, committed)
    root = folder / (f"tables-{size}" if committed is None else f"tables-{size}-at-{committed}")
    store = TableStore(str(root))
    if not (root / "complete").exists():
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(parents=True)
        store.create()
        writer = TablesWriter.claim(store)
        context = BatchContext(writer.begin(), ERA, ERA.default_retention_ms, PreviousBatch(store, None))
        # the job's code plans the rows of groups; the commits are too many for it
        few = pa.Table.from_batches((rows for rows in change_rows(shape) if rows["kind"][0].as_py() != ChangeKind.COMMIT), SCHEMA)
        for write in plan_batch(few, context, dict).writes:
            DeltaRsWriter(writer).write(write)
        writer.commit("offsets", lambda table, stamp: _add_offsets(table, shape, stamp))
        writer.commit("offset_history", lambda table, stamp: _add_history(table, shape, stamp))
        writer.finish(
            Phases(at_ms(NEWEST_MS)),
            at_ms(NEWEST_MS),
            era=ERA.name,
            retention_ms=ERA.default_retention_ms,
            next_offsets={partition: end for partition, end in shape.next_offsets.items() if end},
            records_read=sum(shape.next_offsets.values()),
            records_kept=shape.offsets,
        )
        (root / "complete").touch()
    return store


def _add_offsets(table: DeltaTable, shape: TablesShape, stamp: str) -> bool:
    schema = definitions.table("offsets").schema
    files = files_of(table.table_uri)
    with file_threads(files) as threads:
        chunks = (_rows(schema, columns) for columns in _in_order(shape))
        added = [threads.submit(write_file, files, sorted_file) for rows in chunks for sorted_file in split_rows(rows)]
        replace_files(table, [], [one.result() for one in added], stamp)
    return True


def _add_history(table: DeltaTable, shape: TablesShape, stamp: str) -> bool:
    schema = definitions.table("offset_history").schema
    chunks = (_rows(schema, columns).to_batches()[0] for columns in _in_order(shape))
    write_deltalake(table, pa.RecordBatchReader.from_batches(schema, chunks), mode="append", commit_properties=stamped(stamp))
    return True


def _in_order(shape: TablesShape) -> Iterator[dict[str, pa.Array]]:
    """Columns of all offsets, with the values that a batch has for each, sorted by group, in parts."""
    names = np.array([group_name(group) for group in range(shape.groups)], object)
    order = np.argsort(names)
    index = np.zeros(shape.groups, np.int64)
    for partition in range(LOG_PARTITIONS):
        groups = shape.of_partition(partition)
        index[groups] = np.arange(len(groups))
    for start in range(0, shape.groups, _GROUPS_AT_ONCE):
        groups = order[start : start + _GROUPS_AT_ONCE]
        columns = _commits(shape, groups, names[groups], index[groups] * (PER_GROUP + 1))
        count = len(groups) * PER_GROUP
        partitions = pa.array(np.repeat(shape.log_partitions[groups], PER_GROUP))
        constants = {"batch_id": pa.array(np.zeros(count, np.int64)), "change": pa.repeat(pa.scalar("commit"), count)}
        yield {**columns, **constants, "log_partition": partitions}


def _rows(schema: pa.Schema, columns: Mapping[str, pa.Array]) -> pa.Table:
    count = len(columns["group_id"])
    found = [columns[f.name].cast(f.type) if f.name in columns else pa.nulls(count, f.type) for f in schema]
    return pa.Table.from_arrays(found, schema=schema)


def copied(store: TableStore, to: Path) -> TableStore:
    """A copy of tables for a benchmark that writes. Data files are hard links: no program changes one."""
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(store.root, to, copy_function=lambda source, target: _copy(Path(source), Path(target)))
    return TableStore(str(to))


def _copy(source: Path, target: Path) -> None:
    if source.suffix == ".parquet" and source.parent.name != "_delta_log":
        os.link(source, target)
    else:
        shutil.copy2(source, target)


def change_rows(shape: TablesShape, partitions: range = range(LOG_PARTITIONS)) -> Iterator[pa.RecordBatch]:
    """The change rows that tasks make from a log with one commit per offset and one record per classic group."""
    for partition in partitions:
        groups = shape.of_partition(partition)
        if not len(groups):
            continue
        names = np.array([group_name(group) for group in groups], object)
        # the log of a partition: each group's record, then its commits
        first = np.arange(len(groups), dtype=np.int64) * (PER_GROUP + 1)
        yield rows(ChangeKind.COMMIT, partition, _commits(shape, groups, names, first))
        yield rows(
            ChangeKind.GROUP_ACTIVITY,
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
        extent = {"start_offset": pa.array([0]), "next_offset": pa.array([end]), "log_offset": pa.array([end - 1])}
        yield rows(ChangeKind.RANGE, partition, {**extent, "records_read": kept, "commits": kept})


def _commits(shape: TablesShape, groups: np.ndarray, names: np.ndarray, first: np.ndarray) -> dict[str, pa.Array]:
    log_offsets = (first[:, None] + 1 + np.arange(PER_GROUP)).ravel()
    number = (groups[:, None] * PER_GROUP + np.arange(PER_GROUP)).ravel()
    committed = number * 7_919 % 10_000_000 if shape.committed is None else np.full(len(number), shape.committed)
    at = pa.array((NEWEST_MS - shape.offsets + number) * 1000, TIMESTAMP)
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
            ChangeKind.RECORD,
            partition,
            {
                "log_offset": pa.array(first[classic]),
                "record_timestamp": pa.repeat(pa.scalar(NEWEST_MS * 1000, TIMESTAMP), len(pairs)),
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
