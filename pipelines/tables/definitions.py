"""Definitions of the tables, from `schemas/tables/*.sql`, for both writers.

The DDL runs in Spark unchanged. delta-rs has no DDL and gets the same columns and comments as an Arrow schema. The keys of the
merged tables, which Delta does not know, are defined here.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pyarrow as pa

from pipelines.tables.ddl import parse_create_table

SCHEMAS = Path(__file__).parent / "schemas"

#: Merged table → key columns.
KEYS: dict[str, tuple[str, ...]] = {
    "topic_ids": ("topic_id",),
    "pending_offsets": ("producer_id", "group_id", "topic", "partition"),
    "offsets": ("group_id", "topic", "partition"),
    "group_records": ("group_id", "key"),
    "groups": ("group_id",),
    "members": ("group_id", "member_id"),
    "transactions": ("transactional_id",),
}

#: Tables that a write replaces as a whole.
REPLACED = ("lag", "share_offsets", "group_status", "partition_status", "brokers", "topic_partitions")

#: Hours for which earlier versions of the tables of samples are kept for readers: every sample replaces the rows of all groups.
SAMPLED_HOURS = 1

#: Append-only tables.
APPENDED = (
    *("offset_history", "group_history", "membership_history", "ownership_history", "transaction_history"),
    *("quarantine", "end_offsets", "lag_history", "batches"),
)

#: Tables that only samples of end offsets write, in batches of their own.
SAMPLED = (
    *("end_offsets", "lag", "lag_history", "share_offsets", "group_status", "partition_status"),
    *("brokers", "topic_partitions"),
)

#: Order in which a batch writes the tables; `batches` is last and makes the batch visible.
WRITE_ORDER = (*KEYS, *REPLACED, *APPENDED)

#: Tables of `grouplake alerts`, which has its own writer: no batch names their versions (docs/adr/0027).
ALERTS = ("alerts", "alert_history")

#: Tables of the log `__transaction_state`, which a job reads only on request (docs/adr/0041).
FROM_TRANSACTIONS = ("transactions", "transaction_history")

#: Tables that batches of records of `__consumer_offsets` write.
FROM_RECORDS = tuple(name for name in WRITE_ORDER if name not in (*SAMPLED, *FROM_TRANSACTIONS))

VIEWS = (
    *("committed_offsets", "group_members", "assignments", "expiring_offsets"),
    *("ownership", "rebalances", "resets", "consumption_edges", "unused_groups"),
    *("lag_by_group", "lag_by_group_topic", "lag_by_topic"),
    *("hanging_transactions", "transactional_groups"),
)

#: Columns of `batches` with placeholders in views: `{batch.era}` stands for the era of the batch at which a view is read.
BATCH_COLUMNS = ("era", "retention_ms", "finished_at", "transaction_offsets", "transaction_ms")
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")

#: Beginning of a call in DataFusion → the equivalent in Spark SQL.
_SPARK_CALLS = {
    "unnest(": "explode(",
    "to_timestamp_micros(": "timestamp_micros(",
    "date_part('epoch', ": "1e-6 * unix_micros(",
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
    def unstamped_schema(self) -> pa.Schema:
        """Schema without `batch_id`, which the write of a batch adds."""
        return pa.schema([field for field in self.schema if field.name != "batch_id"])

    @property
    def commented_schema(self) -> pa.Schema:
        """Schema to create the table with. Written rows use `schema`, and the table keeps the comments of its creation."""
        return pa.schema([field.with_metadata({"comment": self.comments[field.name]}) for field in self.schema])


@cache
def table(name: str) -> TableDefinition:
    """Return the definition of table `name`."""
    parsed = parse_create_table((SCHEMAS / "tables" / f"{name}.sql").read_text(encoding="utf-8"))
    return TableDefinition(
        name=name,
        schema=pa.schema([column.field for column in parsed.columns]),
        comments={column.field.name: column.comment for column in parsed.columns},
        description=parsed.comment,
        properties=parsed.properties,
        key=KEYS.get(name, ()),
    )


def tables() -> dict[str, TableDefinition]:
    """Return all tables, in the order in which a batch writes them."""
    return {name: table(name) for name in WRITE_ORDER}


@cache
def view_text(name: str) -> str:
    """Return the text of view `name` in `schemas/views`, with its placeholders."""
    return (SCHEMAS / "views" / f"{name}.sql").read_text()


@cache
def read_by_view(name: str) -> frozenset[str]:
    """The tables and views that the text of view `name` names. A column with the name of a table counts as that table."""
    code = re.sub(r"--[^\n]*", "", view_text(name))
    return frozenset(re.findall(r"\w+", code)).intersection((*WRITE_ORDER, *VIEWS)) - {name}


@cache
def tables_of_view(name: str) -> frozenset[str]:
    """The tables that view `name` reads, directly and through other views."""
    read = read_by_view(name)
    return read.intersection(WRITE_ORDER).union(*(tables_of_view(view) for view in read.intersection(VIEWS)))


@cache
def views_of_view(name: str) -> frozenset[str]:
    """The views that view `name` reads, directly and through other views."""
    read = read_by_view(name).intersection(VIEWS)
    return read.union(*map(views_of_view, read))


def view_sql(name: str, batch: Mapping[str, str]) -> str:
    """Return the query of view `name` in the SQL of DataFusion (see `spark_view_sql` for Spark).

    `batch` has an SQL expression for each of BATCH_COLUMNS, which replaces the placeholder `{batch.COLUMN}`. Raises ValueError
    for a placeholder of another name.
    """
    return filled(view_text(name), batch, f"view {name}")


def filled(text: str, batch: Mapping[str, str], where: str) -> str:
    """Replace the placeholders in the text of a view; `where` is used in the message of the ValueError."""

    def expression(found: re.Match[str]) -> str:
        kind, _, column = found[1].partition(".")
        if kind != "batch" or column not in BATCH_COLUMNS:
            known = ", ".join(f"{{batch.{column}}}" for column in BATCH_COLUMNS)
            raise ValueError(f"{where}: unknown placeholder {found[0]}: use one of {known}")
        return batch[column]

    return _PLACEHOLDER.sub(expression, text)


def newest_batch() -> dict[str, str]:
    """Expressions for BATCH_COLUMNS: the values of the newest row of `batches`."""
    return {column: f"(SELECT {column} FROM batches ORDER BY batch_id DESC LIMIT 1)" for column in BATCH_COLUMNS}


def spark_view_sql(name: str, batch: Mapping[str, str] | None = None) -> str:
    """Return the query of view `name` for Spark SQL, over tables or temporary views with the names of the tables.

    Placeholders become the expressions in `batch`, by default values of the newest row of `batches`. Three functions have other
    names in Spark; the views use no other syntax that differs.
    """
    sql = view_sql(name, newest_batch() if batch is None else batch)
    for ours, theirs in _SPARK_CALLS.items():
        sql = sql.replace(ours, theirs)
    return sql
