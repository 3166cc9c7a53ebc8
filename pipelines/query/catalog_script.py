"""`grouplake catalog`: a script that enters the tables and views into the catalog of another engine.

Columns of Delta tables, with their comments, are in the Delta log, where the engine reads them. The script therefore repeats no
columns of tables, except for Hive, and no statement of it writes into a table.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from pipelines.query.column_types import type_name
from pipelines.query.engine import Snapshot
from pipelines.runtime.errors import UsageError
from pipelines.tables import definitions
from pipelines.tables.descriptions import description
from pipelines.tables.store import TableStore

_PART = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SCHEMA_COMMENT = "Kafka consumer groups"
_HIVE_HANDLER = "io.delta.hive.DeltaStorageHandler"
_HIVE_NOTE = """-- The statements above are for Hive. Those below are for Spark SQL with the same catalog: the views
-- use its functions, and read the tables by their locations, because Spark cannot read tables of Hive's connector.
"""


@dataclass(frozen=True)
class Dialect:
    """How an engine spells the script.

    `most_parts`: the parts of a schema name, such as 2 for `catalog.schema`. `scheme`: that of S3 in its locations. `note`:
    comment before the views. `reads_paths`: views read the tables by their locations instead of their names.
    """

    name: str
    most_parts: int
    scheme: str
    table: Callable[[str, str, pa.Schema], str]
    note: str = ""
    reads_paths: bool = False


def catalog_script(root: str, dialect_name: str, schema: str | None, *, is_replacing: bool = False) -> str:
    """The script for the tables under `root`, as the newest batch has them.

    `is_replacing`: tables of the same names are dropped before, as those that were entered before a rebuild.

    Raises:
        UsageError: there are no tables, or the name of the schema is invalid.
    """
    dialect = DIALECTS[dialect_name]
    start = [] if schema is None else [use_schema(schema, dialect.most_parts)]
    snapshot = Snapshot.open(root)
    store = TableStore(root)
    parts = [_head(dialect, store.root), *start]
    locations = {name: re.sub(r"^s3a?://", dialect.scheme, store.uri(name)) for name in snapshot.tables}
    for name, location in locations.items():
        # CREATE OR REPLACE would write into the table, and IF NOT EXISTS keeps the location that the catalog has
        parts += [f"DROP TABLE IF EXISTS `{name}`;\n"] if is_replacing else []
        parts.append(dialect.table(name, location, columns_of(snapshot, name)))
    parts += [dialect.note] if dialect.note else []
    paths = locations if dialect.reads_paths else {}
    parts += [_view(name, columns_of(snapshot, name), paths) for name in snapshot.views]
    return "\n".join(parts)


def _head(dialect: Dialect, root: str) -> str:
    lines = [
        f"-- Tables and views under {' '.join(root.splitlines())}, made by: grouplake catalog --dialect {dialect.name}",
        "-- Each table is read at its newest version. During a batch the tables are not consistent with each other:",
        "-- grouplake.register and grouplake sql read one batch.",
    ]
    return "\n".join(lines) + "\n"


def use_schema(schema: str, most_parts: int) -> str:
    """Statements that create and use a schema. Raises UsageError for an invalid name, or one of more parts."""
    parts = schema.split(".")
    if len(parts) > most_parts or not all(map(_PART.fullmatch, parts)):
        form = "NAME or CATALOG.NAME" if most_parts > 1 else "NAME"
        raise UsageError(f"invalid --schema {schema!r}: use {form}, of letters, digits and '_'")
    return f"CREATE SCHEMA IF NOT EXISTS {schema} COMMENT {text(_SCHEMA_COMMENT)};\n\nUSE {schema};\n"


def _delta_table(name: str, location: str, _: pa.Schema) -> str:
    return f"CREATE TABLE IF NOT EXISTS {name}\nUSING DELTA\nCOMMENT {text(description(name))}\nLOCATION {text(location)};\n"


def _hive_table(name: str, location: str, columns: pa.Schema) -> str:
    lines = ",\n".join(f"  `{column.name}` {type_name(column.type).replace(': ', ':')}{_comment(column)}" for column in columns)
    return (
        f"CREATE EXTERNAL TABLE IF NOT EXISTS `{name}` (\n{lines}\n)\nCOMMENT {text(description(name))}\n"
        f"STORED BY '{_HIVE_HANDLER}'\nLOCATION {text(location)};\n"
    )


def _view(name: str, columns: pa.Schema, paths: Mapping[str, str]) -> str:
    """A view for Spark SQL; `paths` has the locations of the tables that it does not read by name."""
    query = without_comments(definitions.spark_view_sql(name))
    read = [table for table in paths if re.search(rf"\b{table}\b", query)]
    if read:
        tables = ",\n".join(f"  {table} AS (SELECT * FROM delta.`{paths[table].replace('`', '``')}`)" for table in read)
        query = f"WITH\n{tables}\nSELECT * FROM (\n{query}\n) {name}"
    return spark_view(name, columns, query)


def spark_view(name: str, columns: pa.Schema, query: str, kind: str = "VIEW") -> str:
    """The statement that creates a view in Spark SQL, with the comments of its columns."""
    lines = ",\n".join(f"  {column.name}{_comment(column)}" for column in columns)
    return f"CREATE OR REPLACE {kind} {name} (\n{lines}\n)\nCOMMENT {text(description(name))}\nAS {without_comments(query)};\n"


def without_comments(query: str) -> str:
    """The query without its comments: some clients end a statement at a semicolon in one."""
    return "\n".join(line for line in query.splitlines() if not line.lstrip().startswith("--"))


def columns_of(snapshot: Snapshot, name: str) -> pa.Schema:
    """Columns of a table or view; those that come from a column of a table have its comment."""
    return snapshot.query(f"SELECT * FROM {name} LIMIT 0").schema


def _comment(column: pa.Field) -> str:
    comment = (column.metadata or {}).get(b"comment")
    return f" COMMENT {text(comment.decode())}" if comment else ""


def text(value: str) -> str:
    """A string literal of Spark SQL. Spark before 4 and Hive do not read `''` as a quote."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _dialects() -> Iterator[Dialect]:
    yield Dialect("spark", 2, "s3a://", _delta_table)
    # Spark does not read the tables of Hive's connector, and Hive does not have the functions of the views
    yield Dialect("hive", 1, "s3a://", _hive_table, _HIVE_NOTE, reads_paths=True)
    yield Dialect("unity", 2, "s3://", _delta_table)


DIALECTS = {dialect.name: dialect for dialect in _dialects()}
