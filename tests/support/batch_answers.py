"""Answers of the tables that a job is writing, for waits: asked again only once the tables have a new batch."""

from pathlib import Path
from typing import Any

from pipelines.query.engine import Snapshot
from pipelines.runtime.errors import UsageError


class BatchAnswers:
    """Rows of the newest batch of one folder.

    A wait for a batch looks every second, for as long as Spark starts. Opening the tables takes much more CPU time, which the job
    lacks then, than listing the commits of `batches`, the table that is written last.
    """

    def __init__(self, tables: Path) -> None:
        self._tables = tables
        self._commits: frozenset[str] = frozenset()
        self._rows: dict[str, list[dict[str, Any]]] = {}

    def rows(self, query: str) -> list[dict[str, Any]] | None:
        """The rows of a query on the newest batch; None before the first one."""
        commits = frozenset(path.name for path in self._tables.glob("batches/_delta_log/*.json"))
        if commits != self._commits:
            self._commits, self._rows = commits, {}
        if query not in self._rows:
            try:
                self._rows[query] = Snapshot.open(str(self._tables)).query(query).to_pylist()
            except UsageError:
                return None
        return self._rows[query]
