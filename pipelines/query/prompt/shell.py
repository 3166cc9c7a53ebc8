"""State of a prompt or script, and its output. It needs no terminal."""

import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from io import StringIO
from typing import TextIO

import pyarrow as pa

from pipelines.query.output import WRITERS, write_expanded
from pipelines.query.prompt.pager import show
from pipelines.query.prompt.source import SnapshotSource
from pipelines.query.tables_age import age_lines


class Shell:
    """Runs statements and prints their rows.

    - `is_paged`: results that do not fit the terminal are shown with the pager.
    - `refreshes`: each statement reads the newest batch. Scripts do not refresh, so that their statements agree with each other.
    """

    def __init__(
        self,
        source: SnapshotSource,
        format_name: str,
        out: TextIO,
        *,
        is_paged: bool = False,
        refreshes: bool = False,
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.source = source
        self.refreshes = refreshes
        self.is_expanded = False
        self.is_timed = False
        self.has_quit = False
        self.sleep = sleep
        self.now = now
        self.last: str | None = None
        self._format = format_name
        self._out = out
        self._is_paged = is_paged
        #: The folders whose data was reported as old, in their order.
        self._old: list[str] = []

    def run_statement(self, statement: str, *, is_expanded: bool | None = None) -> None:
        """Run a statement at the newest batch, or at the batch that is open, and print its rows.

        Raises:
            UsageError: not a reading statement, or DataFusion rejects it.
        """
        self.last = statement
        began = time.perf_counter()
        if self.refreshes:
            self.source.refresh()
            self.report_age()
        rows = self.source.snapshot.query(statement)
        took = time.perf_counter() - began
        self.print_rows(rows, is_expanded=is_expanded)
        if self.is_timed:
            self.print(f"Time: {took * 1000:.1f} ms\n")

    def report_age(self) -> None:
        """Print a line for each folder whose data has become older than expected, once."""
        if self.source.as_of is not None:
            return
        lines = age_lines(self.source.snapshot, self.source.roots, self.now())
        old = list(lines)
        for name in old:
            if name not in self._old:
                print(lines[name], file=sys.stderr)
        self._old = old

    def print_rows(self, rows: pa.Table, *, is_expanded: bool | None = None, is_paged: bool | None = None) -> None:
        """Print rows in the format of the shell."""
        is_expanded = self.is_expanded if is_expanded is None else is_expanded
        write = write_expanded if is_expanded and self._format == "table" else WRITERS[self._format]
        if self._is_paged if is_paged is None else is_paged:
            text = StringIO()
            write(rows, text)
            show(text.getvalue(), self._out)
        else:
            write(rows, self._out)

    def print(self, text: str) -> None:
        """Print a text that is not a result."""
        self._out.write(text)
        self._out.flush()

    def print_list(self, text: str) -> None:
        """Print a long text that is not a result, with the pager where results have it."""
        if self._is_paged:
            show(text, self._out)
        else:
            self.print(text)
