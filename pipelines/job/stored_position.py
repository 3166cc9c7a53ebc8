"""The position of the tables with the leader epochs of the log, which a run without Spark keeps for the next run.

Leader epochs show that a log was truncated and has grown again (KIP-320). Spark keeps them in its checkpoint, which a run without
Spark removes, because it would have another position than the tables. The file `_position.json` beside the tables has the
positions before and after that run.
"""

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from pipelines.runtime.failpoints import failpoint
from pipelines.source.position import Position
from pipelines.source.position_file import epochs_at, read_positions, write_positions
from pipelines.source.ranges import Offsets
from pipelines.tables.stream_checkpoints import FOLDER as CHECKPOINT

FILE = "_position.json"
#: Of Spark's log of offsets: the last entry may be of a batch that was not applied.
_NEWEST = 2


def known_epochs(folder: Path, next_offsets: Offsets) -> Mapping[int, int]:
    """Leader epochs in which the log contained all records below `next_offsets`; empty if they are unknown."""
    return epochs_at((*read_positions(folder / FILE), *_of_spark(folder)), next_offsets)


def replace_checkpoint(folder: Path, begin: Position, end: Position) -> None:
    """Keep the positions before and after a batch without Spark, and remove Spark's checkpoint.

    Called before the batch is applied, so that a stream of Spark that starts later starts at the position of the tables.
    """
    write_positions(folder / FILE, (begin, end))
    failpoint("position:written")
    shutil.rmtree(folder / CHECKPOINT, ignore_errors=True)
    if (folder / CHECKPOINT).exists():
        raise OSError(f"cannot remove {folder / CHECKPOINT}, Spark's checkpoint of an earlier position")


def _of_spark(folder: Path) -> Iterator[Position]:
    """Positions in the log of offsets of Spark's checkpoint: its version, metadata of the batch, and a line per source."""
    entries = [entry for entry in (folder / CHECKPOINT / "offsets").glob("[0-9]*") if entry.name.isdigit()]
    for entry in sorted(entries, key=lambda entry: -int(entry.name))[:_NEWEST]:
        try:
            yield Position.from_json(json.loads(entry.read_text().splitlines()[-1]))
        except (OSError, ValueError, AttributeError, TypeError, IndexError):
            continue
