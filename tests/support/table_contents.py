"""Contents of the tables in a folder, in a form that is comparable between runs with different batch ids and times."""

import hashlib
from pathlib import Path
from typing import Any

from pipelines.query.engine import Snapshot
from pipelines.tables import definitions

#: Columns of `batches` about the work done, not about its time or its writer.
_BATCHES = "next_offsets, records_read, records_kept, era, retention_ms"


def contents(root: Path | str) -> dict[str, list[str]]:
    """All rows as the last batch left them. Batch ids are replaced by the log position that the batch reached."""
    return contents_of(Snapshot.open(str(root)))


def contents_of(snapshot: Snapshot) -> dict[str, list[str]]:
    """The contents of an open snapshot."""
    batches = snapshot.query(f"SELECT batch_id, {_BATCHES} FROM batches ORDER BY batch_id").to_pylist()
    position = {row["batch_id"]: str(sorted(row["next_offsets"])) for row in batches}
    # batches that read and removed nothing are those of maintenance
    done = [row for row in batches if row["records_read"] or row["records_kept"]]
    batch_rows = [str({**row, "batch_id": None, "next_offsets": sorted(row["next_offsets"])}) for row in done]
    rows = {
        # version 0 has no rows, and is not opened; an earlier version of Grouplake wrote fewer tables
        name: snapshot.query(f"SELECT * FROM {name}").to_pylist() if snapshot.batch.versions.get(name) else []
        for name in definitions.WRITE_ORDER[:-1]
    }
    return {
        "batches": batch_rows,
        **{
            name: sorted(str(without_nulls({**row, "batch_id": position[row["batch_id"]]})) for row in found)
            for name, found in rows.items()
        },
    }


def without_nulls(value: Any) -> Any:
    """A row without its nulls, at any depth: a migrated table has columns, and fields of structs, that the earlier one lacks."""
    if isinstance(value, dict):
        return {name: without_nulls(each) for name, each in value.items() if each is not None}
    return [without_nulls(each) for each in value] if isinstance(value, list) else value


def digest(state: dict[str, list[str]]) -> str:
    """A digest of contents."""
    return hashlib.sha1(repr(state).encode()).hexdigest()
