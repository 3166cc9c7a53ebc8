"""The views in the SQL of DuckDB and of Trino, from the one text of each view (docs/adr/0007)."""

import re
from collections.abc import Callable, Mapping

import pyarrow as pa
import sqlglot
from sqlglot import exp

from pipelines.query.catalog_script import without_comments
from pipelines.query.column_types import type_name
from pipelines.tables import definitions

#: Beginning of a call in DataFusion → the equivalent in DuckDB.
_DUCKDB_CALLS = {"to_timestamp_micros(": "make_timestamp(", "cardinality(": "len("}
#: Names of windows, of which `leading` is a keyword there.
_WINDOW = re.compile(r"(\bOVER )(\w+)\b|\b()(\w+)(?= AS \(PARTITION BY)")
_IGNORES_NULLS = re.compile(r"\blast_value\(([\w.]+)\) IGNORE NULLS")

#: Beginning of a call in DataFusion → a call that sqlglot knows from Spark, or one of Trino, which it leaves as it is.
_TRINO_CALLS = {"unnest(": "explode(", "to_timestamp_micros(": "timestamp_micros(", "date_part('epoch', ": "to_unixtime("}


def duckdb_view_sql(name: str, columns: pa.Schema, read: Mapping[str, pa.Schema]) -> str:
    """The query of view `name` for DuckDB over temporary views, with the types of `columns`; its sums of integers are HUGEINT.

    The values of the batch are those of the newest row of `batches`. Within the query, times have no zone: only the extension
    icu adds intervals to times with a zone, and in the zone of the session.

    Args:
        name: the view.
        columns: its columns.
        read: columns of the tables and views that it may read.
    """
    query = without_comments(definitions.view_sql(name, definitions.newest_batch()))
    for ours, theirs in _DUCKDB_CALLS.items():
        query = query.replace(ours, theirs)
    query = _WINDOW.sub(lambda found: f'{found[1] or ""}"{found[2] or found[4]}"', query)
    query = _IGNORES_NULLS.sub(r"last_value(\1 IGNORE NULLS)", query)
    sources = (_without_zones(source, fields) for source, fields in read.items() if re.search(rf"\b{source}\b", query))
    return f"WITH {', '.join(sources)}\nSELECT {', '.join(map(_duckdb_column, columns))}\nFROM (\n{query}\n) {name}"


def _without_zones(source: str, columns: pa.Schema) -> str:
    times = [f"make_timestamp(epoch_us({column.name})) AS {column.name}" for column in columns if _is_time(column)]
    replaced = f" REPLACE ({', '.join(times)})" if times else ""
    return f"{source} AS (SELECT *{replaced} FROM temp.main.{source})"


def _duckdb_column(column: pa.Field) -> str:
    if _is_time(column):
        return f'make_timestamptz(epoch_us("{column.name}")) AS "{column.name}"'
    return _cast(column, "duckdb")


def _is_time(column: pa.Field) -> bool:
    return bool(pa.types.is_timestamp(column.type))


def trino_view_sql(name: str, columns: pa.Schema, batch: Mapping[str, str], schema: str) -> str:
    """The query of view `name` for Trino, with the types of `columns`.

    Args:
        name: the view.
        columns: its columns.
        batch: values for BATCH_COLUMNS, in the SQL of Spark.
        schema: CATALOG.NAME, which has the tables and the other views.
    """
    query = without_comments(definitions.view_sql(name, batch))
    for ours, theirs in _TRINO_CALLS.items():
        query = query.replace(ours, theirs)
    tree = sqlglot.parse_one(query, dialect="spark")
    tree = tree.transform(_member_of_struct)
    for select in list(tree.find_all(exp.Select)):
        _join_unnested(select)
    for rule in (_time, _interval, _without_nulls, _in_schema(schema)):
        tree = tree.transform(rule)
    casts = (_cast(column, "trino") for column in columns)
    return f"SELECT {', '.join(casts)}\nFROM (\n{tree.sql(dialect='trino', pretty=True)}\n) {name}"


def _cast(column: pa.Field, dialect: str) -> str:
    kind = exp.DataType.build(type_name(column.type), dialect="spark").sql(dialect=dialect)
    return f'CAST("{column.name}" AS {kind}) AS "{column.name}"'


def _join_unnested(select: exp.Select) -> None:
    """Replace `explode(list) AS name` by a join with the elements: Trino has no such call among the columns."""
    for column in list(select.expressions):
        if isinstance(column, exp.Alias) and isinstance(column.this, exp.Explode):
            # a row for each element: UNNEST would spread the members of a struct over several columns
            rows = f"TRANSFORM({column.this.this.sql(dialect='trino')}, element -> ROW(element))"
            source = f"UNNEST({rows}) AS {column.alias}_element({column.alias})"
            join = sqlglot.parse_one(f"SELECT 1 FROM members CROSS JOIN {source}", dialect="trino").args["joins"][0]
            select.append("joins", join)
            column.replace(exp.column(column.alias))


def _member_of_struct(node: exp.Expression) -> exp.Expression:
    """`part['topic']` as `part.topic`."""
    if isinstance(node, exp.Bracket) and len(node.expressions) == 1 and node.expressions[0].is_string:
        return exp.Dot(this=node.this, expression=exp.to_identifier(node.expressions[0].name))
    return node


def _time(node: exp.Expression) -> exp.Expression:
    """`timestamp_micros(n)` as a call of Trino, whose times of the tables have milliseconds."""
    if isinstance(node, exp.Anonymous) and node.name.lower() == "timestamp_micros":
        seconds = exp.Mul(this=exp.Literal.number("1e-6"), expression=exp.Paren(this=node.expressions[0]))
        return exp.Anonymous(this="FROM_UNIXTIME", expressions=[seconds])
    return node


def _interval(node: exp.Expression) -> exp.Expression:
    """`CAST(concat(CAST(n AS STRING), ' milliseconds') AS INTERVAL)` as a multiple of a millisecond."""
    if isinstance(node, exp.Cast) and node.to.is_type("interval") and isinstance(node.this, exp.Concat):
        number, unit = node.this.expressions
        if unit.name == " milliseconds":
            return exp.Mul(this=number.this, expression=exp.Interval(this=exp.Literal.string("0.001"), unit=exp.var("SECOND")))
    return node


def _without_nulls(node: exp.Expression) -> exp.Expression:
    """Trino's greatest() and least() are null if one of their values is."""
    if isinstance(node, (exp.Greatest, exp.Least)) and not isinstance(node.parent, exp.Coalesce):
        values = [node.this, *node.expressions]
        return exp.Coalesce(this=node.copy(), expressions=[value.copy() for value in values])
    return node


def _in_schema(schema: str) -> Callable[[exp.Expression], exp.Expression]:
    """Tables and views by their full names, so that a view can be read from any schema."""
    catalog, _, database = schema.partition(".")

    def full(node: exp.Expression) -> exp.Expression:
        if isinstance(node, exp.Table) and node.name and not node.db:
            alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(node.name))
            return exp.Table(this=node.this, db=exp.to_identifier(database), catalog=exp.to_identifier(catalog), alias=alias)
        return node

    return full
