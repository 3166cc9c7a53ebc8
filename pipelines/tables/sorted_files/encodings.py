"""Encodings of the columns of Parquet files that Grouplake writes itself."""

from typing import Any

import pyarrow as pa


def encodings(schema: pa.Schema) -> dict[str, Any]:
    """Encodings of the columns of a file, as arguments of Arrow's writer."""
    texts = [field.name for field in schema if pa.types.is_string(field.type)]
    # offsets and times ascend or repeat: their differences need a fraction of the space and of the time
    numbers = [field.name for field in schema if pa.types.is_integer(field.type) or pa.types.is_timestamp(field.type)]
    return {"use_dictionary": texts, "column_encoding": dict.fromkeys(numbers, "DELTA_BINARY_PACKED")}
