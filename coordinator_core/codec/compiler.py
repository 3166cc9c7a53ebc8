"""Compiler from layouts to closures: a reader and a writer for one layout in one version.

Decoding an offset commit takes a few microseconds, so readers precompute all that the schema allows: adjacent integers are read
in one step, and values are passed to the dataclass by position.
"""

from collections.abc import Callable, Sequence
from dataclasses import fields as dataclass_fields
from functools import cache
from itertools import chain, takewhile
from operator import itemgetter
from typing import Any

from coordinator_core.codec import wire
from coordinator_core.codec.schema import Catalog, Field, MessageLayout, catalog
from coordinator_core.codec.wire import Reader, Unreadable, Writer, read_uvarint, write_uvarint

UNKNOWN_TAGS = "unknown_tags"


class Compiler:
    """Readers and writers of the layouts of one catalog."""

    def __init__(self, of: Catalog) -> None:
        self._layouts = of.layouts

    def reader(self, name: str, version: int) -> Reader:
        """Return the reader of a message, without the version before it."""
        layout = self._layouts[name]
        return self._struct_reader(layout, version, layout.is_flexible(version))

    def head_reader(self, name: str, version: int, end: str) -> Reader:
        """Return the reader of a message's values before its field `end`."""
        layout = self._layouts[name]
        plain, _ = _split(layout, version)
        steps = self._steps(list(takewhile(lambda field: field.attribute != end, plain)), version, layout.is_flexible(version))

        def read(buffer: bytes, position: int, sink: list[Any]) -> int:
            for step in steps:
                position = step(buffer, position, sink)
            return position

        return read

    def writer(self, name: str, version: int) -> Writer:
        """Return the writer of a message, without the version before it. Fields that the version lacks are not written."""
        layout = self._layouts[name]
        return self._struct_writer(layout, version, layout.is_flexible(version))

    def _struct_reader(self, layout: MessageLayout, version: int, flexible: bool) -> Reader:
        plain, tagged = _split(layout, version)
        steps = self._steps(plain, version, flexible)
        attributes = [field.attribute for field in chain(plain, tagged)]
        if flexible:
            steps.append(
                _tag_section_reader(
                    {_tag(field): self._field_reader(field, version, flexible) for field in tagged},
                    {_tag(field): field.default for field in tagged},
                )
            )
            attributes.append(UNKNOWN_TAGS)
        return _builder(layout.dataclass, attributes, steps)

    def _steps(self, fields: Sequence[Field], version: int, flexible: bool) -> list[Reader]:
        steps: list[Reader] = []
        formats = ""
        for field in fields:
            if field.type in wire.INT_FORMATS and not field.is_array:
                formats += wire.INT_FORMATS[field.type]
                continue
            if formats:
                steps.append(wire.ints_reader(formats))
                formats = ""
            steps.append(self._field_reader(field, version, flexible))
        if formats:
            steps.append(wire.ints_reader(formats))
        return steps

    def _field_reader(self, field: Field, version: int, flexible: bool) -> Reader:
        if field.is_array:
            if field.type in wire.INT_FORMATS:
                elements = wire.int_elements_reader(field.type)
            else:
                elements = wire.elements_reader(self._element_reader(field.type, version, flexible, nullable=False))
            return wire.array_reader(elements, flexible, field.nullable)
        read = self._element_reader(field.type, version, flexible, field.nullable)
        if field.is_struct and field.nullable:
            return wire.nullable_struct_reader(read, tagged=field.tag is not None)
        return read

    def _element_reader(self, type_name: str, version: int, flexible: bool, nullable: bool) -> Reader:
        match type_name:
            case "string":
                return wire.string_reader(flexible, nullable)
            case "bytes":
                return wire.bytes_reader(flexible, nullable)
            case "uuid":
                return wire.read_uuid
            case integer if integer in wire.INT_FORMATS:
                return wire.ints_reader(wire.INT_FORMATS[integer])
            case struct:
                return self._nested_reader(self._layouts[struct], version, flexible)

    def _nested_reader(self, layout: MessageLayout, version: int, flexible: bool) -> Reader:
        own = layout.own_versions
        if own is None:
            return self._struct_reader(layout, version, flexible)
        return wire.versioned_reader({each: self._struct_reader(layout, each, flexible) for each in own})

    def _struct_writer(self, layout: MessageLayout, version: int, flexible: bool) -> Writer:
        plain, tagged = _split(layout, version)
        plain_writers = [(field.attribute, self._field_writer(field, version, flexible)) for field in plain]
        tagged_writers = [(field, self._field_writer(field, version, flexible)) for field in tagged]

        def write(out: bytearray, value: Any) -> None:
            for attribute, write_field in plain_writers:
                try:
                    write_field(out, getattr(value, attribute))
                except ValueError as failure:
                    raise ValueError(f"{layout.name}.{attribute}: {failure}") from None
            if flexible:
                _write_tag_section(out, value, tagged_writers)

        return write

    def _field_writer(self, field: Field, version: int, flexible: bool) -> Writer:
        if field.is_array:
            write = self._element_writer(field.type, version, flexible, nullable=False)
            return wire.array_writer(write, flexible, field.nullable)
        write = self._element_writer(field.type, version, flexible, field.nullable)
        if field.is_struct and field.nullable:
            return wire.nullable_struct_writer(write, tagged=field.tag is not None)
        return write

    def _element_writer(self, type_name: str, version: int, flexible: bool, nullable: bool) -> Writer:
        match type_name:
            case "string":
                return wire.string_writer(flexible, nullable)
            case "bytes":
                return wire.bytes_writer(flexible, nullable)
            case "uuid":
                return wire.write_uuid
            case integer if integer in wire.INT_FORMATS:
                return wire.int_writer(integer)
            case struct:
                return self._nested_writer(self._layouts[struct], version, flexible)

    def _nested_writer(self, layout: MessageLayout, version: int, flexible: bool) -> Writer:
        if layout.own_versions is None:
            return self._struct_writer(layout, version, flexible)
        highest = max(layout.own_versions)
        return wire.versioned_writer(highest, self._struct_writer(layout, highest, flexible))


