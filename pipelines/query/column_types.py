"""Names of column types, as the DDL of the tables spells them."""

import pyarrow as pa

_NAMES = {
    pa.string(): "STRING",
    pa.binary(): "BINARY",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float64(): "DOUBLE",
    pa.bool_(): "BOOLEAN",
}


def type_name(kind: pa.DataType) -> str:
    """An Arrow type as Spark SQL and Hive spell it; a type that no table has, as Arrow spells it."""
    if pa.types.is_map(kind):
        return f"MAP<{type_name(kind.key_type)}, {type_name(kind.item_type)}>"
    if pa.types.is_list(kind):
        return f"ARRAY<{type_name(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"STRUCT<{', '.join(f'{member.name}: {type_name(member.type)}' for member in kind)}>"
    if pa.types.is_timestamp(kind):
        return "TIMESTAMP"
    return _NAMES.get(kind, str(kind))
