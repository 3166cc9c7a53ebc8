"""Loader of record layouts: reads `schemas/records/*.json` and checks them against the dataclasses of `codec.messages`.

The grammar is described in `schemas/records/README.md`. An error in a schema raises SchemaError during loading, with the
names of layout and field.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass
from dataclasses import fields as dataclass_fields
from functools import cache
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any

from coordinator_core.codec.messages.offsets import ZERO_UUID
from coordinator_core.codec.wire import INT_FORMATS

SCHEMAS = Path(__file__).parents[1] / "schemas" / "records"

#: Field type → default that Kafka's generator uses for a field without default.
ZERO_VALUES: Mapping[str, Any] = {**dict.fromkeys(INT_FORMATS, 0), "string": "", "bytes": b"", "uuid": ZERO_UUID}


class SchemaError(Exception):
    """A file of `schemas/records` contradicts the grammar, another file or the dataclasses."""


@dataclass(frozen=True, slots=True)
class VersionRange:
    """A range of versions: "0-4", "3+" or "1"."""

    lowest: int
    highest: int | None

    @classmethod
    def parse(cls, text: str) -> "VersionRange":
        match = re.fullmatch(r"(\d+)(?:(\+)|-(\d+))?", text)
        if match is None:
            raise SchemaError(f"{text!r} is not a range of versions: use 0-4, 3+ or 1")
        lowest, open_end, highest = match.groups()
        return cls(int(lowest), None if open_end else int(highest or lowest))

    def __contains__(self, version: int) -> bool:
        return self.lowest <= version and (self.highest is None or version <= self.highest)

    def __iter__(self) -> Iterator[int]:
        """The versions of a range with a highest one."""
        assert self.highest is not None
        return iter(range(self.lowest, self.highest + 1))


ALL_VERSIONS = VersionRange(0, None)


@dataclass(frozen=True, slots=True)
class Field:
    """One field; `type` is a primitive or the name of a layout, `attribute` its name in the dataclass."""

    name: str
    attribute: str
    type: str
    is_array: bool
    versions: VersionRange
    nullable: bool
    tag: int | None
    default: Any

    @property
    def is_struct(self) -> bool:
        return self.type not in ZERO_VALUES


@dataclass(frozen=True, slots=True)
class MessageLayout:
    """Fields in the order of Kafka's schema, which is also that of its JSON; on the wire, tagged fields follow the others.

    `own_versions`: versions of a struct that has its own version (int16) before its fields; None for all other layouts.
    """

    name: str
    dataclass: type[Any]
    versions: VersionRange | None
    flexible: VersionRange | None
    own_versions: VersionRange | None
    fields: tuple[Field, ...]

    def in_version(self, version: int) -> Iterator[Field]:
        return (field for field in self.fields if version in field.versions)

    def is_flexible(self, version: int) -> bool:
        return self.flexible is not None and version in self.flexible

    @property
    def highest(self) -> int:
        """Highest version of the message. Raises SchemaError for a struct."""
        if self.versions is None or self.versions.highest is None:
            raise SchemaError(f"{self.name} is a struct, not a message: it has no versions")
        return self.versions.highest


@dataclass(frozen=True, slots=True)
class RecordType:
    """A record type of `__consumer_offsets`: its number, Kafka's name, and the layouts of key and value.

    `dialect` is a second layout of the value, written by brokers that are not Kafka's; None for most types.
    """

    number: int
    name: str
    key: MessageLayout
    value: MessageLayout
    dialect: MessageLayout | None = None


@dataclass(frozen=True, slots=True)
class Catalog:
    """All layouts by name, and the record types by number."""

    layouts: Mapping[str, MessageLayout]
    record_types: Mapping[int, RecordType]


def snake_case(name: str) -> str:
    return re.sub(r"(?=[A-Z])", "_", name).lower()


@cache
def catalog() -> Catalog:
    """Return the layouts in this package. Raises SchemaError."""
    return load_catalog({path.name: json.loads(path.read_text("utf-8")) for path in sorted(SCHEMAS.glob("*.json"))})


def load_catalog(documents: Mapping[str, Any]) -> Catalog:
    """Return the catalog of parsed schema files, given by file name. Raises SchemaError."""
    loader = _Loader(documents)
    layouts = {name: loader.layout(name) for name in loader.sources}
    record_types: dict[int, RecordType] = {}
    for document in documents.values():
        for entry in document.get("records", ()):
            number = entry["type"]
            if number in record_types:
                raise SchemaError(f"record type {number} is described twice")
            dialect = layouts[entry["dialect"]] if "dialect" in entry else None
            record_types[number] = RecordType(number, entry["name"], layouts[entry["key"]], layouts[entry["value"]], dialect)
    return Catalog(MappingProxyType(layouts), MappingProxyType(record_types))


class _Loader:
    """Resolves layouts by name across all files, each one once."""

    def __init__(self, documents: Mapping[str, Any]) -> None:
        self.sources: dict[str, tuple[str, Any]] = {}
        self._layouts: dict[str, MessageLayout] = {}
        for file_name, document in documents.items():
            for name, source in document["layouts"].items():
                if name in self.sources:
                    raise SchemaError(f"{file_name}: {name} is described twice")
                self.sources[name] = (document["module"], source)

    def layout(self, name: str) -> MessageLayout:
        if name not in self._layouts:
            if name not in self.sources:
                raise SchemaError(f"no layout named {name}")
            self._layouts[name] = self._load(name, *self.sources[name])
        return self._layouts[name]

    def _load(self, name: str, default_module: str, source: Mapping[str, Any]) -> MessageLayout:
        unknown = source.keys() - {"class", "validVersions", "flexibleVersions", "ownVersions", "fields"}
        if unknown:
            raise SchemaError(f"{name}: unknown attributes {sorted(unknown)}")
        layout = MessageLayout(
            name,
            _dataclass(source.get("class", f"{default_module}.{name}")),
            _range(source, "validVersions"),
            _range(source, "flexibleVersions"),
            _range(source, "ownVersions"),
            tuple(self._field(name, field) for field in source["fields"]),
        )
        _check(layout)
        return layout

    def _field(self, layout_name: str, source: Mapping[str, Any]) -> Field:
        unknown = source.keys() - {"name", "type", "versions", "nullableVersions", "tag", "taggedVersions", "default"}
        if unknown:
            raise SchemaError(f"{layout_name}.{source.get('name')}: unknown attributes {sorted(unknown)}")
        versions = _range(source, "versions") or ALL_VERSIONS
        for attribute in ("nullableVersions", "taggedVersions"):
            if _range(source, attribute) not in (None, versions):
                raise SchemaError(f"{layout_name}.{source['name']}: {attribute} are not the versions of the field")
        if ("tag" in source) != ("taggedVersions" in source):
            raise SchemaError(f"{layout_name}.{source['name']}: tag and taggedVersions belong together")
        is_array = source["type"].startswith("[]")
        type_name = source["type"].removeprefix("[]")
        return Field(
            name=source["name"],
            attribute=snake_case(source["name"]),
            type=type_name,
            is_array=is_array,
            versions=versions,
            nullable="nullableVersions" in source,
            tag=source.get("tag"),
            default=source["default"] if "default" in source else self._implicit_default(type_name, is_array),
        )

    def _implicit_default(self, type_name: str, is_array: bool) -> Any:
        if is_array:
            return ()
        if type_name in ZERO_VALUES:
            return ZERO_VALUES[type_name]
        struct = self.layout(type_name)
        return struct.dataclass(**{field.attribute: field.default for field in struct.fields})


def _range(source: Mapping[str, Any], attribute: str) -> VersionRange | None:
    return VersionRange.parse(source[attribute]) if attribute in source else None


def _dataclass(dotted: str) -> type[Any]:
    module, _, name = dotted.partition(".")
    try:
        found: type[Any] = getattr(import_module(f"coordinator_core.codec.messages.{module}"), name)
    except (ImportError, AttributeError):
        raise SchemaError(f"no dataclass {dotted} in codec.messages") from None
    return found


def _check(layout: MessageLayout) -> None:
    """Check that dataclass and layout have the same fields with the same defaults."""
    own = layout.own_versions
    if own is not None and (own.highest is None or layout.versions is not None):
        raise SchemaError(f"{layout.name}: ownVersions are those of a struct, with a highest one")
    attributes = {field.name: field for field in dataclass_fields(layout.dataclass)}
    for field in layout.fields:
        if field.attribute not in attributes:
            raise SchemaError(f"{layout.name}.{field.name}: {layout.dataclass.__name__} has no {field.attribute}")
        if field.tag is not None and layout.versions and not layout.is_flexible(field.versions.lowest):
            raise SchemaError(f"{layout.name}.{field.name}: tagged where the layout is not flexible")
        if field.tag is None and field.versions == ALL_VERSIONS:
            continue
        expected = attributes[field.attribute].default
        if expected != field.default:
            raise SchemaError(f"{layout.name}.{field.name}: default {field.default!r}, {expected!r} in the dataclass")
    described = {field.attribute for field in layout.fields}
    for name, attribute in attributes.items():
        if name not in described and attribute.default is MISSING:
            raise SchemaError(f"{layout.name}: does not describe {name}, which has no default in {layout.dataclass.__name__}")
