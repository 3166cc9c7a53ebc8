"""Results of DataFusion with plain strings: it returns string views, which Arrow can neither sort nor join."""

import pyarrow as pa


def plain_strings(rows: pa.Table) -> pa.Table:
    """The same rows with strings and binaries in the place of views, also within lists and structs."""
    return rows.cast(pa.schema([field.with_type(_without_views(field.type)) for field in rows.schema]))


def _without_views(kind: pa.DataType) -> pa.DataType:
    if kind == pa.string_view():
        return pa.string()
    if kind == pa.binary_view():
        return pa.binary()
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_without_views(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_without_views(field.type)) for field in kind])
    return kind
