"""The histories until a batch whose other tables can no longer be read."""

import re

from pipelines.query.engine import NO_TABLE, Snapshot
from pipelines.runtime.errors import RemovedState
from pipelines.tables import definitions
from pipelines.tables.store import Batch, TableStore, gone

#: Views over histories. From the tables of state they take only what is older than the histories.
_OVER_HISTORIES = ("ownership", "rebalances", "resets", "consumption_edges")
#: Tables of state in these views, and the rows of the newest version that hold for an earlier batch.
_STATE = {"members": "FALSE", "groups": "FALSE", "topic_ids": "TRUE"}


class HistorySnapshot(Snapshot):
    """Append-only tables as far as they go back, and the views over them."""

    def __init__(self, store: TableStore, batch: Batch) -> None:
        super().__init__(store, batch)
        self._shadowed: set[str] = set()

    def provide(self, name: str) -> None:
        """Open a history, or create a view."""
        if name in definitions.APPENDED and name != "batches":
            if name in self.batch.versions and name not in self._provided:
                self._provided.add(name)
                # rows up to the batch remain in the newest version until `maintain.history_days`
                self._register(f"all_{name}", self._store.table(name))
                self._create_view(name, f"SELECT * FROM all_{name} WHERE batch_id <= {self.batch.batch_id}")
        elif name in _OVER_HISTORIES:
            if name in self.views and name not in self._provided:
                self._provided.add(name)
                self._provide_view(name)
        elif name not in definitions.KEYS and name not in definitions.REPLACED:
            super().provide(name)

    def _provide_view(self, name: str) -> None:
        view = definitions.view_sql(name, self._of_batch)
        named = set(re.findall(r"\w+", view))
        self._provide(" ".join(named - _STATE.keys()))
        shadows = []
        for table in sorted(named & _STATE.keys()):
            if table not in self._shadowed:
                self._shadowed.add(table)
                self._register(f"newest_{table}", self._store.table(table))
            shadows.append(f"{table} AS (SELECT * FROM newest_{table} WHERE {_STATE[table]})")
        self._create_view(name, f"WITH {', '.join(shadows)} {view}" if shadows else view)

    def _absent(self, error: str) -> str | None:
        found = NO_TABLE.search(error)
        if found is not None and found[2] in (*definitions.KEYS, *definitions.REPLACED, *definitions.VIEWS):
            raise RemovedState(gone(f"table {found[2]} of batch {self.batch.batch_id}"))
        return super()._absent(error)
