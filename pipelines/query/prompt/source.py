"""The snapshot that a prompt or a script queries, and its replacement by a newer one."""

from collections.abc import Mapping, Sequence

from pipelines.query.clusters import AnySnapshot, ClusterSnapshot, open_snapshot
from pipelines.query.engine import quoted
from pipelines.tables.store import Batch


class SnapshotSource:
    """A snapshot of one folder or of several clusters. With `as_of` it never changes."""

    def __init__(self, roots: Mapping[str, str], as_of: str | None = None) -> None:
        self.roots = roots
        self.as_of = as_of
        self.snapshot: AnySnapshot = open_snapshot(roots, as_of)
        self._columns: dict[str, tuple[str, ...]] = {}

    def refresh(self) -> bool:
        """Open the newest batch. Return True if it is another one."""
        if self.as_of is not None:
            return False
        newest = open_snapshot(self.roots)
        if _ids(newest) == _ids(self.snapshot):
            # the old snapshot has its tables open
            return False
        self.snapshot = newest
        return True

    @property
    def label(self) -> str:
        """The batch, such as `batch 12`; of several clusters, `east 12, west 40`."""
        ids = _ids(self.snapshot)
        return f"batch {ids['']}" if "" in ids else ", ".join(f"{name} {number}" for name, number in ids.items())

    @property
    def descriptions(self) -> Sequence[str]:
        """A line for each folder: its name, its batch and the time of the batch."""
        return [
            f"{name}{': ' if name else ''}{self.roots[name]}, batch {batch.batch_id} of {_time(batch)}"
            for name, batch in self.snapshot.batches.items()
        ]

    @property
    def clusters(self) -> tuple[str, ...]:
        """Names of the clusters; empty for one folder without a name."""
        return tuple(self.roots) if isinstance(self.snapshot, ClusterSnapshot) else ()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the tables and views."""
        return (*self.snapshot.tables, *self.snapshot.views)

    def columns(self, name: str) -> tuple[str, ...]:
        """Columns of a table or view, by its name with or without a cluster."""
        if name not in self._columns:
            self._columns[name] = tuple(self.snapshot.query(f"SELECT * FROM {name} LIMIT 0").schema.names)
        return self._columns[name]

    def as_schema(self, cluster: str) -> str:
        """The name of a cluster as a statement writes it: quoted if it is not a plain name."""
        return cluster if cluster.isidentifier() and cluster.isascii() else quoted(cluster)


def _ids(snapshot: AnySnapshot) -> dict[str, int]:
    return {name: batch.batch_id for name, batch in snapshot.batches.items()}


def _time(batch: Batch) -> str:
    return f"{batch.finished_at:%Y-%m-%d %H:%M:%S} UTC"
