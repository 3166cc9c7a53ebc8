"""Segment directories made for a test, record by record, and what a log cleaner may leave of them."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from uuid import UUID

from message_sets import write_message_set

from coordinator_core.log.compression import Compression
from coordinator_core.log.entries import ControlType, LogRecord
from coordinator_core.log.partition_metadata import format_topic_id
from coordinator_core.log.record_batch import BatchRecord, control_type, end_transaction_marker, write_batch

#: Timestamp of the first record of every partition, in ms; each further record is a millisecond later.
FIRST_TIMESTAMP = 1_700_000_000_000

Pairs = Sequence[tuple[bytes | None, bytes | None]]


class LogBuilder:
    """Writes `TOPIC-N/*.log` below `directory`, without buffering. `records(N)` is what any reader must find there."""

    def __init__(self, directory: Path, topic: str = "__consumer_offsets") -> None:
        self.directory = directory
        self._topic = topic
        self._records: dict[int, list[LogRecord]] = {}
        self._next_offset: dict[int, int] = {}
        self._segment: dict[int, Path] = {}

    def append(
        self,
        partition: int,
        pairs: Pairs,
        *,
        timestamp: int | None = None,
        producer_id: int = -1,
        producer_epoch: int | None = None,
        transactional: bool = False,
        compression: Compression = Compression.NONE,
        log_append_time: int | None = None,
    ) -> list[LogRecord]:
        """One v2 batch of keys and values; `timestamp` (ms) for all of them, else ascending ones."""
        batch = self._batch(partition, pairs, timestamp)
        epoch = (-1 if producer_id < 0 else 0) if producer_epoch is None else producer_epoch
        data = write_batch(
            batch,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=-1 if producer_id < 0 else 0,
            compression=compression,
            transactional=transactional,
            log_append_time=log_append_time,
        )
        stamps = [record.timestamp if log_append_time is None else log_append_time for record in batch]
        records = [
            LogRecord(partition, r.offset, at, r.key, r.value, producer_id, epoch, transactional, False, batch[0].offset)
            for r, at in zip(batch, stamps, strict=True)
        ]
        return self._written(partition, data, records)

    def append_messages(
        self,
        partition: int,
        pairs: Pairs,
        *,
        magic: int = 1,
        compression: Compression = Compression.NONE,
        timestamp: int | None = None,
    ) -> list[LogRecord]:
        """Messages of the old formats; compressed ones share a wrapper."""
        messages = self._batch(partition, pairs, timestamp)
        records = [
            LogRecord(
                partition,
                m.offset,
                m.timestamp if magic else -1,
                m.key,
                m.value,
                batch_offset=messages[0].offset if compression else m.offset,
            )
            for m in messages
        ]
        return self._written(partition, write_message_set(messages, magic=magic, compression=compression), records)

    def marker(
        self, partition: int, producer_id: int, commit: bool = True, *, producer_epoch: int = 0, timestamp: int | None = None
    ) -> LogRecord:
        """The control batch that ends a transaction."""
        offset = self.next_offset(partition)
        kind = ControlType.COMMIT if commit else ControlType.ABORT
        at = FIRST_TIMESTAMP + offset if timestamp is None else timestamp
        data = end_transaction_marker(offset, kind, producer_id=producer_id, producer_epoch=producer_epoch, timestamp=at)
        record = LogRecord(
            partition, offset, at, bytes((0, 0, 0, kind)), bytes(6), producer_id, producer_epoch, True, True, offset
        )
        return self._written(partition, data, [record])[0]

    def empty_batch(self, partition: int, offsets: int = 1, *, producer_id: int = 1) -> None:
        """A batch of `offsets` records, all of which compaction has removed."""
        base = self.next_offset(partition)
        data = write_batch([], base_offset=base, last_offset=base + offsets - 1, producer_id=producer_id, producer_epoch=0)
        self._written(partition, data, [])
        self._next_offset[partition] = base + offsets

    def skip(self, partition: int, offsets: int) -> None:
        """A gap: batches that compaction removed as a whole. Before any record it is where the log starts."""
        self._next_offset[partition] = self.next_offset(partition) + offsets

    def roll(self, partition: int) -> Path:
        """Start a new segment, empty for now."""
        path = self._path(partition, self.next_offset(partition))
        path.touch()
        self._segment[partition] = path
        return path

    def tear(self, partition: int, left_off: int) -> None:
        """Cut off the last bytes, as a crash would. `records` still includes the records that they held."""
        path = self.segment(partition)
        with path.open("r+b") as file:
            file.truncate(path.stat().st_size - left_off)

    def rewrite(self, partition: int, records: Iterable[LogRecord]) -> None:
        """Replace the partition by these records in one segment, batches kept together, as a cleaner does with `compact`ed ones.

        The end offset is preserved, by an empty batch where the last records were removed.
        """
        end = self.next_offset(partition)
        for path in self.segment(partition).parent.glob("*.log"):
            path.unlink()
        self._records[partition], self._next_offset[partition] = [], 0
        self._segment[partition] = self._path(partition, 0)
        self.segment(partition).touch()
        for _, batch in groupby(records, key=lambda record: record.batch_offset):
            kept = list(batch)
            data = write_batch(
                [BatchRecord(r.offset, r.timestamp, r.key, r.value) for r in kept],
                producer_id=kept[0].producer_id,
                producer_epoch=kept[0].producer_epoch,
                transactional=kept[0].is_transactional,
                control=kept[0].is_control,
            )
            self._written(partition, data, kept)
        if self.next_offset(partition) < end:
            self.empty_batch(partition, end - self.next_offset(partition))

    def topic_id(self, topic: str, topic_id: UUID, partitions: int = 1) -> None:
        """Write the `partition.metadata` files of a topic's partitions."""
        for partition in range(partitions):
            folder = self.directory / f"{topic}-{partition}"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "partition.metadata").write_text(format_topic_id(topic_id))

    def records(self, partition: int) -> list[LogRecord]:
        """All records written so far and not removed, control records included."""
        return list(self._records.get(partition, []))

    def next_offset(self, partition: int) -> int:
        """Offset of the next record."""
        return self._next_offset.get(partition, 0)

    def segment(self, partition: int) -> Path:
        """The active segment."""
        if partition not in self._segment:
            self._segment[partition] = self._path(partition, self.next_offset(partition))
        return self._segment[partition]

    def _batch(self, partition: int, pairs: Pairs, timestamp: int | None) -> list[BatchRecord]:
        base = self.next_offset(partition)
        return [
            BatchRecord(offset, FIRST_TIMESTAMP + offset if timestamp is None else timestamp, key, value)
            for offset, (key, value) in enumerate(pairs, base)
        ]

    def _path(self, partition: int, base_offset: int) -> Path:
        folder = self.directory / f"{self._topic}-{partition}"
        folder.mkdir(parents=True, exist_ok=True)
        return folder / f"{base_offset:020}.log"

    def _written(self, partition: int, data: bytes, records: list[LogRecord]) -> list[LogRecord]:
        with self.segment(partition).open("ab") as file:
            file.write(data)
        self._records.setdefault(partition, []).extend(records)
        if records:
            self._next_offset[partition] = records[-1].offset + 1
        return records


