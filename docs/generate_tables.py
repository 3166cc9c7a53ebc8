"""Writes the column lists of docs/tables.md from the DDL in schemas/tables: `python docs/generate_tables.py`.

What stands between `<!-- table NAME -->` and `<!-- end -->` is replaced; all other text of the page is written by hand.
"""

import re
from pathlib import Path

import pyarrow as pa

from pipelines.tables import definitions

PAGE = Path(__file__).with_name("tables.md")
_PART = re.compile(r"<!-- table (\w+) -->\n.*?<!-- end -->", re.DOTALL)


def type_name(kind: pa.DataType) -> str:
    """An Arrow type as Spark SQL spells it."""
    if pa.types.is_map(kind):
        return f"MAP<{type_name(kind.key_type)}, {type_name(kind.item_type)}>"
    if pa.types.is_list(kind):
        return f"ARRAY<{type_name(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"STRUCT<{', '.join(f'{member.name}: {type_name(member.type)}' for member in kind)}>"
    if pa.types.is_timestamp(kind):
        return "TIMESTAMP"
    return {pa.string(): "STRING", pa.int32(): "INT", pa.int64(): "BIGINT", pa.bool_(): "BOOLEAN", pa.binary(): "BINARY"}[kind]


def described(name: str) -> str:
    """Description, key and columns of a table. The type of a nullable column ends with `?`."""
    table = definitions.table(name)
    key = f"Key: {', '.join(f'`{column}`' for column in table.key)}." if table.key else "Append-only."
    rows = [
        f"| `{field.name}` | `{type_name(field.type)}`{'?' if field.nullable else ''} | {table.comments[field.name]} |"
        for field in table.schema
    ]
    return "\n".join([f"{table.description}. {key}", "", "| column | type | |", "|---|---|---|", *rows])


def generated(page: str) -> str:
    """The page with its column lists as the DDL has them."""
    return _PART.sub(lambda part: f"<!-- table {part[1]} -->\n{described(part[1])}\n<!-- end -->", page)


if __name__ == "__main__":
    PAGE.write_text(generated(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
