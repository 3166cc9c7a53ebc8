"""Rows of DataFusion as Arrow, with strings and binaries in the place of the views that it returns.

Arrow can neither sort nor join views, and pyarrow before 16 does not know them. The conversion is that of delta-rs' own Arrow.
"""

from collections.abc import Iterator

import pyarrow as pa
from arro3.core import DataType, Field, RecordBatch, RecordBatchReader, Schema, Table


def rows_of(result: RecordBatchReader) -> pa.Table:
    """All rows of a result."""
    table = result.read_all()
    schema = _without_views(table.schema)
    columns = [column.cast(kind) for column, kind in zip(table.columns, schema.types, strict=True)]
    return pa.table(Table.from_arrays(columns, schema=schema)) if columns else pa.table(table)


def stream_of(result: RecordBatchReader) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The schema of a result, and its rows, read as they are consumed."""
    schema = _without_views(result.schema)
    return pa.schema(schema), (_converted(batch, schema) for batch in result)


def _converted(batch: RecordBatch, schema: Schema) -> pa.RecordBatch:
    columns = [column.cast(kind) for column, kind in zip(batch.columns, schema.types, strict=True)]
    return pa.record_batch(RecordBatch.from_arrays(columns, schema=schema))


def _without_views(schema: Schema) -> Schema:
    return Schema([_field(schema.field(index)) for index in range(len(schema))], metadata=schema.metadata)


def _field(field: Field) -> Field:
    return field.with_type(_type(field.type))


def _type(kind: DataType) -> DataType:
    if DataType.is_string_view(kind):
        return DataType.string()
    if DataType.is_binary_view(kind):
        return DataType.binary()
    if DataType.is_list(kind):
        assert kind.value_field is not None, "a list has elements"
        return DataType.list(_field(kind.value_field))
    if DataType.is_struct(kind):
        return DataType.struct([_field(field) for field in kind.fields])
    if DataType.is_map(kind):
        # this Arrow has no access to the types of a map
        found = pa.schema(Schema([Field("map", kind, nullable=True)])).field(0).type
        key, item = (_field(Field.from_arrow(each)) for each in (found.key_field, found.item_field))
        return DataType.map(key, item, False)
    return kind
