"""Messages as JSON objects, in the form of Kafka's generated `…JsonConverter` classes.

Fields have their Kafka names and the order of the schema. Fields that the version lacks and tagged fields with their default are
absent. Bytes are padded base64, UUIDs 22 characters of URL-safe base64, null is null. Unknown tags are omitted.
"""

from base64 import b64encode
from collections.abc import Callable
from functools import cache
from typing import Any

from coordinator_core.codec.schema import Field, MessageLayout, catalog
from coordinator_core.codec.uuids import uuid_text

Converter = Callable[[Any], Any]


@cache
def converter(layout_name: str, version: int) -> Converter:
    """Return the function from a message to its JSON object (a dict) in that version."""
    return _struct_converter(catalog().layouts[layout_name], version)


def _bytes_text(value: bytes) -> str:
    return b64encode(value).decode()


def _unchanged(value: Any) -> Any:
    return value


_PRIMITIVES: dict[str, Converter] = {"uuid": uuid_text, "bytes": _bytes_text}


def _struct_converter(layout: MessageLayout, version: int) -> Converter:
    converters = [(field, _field_converter(field, version)) for field in layout.in_version(version)]

    def convert(message: Any) -> dict[str, Any]:
        json_object = {}
        for field, convert_field in converters:
            value = getattr(message, field.attribute)
            if field.tag is None or value != field.default:
                json_object[field.name] = None if value is None else convert_field(value)
        return json_object

    return convert


def _field_converter(field: Field, version: int) -> Converter:
    if field.is_struct:
        convert = _struct_converter(catalog().layouts[field.type], version)
    else:
        convert = _PRIMITIVES.get(field.type, _unchanged)
    if not field.is_array:
        return convert
    return lambda elements: [convert(element) for element in elements]
