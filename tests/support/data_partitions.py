"""A partition with data in a folder, with batches in the manner of clients."""

from collections.abc import Sequence
from pathlib import Path

from coordinator_core.log.columns import parse_columns
from coordinator_core.log.compression import Compression
from coordinator_core.log.data_records import data_offsets
from coordinator_core.log.entries import ControlType
from coordinator_core.log.record_batch import BatchRecord, write_batch
from coordinator_core.producers.append import Marker
from coordinator_core.producers.rules import RULES_SINCE
from coordinator_core.segment_log.data_partition import Appended, DataPartition
from coordinator_core.segment_log.topic_config import TopicConfig
from coordinator_core.service.topics.batch_check import BatchLimits, check_batch

NOW_MS = 1_700_000_000_000
EXPIRATION_MS = 86_400_000
LIMITS = BatchLimits(1_048_588, 1 << 62, 3_600_000, False, 1 << 30)
EVERYTHING = 1 << 30
COMMIT, ABORT = ControlType.COMMIT, ControlType.ABORT


def batch(
    values: Sequence[bytes | None],
    *,
    producer: int = -1,
    epoch: int = -1,
    sequence: int = -1,
    transactional: bool = False,
    timestamp: int = NOW_MS,
    key: bytes | None = b"k",
    compression: Compression = Compression.NONE,
) -> bytes:
    """The bytes of a batch as a client sends it: offsets from 0."""
    records = [BatchRecord(number, timestamp, key, value) for number, value in enumerate(values)]
    return write_batch(
        records,
        producer_id=producer,
        producer_epoch=epoch if producer < 0 or epoch >= 0 else 0,
        base_sequence=sequence,
        transactional=transactional,
        compression=compression,
    )


class OnDisk:
    """A partition in `folder`, open; `reopen` closes and recovers it, `kill` without the snapshot of a clean shutdown."""

    def __init__(self, folder: Path, release: str = "4.2", **configs: str) -> None:
        self._folder = folder / "orders-0"
        self._folder.mkdir(exist_ok=True)
        self._config = TopicConfig({name.replace("_", "."): value for name, value in configs.items()})
        self._release = release
        self.now = NOW_MS
        self.at = self._open(0)

    def _open(self, log_start_offset: int) -> DataPartition:
        rules = RULES_SINCE[self._release]
        return DataPartition(self._folder, self._config, rules, EXPIRATION_MS, log_start_offset=log_start_offset)

    def kill(self) -> None:
        self.at.log.close()
        self.at = self._open(self.at.log_start_offset)

    def reopen(self) -> None:
        self.at.close()
        self.at = self._open(self.at.log_start_offset)

    def names(self, suffix: str) -> list[int]:
        return sorted(int(path.stem) for path in self._folder.iterdir() if path.suffix == suffix)

    def append(
        self,
        *values: bytes,
        producer: int = -1,
        epoch: int = 0,
        sequence: int = -1,
        transactional: bool = False,
        guard: int = 0,
        timestamp: int | None = None,
        verification_enabled: bool = False,
    ) -> Appended:
        """Append one batch and make it visible. Raises ProducerRejected."""
        data = batch(
            values or (b"v",),
            producer=producer,
            epoch=epoch if producer >= 0 else -1,
            sequence=sequence,
            transactional=transactional,
            timestamp=self.now if timestamp is None else timestamp,
        )
        checked = check_batch(data, LIMITS, self.now)
        appended = self.at.append(
            checked.header, checked.placed, checked.max_timestamp, guard, verification_enabled=verification_enabled
        )
        self.advance()
        return appended

    def marker(
        self, producer: int, kind: ControlType = COMMIT, *, epoch: int = 0, coordinator_epoch: int = 0, version: int = 0
    ) -> int:
        """Append a marker and make it visible. Raises ProducerRejected."""
        end = self.at.log.end_offset
        offset = self.at.append_marker(Marker(producer, epoch, kind, coordinator_epoch, end, self.now, version), self.now)
        self.advance()
        return offset

    def advance(self) -> None:
        self.at.advance(self.at.log.end_offset, self.at.appended_bytes)

    def offsets(self, *, committed: bool, start: int | None = None) -> list[int]:
        """Offsets of the records that a consumer returns, from `start` or the start of the log on."""
        position = self.at.log_start_offset if start is None else start
        end = self.at.last_stable_offset if committed else self.at.high_watermark
        found: list[int] = []
        while position < end:
            read = self.at.read(position, EVERYTHING, end)
            if not read.data:
                break
            columns = parse_columns(bytes(read.data), position)
            rows = self.at.aborted(position, read.next_offset) if committed else []
            found += data_offsets(columns, [(row.producer_id, row.first_offset) for row in rows]).tolist()
            position = read.next_offset
        return found
