"""The file with the last block of producer ids, in the format of the znode that brokers before 3.0 kept."""

import json
from pathlib import Path

from coordinator_core.log.file_replacement import replace_file
from coordinator_core.segment_log.segment import sync_folder
from coordinator_core.transactions.producer_ids import ProducerIdsBlock, next_block

#: Name of the znode, `/latest_producer_id_block`.
FILE = "latest_producer_id_block"


class ProducerIdFileDamaged(Exception):
    """The file cannot be read, so the producer ids that were given out are unknown."""


class ProducerIdFile:
    """Allocates blocks. A block is durable before any of its ids is given out, so that no id is used twice."""

    def __init__(self, directory: Path, broker: int) -> None:
        self._path = directory / FILE
        self._broker = broker

    def allocate(self) -> ProducerIdsBlock:
        """Allocate the next block. Raises ProducerIdFileDamaged, BlocksExhausted, OSError."""
        block = next_block(self._last())
        content = {"version": 1, "broker": self._broker, "block_start": str(block.first), "block_end": str(block.last)}
        replace_file(self._path, json.dumps(content, separators=(",", ":")).encode())
        sync_folder(self._path.parent)
        return block

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
