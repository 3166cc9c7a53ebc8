"""Values of Arrow as Python values, with maps as dicts; pyarrow itself makes dicts since version 19 only."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa


def values_of(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values of a column. Of equal keys in a map the last one counts."""
    values: list[Any] = column.to_pylist()
    convert = _conversion(column.type)
    return values if convert is None else [convert(value) for value in values]


def _conversion(kind: pa.DataType) -> Callable[[Any], Any] | None:
    """What turns the pairs of maps into dicts, also within lists and structs; None for a type without maps."""
    if pa.types.is_map(kind):
        item = _conversion(kind.item_type) or _same
        return lambda pairs: None if pairs is None else {key: item(value) for key, value in pairs}
    if pa.types.is_list(kind):
        element = _conversion(kind.value_type)
        return element and (lambda values: None if values is None else [element(value) for value in values])
    if pa.types.is_struct(kind):
        found = {field.name: convert for field in kind if (convert := _conversion(field.type))}
        return (lambda row: None if row is None else row | {name: found[name](row[name]) for name in found}) if found else None
    return None


def _same(value: Any) -> Any:
    return value
