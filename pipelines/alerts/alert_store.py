"""The tables `alerts` and `alert_history`: written by the evaluator of alerts alone, never by the job (docs/adr/0027).

A commit writes `alert_history` first, with the version of `alerts` that will follow as its transaction, then `alerts`. History
of a version that `alerts` never reached is rolled back when the tables are opened. Every commit is a compare-and-swap on the
version that this evaluator knows, so a second evaluator makes the first one stop.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError

from pipelines.alerts.alert_rows import alerts_of, alerts_table
from pipelines.alerts.states import Alert, AlertKey
from pipelines.runtime.errors import AnotherWriter, TablesError, UsageError
from pipelines.runtime.failpoints import failpoint
from pipelines.runtime.timestamps import at_ms
from pipelines.tables import definitions
from pipelines.tables.delta_writes import compact, write_rows
from pipelines.tables.migration import add_columns, missing_columns
from pipelines.tables.object_stores import reason_of
from pipelines.tables.row_removal import remove_older
from pipelines.tables.store import TableStore
from pipelines.tables.writer import CommitConflict

#: Application id of the transactions on `alert_history`; their version is that of `alerts`.
_APP_ID = "grouplake-alerts"

_DAY_MS = 86_400_000
#: Age of removed files, as for the tables of the job by default.
_VACUUM_HOURS = 168
_TIDY_EVERY = 200
_FILE_BYTES = 16 << 20
#: Rows of history that wait for a table that can be written again.
_LONGEST_BACKLOG = 10_000


class AlertStore:
    """The stored alerts under a folder."""

    def __init__(self, root: str) -> None:
        """Open the tables, and create missing ones.

        Raises:
            UsageError: the folder cannot be written.
        """
        self.root = root
        store = TableStore(root)
        for name in definitions.ALERTS:
            _create(store, name)
        self._alerts, self._history = store.table("alerts"), store.table("alert_history")
        self._pending_rows: list[dict[str, Any]] = []
        self._is_tidy_due = False
        self._roll_back()
        for name, table in zip(definitions.ALERTS, (self._alerts, self._history), strict=True):
            missing = missing_columns(name, table)
            if len(missing):
                add_columns(table, missing, store.path(name))

    def _roll_back(self) -> None:
        """Remove history that belongs to a version of `alerts` that was never written."""
        written = self._history.transaction_version(_APP_ID)
        if written is not None and written > self._alerts.version():
            try:
                self._history.restore(self._history.version() - 1)
            except (DeltaError, CommitFailedError) as error:
                raise TablesError(f"cannot restore table alert_history under {self.root}: {reason_of(error)}") from error

    def load(self) -> dict[AlertKey, Alert]:
        """The alerts at the opened version."""
        return alerts_of(pa.table(self._alerts.to_pyarrow_table()))

    def commit(self, alerts: Mapping[AlertKey, Alert], history: Sequence[dict[str, Any]], now_ms: int) -> None:
        """Store the alerts, and append rows of history; after a TablesError the next commit appends them.

        Raises:
            AnotherWriter: another evaluator has stored its alerts.
            TablesError: the tables cannot be written.
        """
        self._pending_rows = [*self._pending_rows, *history][-_LONGEST_BACKLOG:]
        if self._pending_rows:
            rows = pa.Table.from_pylist(self._pending_rows, definitions.table("alert_history").schema)
            transaction = Transaction(_APP_ID, self._alerts.version() + 1)
            self._history = self._written("alert_history", self._history, rows, "append", [transaction])
            self._pending_rows = []
        failpoint("alerts:history")
        schema = definitions.table("alerts").schema
        self._alerts = self._written("alerts", self._alerts, alerts_table(alerts.values(), schema, now_ms), "overwrite", [])
        failpoint("alerts:stored")
        # by the version of the table, so that short processes of cron take turns
        self._is_tidy_due |= self._alerts.version() % _TIDY_EVERY == 0

    def _written(
        self, name: str, table: DeltaTable, rows: pa.Table, mode: Any, transactions: Iterable[Transaction]
    ) -> DeltaTable:
        known = table.version()
        properties = CommitProperties(app_transactions=list(transactions), max_commit_retries=0)
        try:
            write_rows(table, rows, mode, properties)
        except (DeltaError, OSError) as error:
            if self._newest_version(name) != known:
                raise AnotherWriter(f"another process evaluates alerts into {self.root}: one at a time") from error
            raise TablesError(f"cannot write table {name} under {self.root}: {reason_of(error)}") from error
        return table

    def _newest_version(self, name: str) -> int | None:
        try:
            return DeltaTable(f"{TableStore(self.root).path(name)}").version()
        except (DeltaError, OSError):
            return None

    def tidy_when_due(self, history_days: int, now_ms: int) -> None:
        """About every 200 commits: delete old history, write checkpoints, remove unneeded files.

        Raises:
            TablesError: the tables cannot be written.
        """
        if not self._is_tidy_due:
            return
        self._is_tidy_due = False
        try:
            remove_older(self._history, "alert_history", "at", at_ms(now_ms - history_days * _DAY_MS), "", _FILE_BYTES)
            compact(self._history)
            for table in (self._alerts, self._history):
                table.create_checkpoint()
                table.vacuum(retention_hours=_VACUUM_HOURS, dry_run=False, enforce_retention_duration=False)
                table.cleanup_metadata()
        except (CommitConflict, DeltaError, OSError) as error:
            raise TablesError(f"cannot compact the tables of alerts under {self.root}: {reason_of(error)}") from error


def _create(store: TableStore, name: str) -> None:
    if DeltaTable.is_deltatable(store.path(name)):
        return
    table = definitions.table(name)
    try:
        DeltaTable.create(
            store.path(name),
            schema=table.commented_schema,
            description=table.description,
            configuration=dict(table.properties),
            mode="ignore",
        )
    except (DeltaError, OSError) as error:
        if not DeltaTable.is_deltatable(store.path(name)):
            raise UsageError(f"cannot create table {store.path(name)}: {reason_of(error)}") from error
