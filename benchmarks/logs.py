"""Generated `__consumer_offsets` logs: segment files like those of a 4.1 broker, and their expected state.

A log is cached in a folder named after its shape. A commit has one group and ten partitions of one topic, as consumers commit; a
batch has commits of several groups, as brokers append them.
"""

import json
import shutil
import struct
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO

import crc32c
import numpy as np
import numpy.typing as npt

from benchmarks.log_kernels import (
    COMMIT_PARTITIONS,
    COMMITTED,
    RECORD_OVERHEAD,
    REMOVED,
    VALUE_BYTES,
    Names,
    Outcome,
    PartitionShape,
    write_payloads,
)
from coordinator_core.codec import Record, encode, encode_assignment, encode_subscription
from coordinator_core.codec.messages.classic import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from coordinator_core.codec.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    ProtocolTopicPartitions,
)
from coordinator_core.log.compression import Compression, compress
from coordinator_core.log.partitioner import partition_for
from coordinator_core.log.record_batch import CRC_START, HEADER_SIZE, SMALLEST_LENGTH

KEYS_PER_GROUP = 100
PARTITIONS = 50
#: Version of the generator, incremented whenever its output changes, so that cached logs of older versions are not used.
_EDITION = 2
_FIRST_TIMESTAMP = 1_790_000_000_000
_HEADER = struct.Struct(">qiibIhiqqqhii")
_TEAMS = ("billing", "search", "warehouse", "ads", "fraud-detection", "risk", "ml", "customer-notifications")
_MEMBERS = 3
#: A day, in ms: sessions of the members must not expire while a broker that has loaded the log is measured.
_SESSION_TIMEOUT = 86_400_000


@dataclass(frozen=True, slots=True)
class LogShape:
    """Composition of a log. Shares of tombstones and group records are given as one in N records."""

    records: int
    keys: int = 200_000
    per_batch: int = 30
    compression: Compression = Compression.NONE
    tombstone_every: int = 20
    group_record_every: int = 100
    partitions: int = PARTITIONS

    @property
    def folder_name(self) -> str:
        """Folder name, unique per shape."""
        parts = (self.records, self.keys, self.per_batch, self.compression.name.lower(), self.tombstone_every)
        return "-".join(str(part) for part in ("log", _EDITION, *parts, self.group_record_every, self.partitions))


@dataclass(frozen=True)
class GeneratedLog:
    """A log on disk, and its expected state.

    `last` and `offset` have one entry per key, in the order of `key_names`: the kind of its last operation and, for a commit, the
    committed offset.
    """

    shape: LogShape
    directory: Path
    bytes: int
    commits: int
    tombstones: int
    group_records: int
    last: npt.NDArray[np.uint8]
    offset: npt.NDArray[np.int64]

    @property
    def live_keys(self) -> int:
        """Keys whose last operation is a commit."""
        return int(np.count_nonzero(self.last == COMMITTED))

    @property
    def removed_keys(self) -> int:
        """Keys whose last operation is a tombstone."""
        return int(np.count_nonzero(self.last == REMOVED))

    def expected_offsets(self, sample: int = 200) -> dict[tuple[str, str, int], int]:
        """Committed offsets of some live keys, spread over all of them."""
        live = np.flatnonzero(self.last == COMMITTED)
        chosen = live[:: max(1, len(live) // sample)]
        return {key_name(int(number)): int(self.offset[number]) for number in chosen}


def key_name(number: int) -> tuple[str, str, int]:
    """Group, topic and partition of a key."""
    group, rest = divmod(number, KEYS_PER_GROUP)
    topic, partition = divmod(rest, COMMIT_PARTITIONS)
    return group_name(group), _topic_name(group, topic), partition


def group_name(number: int) -> str:
    """The name of a group."""
    return f"{_TEAMS[number % len(_TEAMS)]}.service-{number}"


def _topic_name(group: int, topic: int) -> str:
    number = (group * 7 + topic * 13) % 500
    return f"events.{_TEAMS[number % len(_TEAMS)]}.domain-{number}"


def cached_folder(folder: Path, write: Callable[[Path], None]) -> Path:
    """Return the folder, which `write` fills unless it exists; it appears complete or not at all."""
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=".partial-", dir=folder.parent))
        try:
            write(draft)
            draft.rename(folder)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
    return folder


def generated_log(shape: LogShape, cache: Path) -> GeneratedLog:
    """The log of this shape, generated unless `cache` has it."""
    folder = cached_folder(cache / shape.folder_name, partial(_write_log, shape))
    facts = json.loads((folder / "facts.json").read_text())
    with np.load(folder / "expected.npz") as expected:
        return GeneratedLog(shape, folder / "log", **facts, last=expected["last"], offset=expected["offset"])


def _write_log(shape: LogShape, folder: Path) -> None:
    groups = shape.keys // KEYS_PER_GROUP
    of_partition: list[list[int]] = [[] for _ in range(shape.partitions)]
    for group in range(groups):
        of_partition[partition_for(group_name(group), shape.partitions)].append(group)
    last = np.zeros(shape.keys, np.uint8)
    offset = np.full(shape.keys, -1, np.int64)
    counts, size, written, seen = np.zeros(3, np.int64), 0, 0, 0
    for partition, members in enumerate(of_partition):
        segment = folder / "log" / f"__consumer_offsets-{partition}"
        segment.mkdir(parents=True)
        seen += len(members)
        records = shape.records * seen // groups - written
        written += records
        keys = (np.array(members, np.int64)[:, None] * KEYS_PER_GROUP + np.arange(KEYS_PER_GROUP)).ravel()
        outcome = Outcome(np.zeros(len(keys), np.uint8), np.full(len(keys), -1, np.int64), counts)
        with (segment / f"{0:020}.log").open("wb") as file:
            if records:
                _write_segment(shape, partition, records, members, outcome, file)
            size += file.tell()
        last[keys], offset[keys] = outcome.last, outcome.offset
    np.savez(folder / "expected.npz", last=last, offset=offset)
    commits, tombstones, group_records = counts.tolist()
    facts = {"bytes": size, "commits": commits, "tombstones": tombstones, "group_records": group_records}
    (folder / "facts.json").write_text(json.dumps(facts))


