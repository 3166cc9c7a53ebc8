"""Files with the positions before and after a batch, and their leader epochs (KIP-320).

The row of `batches` has the offsets alone. A file is written before its batch is applied: after a kill at any moment, the tables
are at one of its positions. Only a position with the offsets of the tables counts, so a file that is stale, torn or missing costs
the check for truncated logs and nothing else.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from pipelines.source.position import Position
from pipelines.source.ranges import Offsets

#: Beside the tables, of `__transaction_state`.
TRANSACTIONS_FILE = "_transaction_position.json"


def write_positions(file: Path, positions: Iterable[Position]) -> None:
    """Replace the file in one step. Raises OSError."""
    draft = file.with_name(f"{file.name}.tmp")
    draft.write_text(json.dumps([position.to_json() for position in positions]))
    os.replace(draft, file)


def read_positions(file: Path) -> Iterator[Position]:
    """Yield the positions of the file; none if it is missing or torn."""
    try:
        for value in json.loads(file.read_text()):
            yield Position.from_json(value)
    except (OSError, ValueError, AttributeError, TypeError):
        return


def epochs_at(positions: Iterable[Position], next_offsets: Offsets) -> Mapping[int, int]:
    """Leader epochs in which the log contained all records below `next_offsets`; empty if they are unknown."""
    for position in positions:
        if all(position.offsets.get(partition) == offset for partition, offset in next_offsets.items()):
            return position.epochs
    return {}