def compact(
    records: Sequence[LogRecord], *, upto: int | None = None, drop_tombstones: bool = False, drop_markers: bool = False
) -> list[LogRecord]:
    """What a cleaner may leave of the records of one partition (`LogCleaner`, KIP-98).

    It cleans offsets below `upto` and below the first open transaction. There it keeps the last record of each key, and removes
    records of aborted transactions and without key. After their retention it may remove tombstones, and markers of transactions
    without any record left: `drop_tombstones`, `drop_markers`.
    """
    outcome = _transaction_outcomes(records)
    unstable = min((offset for offset, word in outcome.items() if word == "open"), default=None)
    end = min((limit for limit in (upto, unstable) if limit is not None), default=None)
    cleaned = [r for r in records if end is None or r.offset < end]
    last = {r.key: r.offset for r in cleaned if r.key is not None and not r.is_control and outcome.get(r.offset) != "aborted"}
    newest = [r for r in cleaned if r.is_control or (r.key is not None and last.get(r.key) == r.offset)]
    kept = [r for r in newest if r.is_control or not (drop_tombstones and r.value is None)]
    kept = _without_lone_markers(kept) if drop_markers else kept
    return _in_batches([*kept, *records[len(cleaned) :]])


def _transaction_outcomes(records: Sequence[LogRecord]) -> dict[int, str]:
    """Offset of each transactional data record → `committed`, `aborted` or `open`."""
    outcomes: dict[int, str] = {}
    pending: dict[int, list[int]] = {}
    for record in records:
        if record.is_control:
            word = "committed" if control_type(record.key) == ControlType.COMMIT else "aborted"
            outcomes |= dict.fromkeys(pending.pop(record.producer_id, []), word)
        elif record.is_transactional:
            pending.setdefault(record.producer_id, []).append(record.offset)
            outcomes[record.offset] = "open"
    return outcomes


def _without_lone_markers(records: Sequence[LogRecord]) -> list[LogRecord]:
    kept: list[LogRecord] = []
    with_data: set[int] = set()
    for record in records:
        if record.is_control:
            if record.producer_id not in with_data:
                continue
            with_data.discard(record.producer_id)
        elif record.is_transactional:
            with_data.add(record.producer_id)
        kept.append(record)
    return kept


def _in_batches(records: Sequence[LogRecord]) -> list[LogRecord]:
    """The records with `batch_offset` set to the first remaining record of each batch."""
    regrouped: list[LogRecord] = []
    for _, batch in groupby(records, key=lambda record: record.batch_offset):
        kept = list(batch)
        regrouped += [record._replace(batch_offset=kept[0].offset) for record in kept]
    return regrouped
