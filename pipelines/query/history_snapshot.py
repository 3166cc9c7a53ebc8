"""The histories until a batch whose other tables can no longer be read."""

from pipelines.errors import RemovedState
from pipelines.query.engine import NO_TABLE, Snapshot
from pipelines.tables import definitions
from pipelines.tables.store import gone


class HistorySnapshot(Snapshot):
    """Append-only tables as far as they go back, and the views over them alone."""

    def provide(self, name: str) -> None:
        """Open a history, or create a view."""
        if name in definitions.APPENDED and name != "batches":
            if name in self.batch.versions and name not in self._provided:
                self._provided.add(name)
                # rows up to the batch remain in the newest version until `maintain.history_days`
                self._register(f"all_{name}", self._store.table(name))
                self._create_view(name, f"SELECT * FROM all_{name} WHERE batch_id <= {self.batch.batch_id}")
        elif name not in definitions.KEYS and name not in definitions.REPLACED:
            super().provide(name)

    def _absent(self, error: str) -> str | None:
        found = NO_TABLE.search(error)
        if found is not None and found[2] in (*definitions.KEYS, *definitions.REPLACED):
            raise RemovedState(gone(f"table {found[2]} of batch {self.batch.batch_id}"))
        return super()._absent(error)
