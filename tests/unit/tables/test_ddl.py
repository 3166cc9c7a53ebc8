"""The parser of the DDL of the tables, compared with a general parser of SQL."""

from typing import Any

import pyarrow as pa
import pytest
import sqlglot
from sqlglot import exp

from pipelines.runtime.timestamps import TIMESTAMP
from pipelines.tables.ddl import parse_create_table
from pipelines.tables.definitions import ALERTS, SCHEMAS, WRITE_ORDER

_PRIMITIVES = {
    "TEXT": pa.string(),
    "DOUBLE": pa.float64(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "BOOLEAN": pa.bool_(),
    "BINARY": pa.binary(),
    "TIMESTAMPTZ": TIMESTAMP,
}
_SMALL = """CREATE TABLE t (
  a STRING NOT NULL COMMENT 'it\\'s a, (text)',
  b MAP<INT, ARRAY<STRUCT<c: BIGINT, d: ARRAY<INT>>>> COMMENT ''
)
USING DELTA
COMMENT 'all'
TBLPROPERTIES ('x.y' = '1', 'z' = '2');
"""


def arrow_type(kind: exp.DataType) -> pa.DataType:
    name = kind.this.name
    match name:
        case "ARRAY":
            return pa.list_(pa.field("element", arrow_type(kind.expressions[0])))
        case "STRUCT":
            return pa.struct([pa.field(member.name, arrow_type(member.kind)) for member in kind.expressions])
        case "MAP":
            return pa.map_(arrow_type(kind.expressions[0]), arrow_type(kind.expressions[1]))
    return _PRIMITIVES[name]


def of_general_parser(text: str) -> tuple[Any, ...]:
    """Name, columns with their comments, comment and properties of a table."""
    statement = sqlglot.parse_one(text, dialect="spark")
    properties = statement.args["properties"].expressions
    columns = []
    for column in statement.this.expressions:
        constraints = {type(each.kind).__name__: each.kind for each in column.constraints}
        field = pa.field(column.name, arrow_type(column.kind), nullable="NotNullColumnConstraint" not in constraints)
        columns.append((field, constraints["CommentColumnConstraint"].this.this))
    return (
        statement.this.this.name,
        tuple(columns),
        next(each for each in properties if isinstance(each, exp.SchemaCommentProperty)).this.this,
        {each.this.this: each.args["value"].this for each in properties if type(each) is exp.Property},
    )


@pytest.mark.parametrize("name", [*WRITE_ORDER, *ALERTS])
def test_a_table_is_read_as_by_a_general_parser(name: str) -> None:
    text = (SCHEMAS / "tables" / f"{name}.sql").read_text(encoding="utf-8")
    assert parse_create_table(text) == of_general_parser(text)


def test_texts_and_nested_types() -> None:
    found = parse_create_table(_SMALL)
    assert found == of_general_parser(_SMALL)
    assert [column.comment for column in found.columns] == ["it's a, (text)", ""]
    assert found.properties == {"x.y": "1", "z": "2"}


@pytest.mark.parametrize(
    ("text", "instead", "message"),
    [
        ("BIGINT", "LONG", "line 3 of a table's DDL has 'LONG' in the place of one of the types STRING, DOUBLE"),
        ("NOT NULL", "NOT", "line 2 of a table's DDL has 'COMMENT' in the place of NULL"),
        ("USING DELTA", "USING PARQUET", "line 5 of a table's DDL has 'PARQUET' in the place of DELTA"),
        ("'all'", "all", "line 6 of a table's DDL has 'all' in the place of a text in quotes"),
        ("'2');", "'2'); SELECT 1", "has 'SELECT 1' in the place of the end of the statement"),
        ("CREATE", "/* */ CREATE", "in the place of a word, a text or a sign"),
    ],
)
def test_another_statement_is_an_error(text: str, instead: str, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        parse_create_table(_SMALL.replace(text, instead, 1))