def _write_segment(shape: LogShape, partition: int, records: int, members: list[int], outcome: Outcome, file: BinaryIO) -> None:
    names = _names(members)
    longest = max(
        int(np.diff(names.key_start).max()) + VALUE_BYTES,
        int((np.diff(names.group_key_start) + np.diff(names.group_value_start)).max()) if shape.group_record_every else 0,
    )
    commit_room = int(np.diff(names.key_start).max()) + VALUE_BYTES + RECORD_OVERHEAD
    group_room = 2 * longest * (records // shape.group_record_every + 100) if shape.group_record_every else 0
    out = np.empty(records * commit_room + group_room, np.uint8)
    ends = np.zeros(records // shape.per_batch + 2, np.int64)
    per_ms = 5
    kernel_shape = PartitionShape(
        records,
        shape.per_batch,
        KEYS_PER_GROUP,
        shape.tombstone_every,
        shape.group_record_every,
        _FIRST_TIMESTAMP,
        per_ms,
        partition + 1,
    )
    batches = write_payloads(names, kernel_shape, out, ends, outcome)
    payloads, start = out.data, 0
    for batch in range(batches):
        end = int(ends[batch])
        base = batch * shape.per_batch
        count = min(shape.per_batch, records - base)
        times = (_FIRST_TIMESTAMP + base // per_ms, _FIRST_TIMESTAMP + (base + count - 1) // per_ms)
        file.write(_batch(base, count, times, payloads[start:end], shape.compression))
        start = end


def _batch(base: int, count: int, times: tuple[int, int], payload: memoryview, codec: Compression) -> bytes:
    records = compress(codec, bytes(payload)) if codec else payload
    batch = bytearray(HEADER_SIZE + len(records))
    batch[HEADER_SIZE:] = records
    length = SMALLEST_LENGTH + len(records)
    fields = (codec, count - 1, *times, -1, -1, -1, count)
    _HEADER.pack_into(batch, 0, base, length, 0, 2, 0, *fields)
    struct.pack_into(">I", batch, CRC_START - 4, crc32c.crc32c(memoryview(batch)[CRC_START:]))
    return bytes(batch)


def _names(members: list[int]) -> Names:
    keys = [_commit_key(group * KEYS_PER_GROUP + rest) for group in members for rest in range(KEYS_PER_GROUP)]
    group_records = [_group_record(group) for group in members]
    slices = [keys, [key for key, _ in group_records], [value for _, value in group_records]]
    starts, position = [], 0
    for some in slices:
        ends = np.cumsum([0, *(len(one) for one in some)]) + position
        starts.append(ends.astype(np.int64))
        position = int(ends[-1])
    arena = np.frombuffer(b"".join(one for some in slices for one in some), np.uint8)
    return Names(arena, *starts)


def _commit_key(number: int) -> bytes:
    names = key_name(number)
    group, topic, partition = names[0].encode(), names[1].encode(), names[2]
    return struct.pack(f">hh{len(group)}sh{len(topic)}si", 1, len(group), group, len(topic), topic, partition)


def _group_record(group: int) -> tuple[bytes, bytes]:
    """A classic group of three members that share its topics."""
    name = group_name(group)
    topics = tuple(sorted({_topic_name(group, topic) for topic in range(KEYS_PER_GROUP // COMMIT_PARTITIONS)}))
    members = tuple(
        MemberMetadata(
            member_id=f"{name}-{member}-2f8ad0a3-8f5c-4c4e-9ae4-{group:012d}",
            client_id=f"{name}-{member}",
            client_host=f"/10.1.{group % 250}.{member}",
            rebalance_timeout=300_000,
            session_timeout=_SESSION_TIMEOUT,
            subscription=encode_subscription(ConsumerProtocolSubscription(topics)),
            assignment=encode_assignment(
                ConsumerProtocolAssignment(
                    tuple(ProtocolTopicPartitions(topic, tuple(range(member, COMMIT_PARTITIONS, _MEMBERS))) for topic in topics)
                )
            ),
        )
        for member in range(_MEMBERS)
    )
    value = GroupMetadataValue("consumer", 1, "range", members[0].member_id, _FIRST_TIMESTAMP, members)
    key, encoded = encode(Record(2, GroupMetadataKey(name), value, 3))
    assert encoded is not None
    return key, encoded


def describe(log: GeneratedLog) -> str:
    """One line about a log."""
    shape = log.shape
    share = f"{log.tombstones / shape.records:.1%} tombstones, {log.group_records / shape.records:.1%} group records"
    return (
        f"{shape.records:,} records, {shape.keys:,} keys, {share}, {shape.partitions} partitions, "
        f"{shape.per_batch} records per batch, {shape.compression.name.lower()}, {log.bytes / 1e6:,.0f} MB"
    )
