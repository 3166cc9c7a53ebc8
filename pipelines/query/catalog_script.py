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
    if schema is not None:
        _expect_schema(schema, dialect)
    snapshot = Snapshot.open(root)
    store = TableStore(root)
    parts = [_head(dialect, store.root), *([] if schema is None else [_use(schema)])]
    locations = {name: re.sub(r"^s3a?://", dialect.scheme, store.uri(name)) for name in snapshot.tables}
    for name, location in locations.items():
        # CREATE OR REPLACE would write into the table, and IF NOT EXISTS keeps the location that the catalog has
        parts += [f"DROP TABLE IF EXISTS `{name}`;\n"] if is_replacing else []
        parts.append(dialect.table(name, location, _columns(snapshot, name)))
    parts += [dialect.note] if dialect.note else []
    paths = locations if dialect.reads_paths else {}
    parts += [_view(name, _columns(snapshot, name), paths) for name in snapshot.views]
    return "\n".join(parts)


def _expect_schema(schema: str, dialect: Dialect) -> None:
    parts = schema.split(".")
    if len(parts) > dialect.most_parts or not all(map(_PART.fullmatch, parts)):
        form = "NAME or CATALOG.NAME" if dialect.most_parts > 1 else "NAME"
        raise UsageError(f"invalid --schema {schema!r}: use {form}, of letters, digits and '_'")


def _head(dialect: Dialect, root: str) -> str:
    lines = [
        f"-- Tables and views under {' '.join(root.splitlines())}, made by: grouplake catalog --dialect {dialect.name}",
        "-- Each table is read at its newest version. During a batch the tables are not consistent with each other:",
        "-- grouplake.register and grouplake sql read one batch.",
    ]
    return "\n".join(lines) + "\n"


def _use(schema: str) -> str:
    return f"CREATE SCHEMA IF NOT EXISTS {schema} COMMENT {_text(_SCHEMA_COMMENT)};\n\nUSE {schema};\n"


def _delta_table(name: str, location: str, _: pa.Schema) -> str:
    return f"CREATE TABLE IF NOT EXISTS {name}\nUSING DELTA\nCOMMENT {_text(description(name))}\nLOCATION {_text(location)};\n"


def _hive_table(name: str, location: str, columns: pa.Schema) -> str:
    lines = ",\n".join(f"  `{column.name}` {type_name(column.type).replace(': ', ':')}{_comment(column)}" for column in columns)
    return (
        f"CREATE EXTERNAL TABLE IF NOT EXISTS `{name}` (\n{lines}\n)\nCOMMENT {_text(description(name))}\n"
        f"STORED BY '{_HIVE_HANDLER}'\nLOCATION {_text(location)};\n"
    )


def _view(name: str, columns: pa.Schema, paths: Mapping[str, str]) -> str:
    """A view for Spark SQL; `paths` has the locations of the tables that it does not read by name."""
    lines = ",\n".join(f"  {column.name}{_comment(column)}" for column in columns)
    # comments may contain a semicolon, at which some clients end a statement
    query = "\n".join(line for line in definitions.spark_view_sql(name).splitlines() if not line.startswith("--"))
    read = [table for table in paths if re.search(rf"\b{table}\b", query)]
    if read:
        tables = ",\n".join(f"  {table} AS (SELECT * FROM delta.`{paths[table].replace('`', '``')}`)" for table in read)
        query = f"WITH\n{tables}\nSELECT * FROM (\n{query}\n) {name}"
    return f"CREATE OR REPLACE VIEW {name} (\n{lines}\n)\nCOMMENT {_text(description(name))}\nAS {query};\n"


def _columns(snapshot: Snapshot, name: str) -> pa.Schema:
    """Columns of a table or view; those that come from a column of a table have its comment."""
    return snapshot.query(f"SELECT * FROM {name} LIMIT 0").schema


def _comment(column: pa.Field) -> str:
    comment = (column.metadata or {}).get(b"comment")
    return f" COMMENT {_text(comment.decode())}" if comment else ""


def _text(value: str) -> str:
    """A string literal. Spark before 4 and Hive do not read `''` as a quote."""
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _dialects() -> Iterator[Dialect]:
    yield Dialect("spark", 2, "s3a://", _delta_table)
    # Spark does not read the tables of Hive's connector, and Hive does not have the functions of the views
    yield Dialect("hive", 1, "s3a://", _hive_table, _HIVE_NOTE, reads_paths=True)
    yield Dialect("unity", 2, "s3://", _delta_table)


DIALECTS = {dialect.name: dialect for dialect in _dialects()}
