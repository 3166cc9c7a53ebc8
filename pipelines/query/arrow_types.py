"""Results with the names and types of tables: distinct names, and no metadata of fields."""

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa


def in_table_types(table: pa.Table) -> pa.Table:
    """The rows with distinct column names, without metadata of fields."""
    names = distinct_names(table.schema.names)
    fields = [pa.field(name, _type(field.type), nullable=field.nullable) for name, field in zip(names, table.schema, strict=True)]
    return table.rename_columns(names).cast(pa.schema(fields))


def distinct_names(names: Sequence[str]) -> list[str]:
    """Column names; the second of two equal names, as in joins, becomes NAME_2."""
    seen: Counter[str] = Counter()
    distinct = []
    for name in names:
        seen[name] += 1
        distinct.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return distinct


def _type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_map(kind):
        return pa.map_(_type(kind.key_type), _type(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(_field(kind.value_field))
    if pa.types.is_struct(kind):
        return pa.struct([_field(member) for member in kind])
    return kind


def _field(field: pa.Field) -> pa.Field:
    return pa.field(field.name, _type(field.type), nullable=field.nullable)
