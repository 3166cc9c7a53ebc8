"""Change files of a commit, read without a reader of feeds: as its entry in the log names them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq


def changed_rows(root: str, version: int) -> Iterator[dict[str, Any]]:
    """The rows of the change files of a version."""
    entry = Path(root) / "_delta_log" / f"{version:020}.json"
    for action in map(json.loads, entry.read_text().splitlines()):
        if "cdc" in action:
            assert (Path(root) / action["cdc"]["path"]).stat().st_size == action["cdc"]["size"]
            yield from pq.read_table(f"{root}/{action['cdc']['path']}", partitioning=None).to_pylist()
