"""Generated `__transaction_state` logs: segment files like those of a 4.1 broker, one record per batch.

An id has the records of one transaction (Empty, Ongoing, PrepareCommit, CompleteCommit), interleaved with those of the other ids;
or, as after cleaning, only the last of them. One transaction in twenty is open at the end of the log.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.logs import cached_folder
from coordinator_core.codec.topic_partition import TopicPartition
from coordinator_core.codec.transactions import encode_transaction
from coordinator_core.log.partitioner import partition_for
from coordinator_core.log.record_batch import BatchRecord, write_batch
from coordinator_core.protocol.internal_topics import TRANSACTION_STATE_TOPIC
from coordinator_core.state.transaction_metadata import TransactionMetadata, transaction_record
from coordinator_core.state.transaction_state import COMPLETE_COMMIT, EMPTY, ONGOING, PREPARE_COMMIT

PARTITIONS = 50
#: Version of the generator, incremented whenever its output changes.
_EDITION = 1
_FIRST_MS = 1_790_000_000_000
_FIRST_PRODUCER_ID = 1_000
_STATES = (EMPTY, ONGOING, PREPARE_COMMIT, COMPLETE_COMMIT)
_OPEN_EVERY = 20
_PRODUCER_ID = slice(2, 10)


@dataclass(frozen=True, slots=True)
class TransactionLogShape:
    """Composition of a log: transactional ids, and whether the log was cleaned."""

    ids: int
    is_cleaned: bool = False

    @property
    def records(self) -> int:
        """Number of records: the open transactions have two states."""
        return self.ids if self.is_cleaned else len(_STATES) * self.ids - 2 * self.open_transactions

    @property
    def open_transactions(self) -> int:
        """Number of ids in state Ongoing."""
        return len(range(0, self.ids, _OPEN_EVERY))

    @property
    def _folder_name(self) -> str:
        return f"transactions-{_EDITION}-{self.ids}{'-cleaned' if self.is_cleaned else ''}"

    def generated(self, cache: Path) -> Path:
        """Folder of the log, generated unless `cache` has it."""
        return cached_folder(cache / self._folder_name, self._write)

    def _write(self, folder: Path) -> None:
        of_partition: list[list[int]] = [[] for _ in range(PARTITIONS)]
        for number in range(self.ids):
            of_partition[partition_for(transactional_id(number), PARTITIONS)].append(number)
        for partition, numbers in enumerate(of_partition):
            segment = folder / f"{TRANSACTION_STATE_TOPIC}-{partition}"
            segment.mkdir()
            with (segment / f"{0:020}.log").open("wb") as file:
                for offset, (key, value) in enumerate(self._records(numbers)):
                    file.write(write_batch([BatchRecord(offset, _FIRST_MS + offset, key, value)]))

    def _records(self, numbers: list[int]) -> Iterator[tuple[bytes, bytes]]:
        for at, state in enumerate(_STATES):
            open_since = frozenset({TopicPartition("__consumer_offsets", 7), TopicPartition("events.payments", 3)})
            partitions = open_since if state in (ONGOING, PREPARE_COMMIT) else frozenset()
            start_ms = -1 if state is EMPTY else _FIRST_MS
            metadata = TransactionMetadata("", 0, 3, 60_000, state, partitions, start_ms, _FIRST_MS + at)
            value = bytearray(encode_transaction(transaction_record(metadata, 1))[1] or b"")
            for number in numbers:
                last = 1 if number % _OPEN_EVERY == 0 else len(_STATES) - 1
                if at > last or (self.is_cleaned and at < last):
                    continue
                name = transactional_id(number).encode()
                value[_PRODUCER_ID] = (_FIRST_PRODUCER_ID + number).to_bytes(8, "big")
                yield b"\0\0" + len(name).to_bytes(2, "big") + name, bytes(value)


def transactional_id(number: int) -> str:
    """The name of an id, as applications with an id per task have them."""
    return f"payments-enrichment-7f9c6d5b8-{number // 100}-task-{number % 100}"
