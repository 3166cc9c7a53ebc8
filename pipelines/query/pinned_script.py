"""`grouplake catalog` for one batch: a script of views over every table at the version that the batch names.

Earlier versions of `end_offsets` and `lag_history` are kept for an hour only. Their rows of the batch are therefore those of the
newest version up to the id of the batch, as in `grouplake sql`; so are those of `batches`.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping

import pyarrow as pa

from pipelines.query.batch_values import spark_batch_values
from pipelines.query.catalog_script import columns_of, spark_view, text, use_schema
from pipelines.query.engine import Snapshot
from pipelines.query.view_dialects import duckdb_view_sql, trino_view_sql
from pipelines.runtime.errors import UsageError
from pipelines.tables import definitions
from pipelines.tables.descriptions import description
from pipelines.tables.store import TableStore, literal

#: Value of `--as-of` for the newest batch.
NEWEST = "newest"

_PART = r"[A-Za-z_][A-Za-z0-9_]*"
_BATCH, _VERSIONS = "grouplake_batch", "grouplake_versions"
#: Tables that are read at their newest version, with the rows up to the id of the batch.
_BY_BATCH_ID = ("batches", "end_offsets", "lag_history")


def pinned_script(root: str, dialect: str, schema: str | None, as_of: str, *, is_replacing: bool = False) -> str:
    """The script for the tables under `root` at a batch.

    Args:
        root: the folder of the tables.
        dialect: a name of PINNED_DIALECTS.
        schema: schema of the views; for Trino CATALOG.NAME.
        as_of: NEWEST, a batch id or a time.
        is_replacing: for Trino, unregister the tables before.

    Raises:
        UsageError: there are no tables, no such batch, or the schema is invalid.
    """
    return "\n".join(PINNED_DIALECTS[dialect](root, as_of).statements(schema, is_replacing=is_replacing))


class _Script(ABC):
    """The tables and views of a batch in one dialect."""

    name: str
    scheme: str

    def __init__(self, root: str, as_of: str) -> None:
        self._is_newest = as_of == NEWEST
        self._snapshot = Snapshot.open(root, None if self._is_newest else as_of)
        self._batch = self._snapshot.batch
        self._store = TableStore(root)

    @abstractmethod
    def statements(self, schema: str | None, *, is_replacing: bool) -> Iterator[str]:
        """The script. Raises UsageError for an option that the dialect does not have."""

    def _head(self, *lines: str) -> str:
        root = " ".join(self._store.root.splitlines())
        first = f"Tables and views of one batch under {root}, made by: grouplake catalog --dialect {self.name}"
        return "".join(f"-- {line}\n" for line in (first, *lines))

    def _pinned(self) -> str:
        return f"Batch {self._batch.batch_id}, complete at {self._batch.finished_at:%Y-%m-%d %H:%M:%S} UTC."

    def _location(self, name: str) -> str:
        return re.sub(r"^s3a?://", self.scheme, self._store.uri(name))

    def _views(self) -> Iterator[tuple[str, pa.Schema]]:
        return ((name, columns_of(self._snapshot, name)) for name in self._snapshot.views)

    def _batch_values(self) -> Mapping[str, str]:
        return spark_batch_values(self._batch)


class _DuckDB(_Script):
    """Temporary views; a variable has the batch, so that a session can go to another one."""

    name, scheme = "duckdb", "s3://"

    def statements(self, schema: str | None, *, is_replacing: bool) -> Iterator[str]:
        if schema is not None or is_replacing:
            raise UsageError("--schema and --replace are not for duckdb: its views are temporary")
        batches = f"delta_scan({literal(self._location('batches'))})"
        newest = f"(SELECT max(batch_id) FROM {batches})"
        yield self._head(
            f"The views read batch {_BATCH}. To read another one, change the value and run both SET statements again.",
        )
        yield "INSTALL delta;\nLOAD delta;\n"
        yield f"SET VARIABLE {_BATCH} = {newest if self._is_newest else self._batch.batch_id};\n"
        yield f"SET VARIABLE {_VERSIONS} = (SELECT versions FROM {batches} WHERE batch_id = getvariable('{_BATCH}'));\n"
        for name in self._snapshot.tables:
            yield self._view(name, self._rows(name))
        read = {name: columns_of(self._snapshot, name) for name in (*self._snapshot.tables, *self._snapshot.views)}
        for name in self._snapshot.views:
            yield self._view(name, duckdb_view_sql(name, read[name], read))

    def _rows(self, name: str) -> str:
        location = literal(self._location(name))
        if name in _BY_BATCH_ID:
            return f"SELECT * FROM delta_scan({location}) WHERE batch_id <= getvariable('{_BATCH}')"
        if name in definitions.ALERTS:
            return f"SELECT * FROM delta_scan({location})"
        # a null version is an internal error of the extension
        absent = f"error({literal(f'{_BATCH} is no batch that has the table {name}')})"
        return f"SELECT * FROM delta_scan({location}, version => coalesce(getvariable('{_VERSIONS}')['{name}'], {absent}))"

    def _view(self, name: str, query: str) -> str:
        return f"CREATE OR REPLACE TEMP VIEW {name} AS\n{query};\n"


class _Trino(_Script):
    """Tables that are registered once, in a schema of their own, and views over their versions."""

    name, scheme = "trino", "s3://"

    def statements(self, schema: str | None, *, is_replacing: bool) -> Iterator[str]:
        if schema is None:
            raise UsageError("trino needs --schema CATALOG.NAME, such as delta.kafka_groups")
        if not re.fullmatch(rf"{_PART}\.{_PART}", schema):
            raise UsageError(f"invalid --schema {schema!r} for trino: use CATALOG.NAME, of letters, digits and '_'")
        catalog, _, database = schema.partition(".")
        tables = f"{database}_tables"
        yield self._head(self._pinned(), f"Tables are registered in {catalog}.{tables}, views of the batch are in {schema}.")
        yield f"CREATE SCHEMA IF NOT EXISTS {catalog}.{tables};\n"
        yield f"CREATE SCHEMA IF NOT EXISTS {schema};\n"
        for name in self._snapshot.tables:
            named = f"schema_name => {literal(tables)}, table_name => {literal(name)}"
            if is_replacing:
                yield f"CALL {catalog}.system.unregister_table({named});\n"
            location = literal(self._location(name))
            yield f"CALL {catalog}.system.register_table({named}, table_location => {location});\n"
        for name in self._snapshot.tables:
            yield self._view(f"{schema}.{name}", name, self._rows(f"{catalog}.{tables}.{name}", name))
        for name, columns in self._views():
            yield self._view(f"{schema}.{name}", name, trino_view_sql(name, columns, self._batch_values(), schema))

    def _rows(self, table: str, name: str) -> str:
        if name in _BY_BATCH_ID:
            return f"SELECT * FROM {table} WHERE batch_id <= {self._batch.batch_id}"
        version = "" if name in definitions.ALERTS else f" FOR VERSION AS OF {self._batch.versions[name]}"
        return f"SELECT * FROM {table}{version}"

    def _view(self, full_name: str, name: str, query: str) -> str:
        return f"CREATE OR REPLACE VIEW {full_name}\nCOMMENT {literal(description(name))}\nAS {query};\n"


class _Spark(_Script):
    """Views over locations: temporary ones, or those of a schema."""

    name, scheme = "spark", "s3a://"

    def statements(self, schema: str | None, *, is_replacing: bool) -> Iterator[str]:
        if is_replacing:
            raise UsageError("--replace is for tables: with --as-of the script has only views, which it replaces anyway")
        kind = "TEMPORARY VIEW" if schema is None else "VIEW"
        yield self._head(self._pinned())
        if schema is not None:
            yield use_schema(schema, 2)
        for name in self._snapshot.tables:
            yield f"CREATE OR REPLACE {kind} {name}\nCOMMENT {text(description(name))}\nAS {self._rows(name)};\n"
        for name, columns in self._views():
            yield spark_view(name, columns, definitions.spark_view_sql(name, self._batch_values()), kind)

    def _rows(self, name: str) -> str:
        rows = f"SELECT * FROM delta.`{self._location(name).replace('`', '``')}`"
        if name in _BY_BATCH_ID:
            return f"{rows} WHERE batch_id <= {self._batch.batch_id}"
        return rows if name in definitions.ALERTS else f"{rows} VERSION AS OF {self._batch.versions[name]}"


PINNED_DIALECTS: Mapping[str, type[_Script]] = {each.name: each for each in (_DuckDB, _Trino, _Spark)}
