"""The batches of one folder by id and by time; those that were found are kept."""

import threading
from datetime import datetime
from functools import lru_cache

from pipelines.errors import UsageError
from pipelines.tables.store import Batch, TableStore

#: Batches that are kept: a batch takes a kilobyte.
_KEPT = 1_000


class PastBatches:
    """For any number of threads."""

    def __init__(self, root: str) -> None:
        self._store = TableStore(root)
        self._lock = threading.Lock()
        self._read = lru_cache(_KEPT)(self._store.batch_as_of)

    def batch(self, wanted: int | datetime, newest: Batch) -> Batch:
        """The batch of that id, or the newest one at that time, up to `newest`. Raises UsageError if there is none."""
        if isinstance(wanted, int) and wanted > newest.batch_id:
            raise UsageError(f"no batch {wanted} under {self._store.root}: the newest one is {newest.batch_id}")
        if wanted == newest.batch_id or (isinstance(wanted, datetime) and wanted >= newest.finished_at):
            return newest
        # one read at a time: the store keeps the table open, and a second request for the same batch finds it
        with self._lock:
            return self._read(wanted)