@cache
def compiler() -> Compiler:
    """Return the compiler of the layouts in this package."""
    return Compiler(catalog())


def _split(layout: MessageLayout, version: int) -> tuple[list[Field], list[Field]]:
    """Return the fields of a version in wire order: the plain ones, and the tagged ones by tag."""
    present = list(layout.in_version(version))
    plain = [field for field in present if field.tag is None]
    return plain, sorted((field for field in present if field.tag is not None), key=_tag)


def _tag(field: Field) -> int:
    assert field.tag is not None
    return field.tag


def _builder(dataclass: type[Any], attributes: Sequence[str], steps: Sequence[Reader]) -> Reader:
    """Return a reader that runs the steps, which read `attributes`, and builds the dataclass; other attributes have defaults."""
    wanted = [field.name for field in dataclass_fields(dataclass)]
    absent = [field for field in dataclass_fields(dataclass) if field.name not in attributes]
    constants = [field.default for field in absent]
    order = [[*attributes, *(field.name for field in absent)].index(name) for name in wanted]

    if order == list(range(len(order))):

        def read_in_order(buffer: bytes, position: int, sink: list[Any]) -> int:
            values: list[Any] = []
            for step in steps:
                position = step(buffer, position, values)
            sink.append(dataclass(*values))
            return position

        return read_in_order

    arrange: Callable[[list[Any]], tuple[Any, ...]] = itemgetter(*order)

    def read(buffer: bytes, position: int, sink: list[Any]) -> int:
        values: list[Any] = []
        for step in steps:
            position = step(buffer, position, values)
        values += constants
        sink.append(dataclass(*arrange(values)))
        return position

    return read


def _tag_section_reader(readers: dict[int, Reader], defaults: dict[int, Any]) -> Reader:
    """Return a reader of the tagged fields of a flexible struct: known ones by tag, then the unknown ones as one tuple.

    The size of a known field is ignored, as in Kafka's generated readers: the field ends with its content.
    """
    nothing = [*defaults.values(), ()]

    def read(buffer: bytes, position: int, sink: list[Any]) -> int:
        if position < len(buffer) and buffer[position] == 0:
            sink += nothing
            return position + 1
        count, position = read_uvarint(buffer, position)
        known = dict(defaults)
        unknown: list[tuple[int, bytes]] = []
        for _ in range(count if count <= wire.MAX_INT32 else 0):
            tag, position = read_uvarint(buffer, position)
            size, position = read_uvarint(buffer, position)
            if tag in readers:
                slot: list[Any] = []
                position = readers[tag](buffer, position, slot)
                known[tag] = slot[0]
                continue
            if size > len(buffer) - position:
                raise Unreadable(position, f"tag {tag} of {size} bytes, {len(buffer) - position} are left")
            unknown.append((tag, buffer[position : position + size]))
            position += size
        sink += known.values()
        sink.append(tuple(unknown))
        return position

    return read


def _write_tag_section(out: bytearray, value: Any, tagged_writers: Sequence[tuple[Field, Writer]]) -> None:
    section: list[tuple[int, bytes]] = []
    for field, write_field in tagged_writers:
        content = getattr(value, field.attribute)
        if content != field.default:
            encoded = bytearray()
            write_field(encoded, content)
            section.append((_tag(field), bytes(encoded)))
    section += value.unknown_tags
    write_uvarint(out, len(section))
    for tag, encoded_field in section:
        write_uvarint(out, tag)
        write_uvarint(out, len(encoded_field))
        out += encoded_field
