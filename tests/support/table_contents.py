"""What is in the tables of a folder, in a form that runs of different batch ids and times can be compared by."""

import hashlib
from pathlib import Path

from pipelines.query.engine import Snapshot
from pipelines.tables import definitions

#: Columns of `batches` that say what was done, not when or by whom.
_BATCHES = "next_offsets, records_read, records_kept, era, retention_ms"


def contents(root: Path) -> dict[str, list[str]]:
    """All rows as the last batch left them. Batch ids become the place in the log that the batch reached."""
    return contents_of(Snapshot.open(str(root)))


def contents_of(snapshot: Snapshot) -> dict[str, list[str]]:
    """The same of an open snapshot."""
    batches = snapshot.query(f"SELECT batch_id, {_BATCHES} FROM batches ORDER BY batch_id").to_pylist()
    place = {row["batch_id"]: str(sorted(row["next_offsets"])) for row in batches}
    # batches that read nothing and removed nothing are those of maintenance
    done = [row for row in batches if row["records_read"] or row["records_kept"]]
    told = [str({**row, "batch_id": None, "next_offsets": sorted(row["next_offsets"])}) for row in done]
    rows = {name: snapshot.query(f"SELECT * FROM {name}").to_pylist() for name in definitions.WRITE_ORDER[:-1]}
    return {
        "batches": told,
        **{name: sorted(str({**row, "batch_id": place[row["batch_id"]]}) for row in found) for name, found in rows.items()},
    }


def digest(state: dict[str, list[str]]) -> str:
    """A short name of contents."""
    return hashlib.sha1(repr(state).encode()).hexdigest()
