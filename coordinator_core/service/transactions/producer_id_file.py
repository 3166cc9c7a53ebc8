"""The file with the last block of producer ids, in the format of the znode that brokers before 3.0 kept."""

import json
from pathlib import Path

from coordinator_core.log.file_replacement import replace_file
from coordinator_core.segment_log.segment import sync_folder
from coordinator_core.transaction_coordinator.producer_ids import BLOCK_SIZE, ProducerIdsBlock, next_block

#: Name of the znode, `/latest_producer_id_block`.
FILE = "latest_producer_id_block"


class ProducerIdFileDamaged(Exception):
    """The file cannot be read, so the producer ids that were given out are unknown."""


class ProducerIdFile:
    """Allocates blocks. A block is durable before any of its ids is given out, so that no id is used twice.

    Every block is after `highest_used`, the greatest producer id of the logs in the directory: a log that a broker wrote has no
    file, and one that was restored may have an older file.
    """

    def __init__(self, directory: Path, broker: int, highest_used: int = -1) -> None:
        self._path = directory / FILE
        self._broker = broker
        self._highest_used = highest_used

    def allocate(self) -> ProducerIdsBlock:
        """Allocate the next block. Raises ProducerIdFileDamaged, BlocksExhausted, OSError."""
        last = self._last()
        if self._highest_used > (-1 if last is None else last.last):
            last = ProducerIdsBlock(self._highest_used - self._highest_used % BLOCK_SIZE)
        block = next_block(last)
        self._store(block)
        return block

    def _store(self, block: ProducerIdsBlock) -> None:
        content = {"version": 1, "broker": self._broker, "block_start": str(block.first), "block_end": str(block.last)}
        replace_file(self._path, json.dumps(content, separators=(",", ":")).encode())
        sync_folder(self._path.parent)

    def _last(self) -> ProducerIdsBlock | None:
        try:
            content = json.loads(self._path.read_text())
        except FileNotFoundError:
            return None
        except (ValueError, RecursionError) as error:
            raise ProducerIdFileDamaged(f"{self._path}: {error}") from error
        try:
            first, last = int(content["block_start"]), int(content["block_end"])
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise ProducerIdFileDamaged(f"{self._path}: no block of producer ids: {content!r}") from error
        if not 0 <= first <= last + 1:
            raise ProducerIdFileDamaged(f"{self._path}: the block of producer ids ends before it begins: {content!r}")
        return ProducerIdsBlock(first, last - first + 1)
