"""Tables at one batch, and results of queries."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pipelines.query.arrow_types import in_table_types
from pipelines.query.engine import Snapshot, quoted
from pipelines.query.python_values import values_of
from pipelines.query.tables_age import tables_age
from pipelines.runtime.errors import GrouplakeError, UsageError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


class Tables:
    """All tables and views of a folder at one batch. Made by `grouplake.open`."""

    def __init__(self, snapshot: Snapshot, location: str, *, is_newest: bool = True) -> None:
        self._snapshot = snapshot
        self._location = location
        self._is_newest = is_newest

    @classmethod
    def open(cls, tables: "str | os.PathLike[str]", as_of: int | str | datetime | None = None) -> "Tables":
        """Open a folder: see `grouplake.open`."""
        location = os.fspath(tables)
        if not location.strip():
            raise UsageError("the name of the folder is empty")
        return cls(Snapshot.open(location, as_of), location, is_newest=as_of is None)

    @property
    def batch_id(self) -> int:
        """Id of the batch: `as_of=` of another call opens the same batch again."""
        return self._snapshot.batch.batch_id

    @property
    def finished_at(self) -> datetime:
        """Time (UTC) at which the batch was complete."""
        return self._snapshot.batch.finished_at

    @property
    def age(self) -> timedelta:
        """Time since the batch was complete."""
        return datetime.now(UTC) - self.finished_at

    @property
    def is_old(self) -> bool:
        """True if the job should have written a newer batch or sample by now: statuses of groups are then unknown.

        False for tables that were opened with `as_of`, and if the job has no known interval.
        """
        return self.old_reason is not None

    @property
    def old_reason(self) -> str | None:
        """Since when the data is old, and why; None unless `is_old`."""
        return tables_age(self._snapshot, self._location).text if self._is_newest else None

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables."""
        return self._snapshot.tables

    @property
    def views(self) -> tuple[str, ...]:
        """Names of the views."""
        return self._snapshot.views

    def location(self, name: str) -> str:
        """Return the location of a table: of its Delta log, for readers of their own. `grouplake rebuild` changes it.

        Raises:
            GrouplakeError: no table of this name.
        """
        if name not in self.tables:
            raise UsageError(f"no table {name!r} in batch {self.batch_id}: use one of {', '.join(self.tables)}")
        return self._snapshot.location(name)

    def sql(self, text: str) -> "QueryResult":
        """Run one statement that reads: SELECT, WITH, VALUES, DESCRIBE or EXPLAIN, in DataFusion's SQL.

        Raises:
            GrouplakeError: the statement is not valid, or does more than read.
        """
        return QueryResult(in_table_types(self._snapshot.query(text)))

    def table(self, name: str) -> "QueryResult":
        """Return all rows of a table or view.

        Raises:
            GrouplakeError: no table or view of this name.
        """
        names = (*self.tables, *self.views)
        if name not in names:
            raise UsageError(f"no table or view {name!r} in batch {self.batch_id}: use one of {', '.join(names)}")
        return self.sql(f"SELECT * FROM {quoted(name)}")

    def __repr__(self) -> str:
        return f"<grouplake.Tables {self._location!r} at batch {self.batch_id} of {self.finished_at:%Y-%m-%d %H:%M:%S} UTC>"


class QueryResult:
    """The rows of a query, in memory as Arrow. Iteration gives one dict per row.

    Libraries that read Arrow's C stream take a result as it is: `duckdb.from_arrow(result)`, `polars.DataFrame(result)`.
    """

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns. The second of two equal names is NAME_2."""
        return tuple(self._rows.schema.names)

    def to_arrow(self) -> pa.Table:
        """Return a `pyarrow.Table`. Times are `timestamp[us, UTC]`."""
        return self._rows

    def to_pandas(self) -> "pd.DataFrame":
        """Return a pandas DataFrame.

        Integers and booleans have pandas' nullable types (`Int64`, `boolean`): offsets keep all digits beside nulls.

        Raises:
            GrouplakeError: pandas is not installed.
        """
        if find_spec("pandas") is None:
            raise GrouplakeError("to_pandas needs pandas: pip install pandas")
        import pandas as pd

        nullable = {pa.int32(): pd.Int32Dtype(), pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
        frame: pd.DataFrame = self._rows.to_pandas(types_mapper=nullable.get)
        return frame

    def to_polars(self) -> "pl.DataFrame":
        """Return a Polars DataFrame.

        Raises:
            GrouplakeError: Polars is not installed.
        """
        if find_spec("polars") is None:
            raise GrouplakeError("to_polars needs Polars: pip install polars")
        import polars as pl

        frame = pl.from_arrow(self._rows)
        assert isinstance(frame, pl.DataFrame), "a table becomes a frame, only an array becomes a series"
        return frame

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Arrow's PyCapsule interface."""
        return self._rows.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return int(self._rows.num_rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in self._rows.to_batches():
            columns = [values_of(column) for column in batch.columns]
            yield from (dict(zip(self.columns, row, strict=True)) for row in zip(*columns, strict=True))

    def __repr__(self) -> str:
        return f"<grouplake.QueryResult of {len(self)} rows: {', '.join(self.columns)}>"
