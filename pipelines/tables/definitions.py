"""The tables as `schemas/tables/*.sql` defines them, read once for both writers.

The DDL is Spark's and can be run there as it is; delta-rs, which has no DDL, gets the same columns and comments as an Arrow
schema. The keys of the merged tables are not Delta's business and stand here.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from sqlglot import exp

SCHEMAS = Path(__file__).parents[1] / "schemas"

#: Tables that are merged, with the columns that identify a row.
KEYS: dict[str, tuple[str, ...]] = {
    "topic_ids": ("topic_id",),
    "pending_offsets": ("producer_id", "group_id", "topic", "partition"),
    "offsets": ("group_id", "topic", "partition"),
    "group_records": ("group_id", "key"),
    "groups": ("group_id",),
    "members": ("group_id", "member_id"),
}

#: Tables that only grow.
APPENDED = ("offset_history", "group_history", "quarantine", "batches")

#: Order in which a batch writes them; `batches` is last and makes the batch visible.
WRITE_ORDER = (*KEYS, *APPENDED)

VIEWS = ("committed_offsets", "group_members", "assignments", "expiring_offsets")

#: Function of Spark SQL → the one of DataFusion that does the same.
_SPARK_FUNCTIONS = {"explode": "unnest", "timestamp_micros": "to_timestamp_micros"}

_PRIMITIVES = {
    "TEXT": pa.string(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "BOOLEAN": pa.bool_(),
    "BINARY": pa.binary(),
    "TIMESTAMPTZ": pa.timestamp("us", "UTC"),
}


@dataclass(frozen=True)
class TableDefinition:
    """One table: Arrow schema, comments of columns, description, Delta properties, key columns (empty: append-only)."""

    name: str
    schema: pa.Schema
    comments: dict[str, str]
    description: str
    properties: dict[str, str]
    key: tuple[str, ...]

    @property
    def commented_schema(self) -> pa.Schema:
        """To create the table with. Rows go without: a table keeps the comments that it was made with, whatever is said today."""
        return pa.schema([field.with_metadata({"comment": self.comments[field.name]}) for field in self.schema])


@cache
def table(name: str) -> TableDefinition:
    """The definition of table `name`."""
    # sqlglot takes half a second to import and only the writing commands need it
    import sqlglot
    from sqlglot import exp

    statement = sqlglot.parse_one((SCHEMAS / "tables" / f"{name}.sql").read_text(), dialect="spark")
    properties = statement.args["properties"].expressions
    comment = next(p for p in properties if isinstance(p, exp.SchemaCommentProperty))
    return TableDefinition(
        name=name,
        schema=pa.schema([_field(column) for column in statement.this.expressions]),
        comments={
            column.name: _constraints(column)["CommentColumnConstraint"].this.this for column in statement.this.expressions
        },
        description=comment.this.this,
        properties={p.this.this: p.args["value"].this for p in properties if type(p) is exp.Property},
        key=KEYS.get(name, ()),
    )


def tables() -> dict[str, TableDefinition]:
    """Every table, in the order in which a batch writes them."""
    return {name: table(name) for name in WRITE_ORDER}


@cache
def view_sql(name: str) -> str:
    """The query of view `name`, in the SQL that DataFusion reads (see `spark_view_sql`)."""
    return (SCHEMAS / "views" / f"{name}.sql").read_text()


def spark_view_sql(name: str) -> str:
    """The same query for Spark SQL, which has other names for two functions; the views use nothing else that differs."""
    sql = view_sql(name)
    for theirs, ours in _SPARK_FUNCTIONS.items():
        sql = sql.replace(f"{ours}(", f"{theirs}(")
    return sql


def _constraints(column: "exp.ColumnDef") -> dict[str, Any]:
    return {type(constraint.kind).__name__: constraint.kind for constraint in column.constraints}


def _field(column: "exp.ColumnDef") -> pa.Field:
    return pa.field(column.name, _arrow_type(column.kind), nullable="NotNullColumnConstraint" not in _constraints(column))


def _arrow_type(kind: "exp.DataType | None") -> pa.DataType:
    assert kind is not None, "every column has a type"
    name = kind.this.name
    match name:
        case "ARRAY":
            return pa.list_(pa.field("element", _arrow_type(kind.expressions[0])))
        case "STRUCT":
            return pa.struct([pa.field(member.name, _arrow_type(member.kind)) for member in kind.expressions])
        case "MAP":
            return pa.map_(_arrow_type(kind.expressions[0]), _arrow_type(kind.expressions[1]))
    return _PRIMITIVES[name]
