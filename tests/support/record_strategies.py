"""Hypothesis strategies for records, built from the layouts that the codec itself reads."""

from typing import Any

from hypothesis import strategies as st

from coordinator_core.codec import Record, TransactionRecord
from coordinator_core.codec.messages.offsets import ZERO_UUID
from coordinator_core.codec.schema import Field, MessageLayout, catalog

INT_RANGES = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
}

#: Usual names, and unusual ones: empty, outside of the basic plane, with a NUL, longer than a one-byte varint can express.
texts = st.one_of(
    st.sampled_from(["", "orders", "g", "ключ", "\x00", "𝄞", "x" * 127, "x" * 128, "é" * 200]),
    st.text(st.characters(codec="utf-8"), max_size=8),
)
blobs = st.binary(max_size=12) | st.binary(min_size=127, max_size=130)

#: (record type, value version) of everything that the codec knows.
TYPES_AND_VERSIONS = [
    (number, version) for number, of in sorted(catalog().record_types.items()) for version in range(of.value.highest + 1)
]


def messages(layout_name: str, version: int) -> st.SearchStrategy[Any]:
    """A message or struct as that version can hold it; fields that it lacks have their default."""
    layout = catalog().layouts[layout_name]
    return _struct(layout, version, layout.is_flexible(version))


def records(record_type: int | None = None, value_version: int | None = None) -> st.SearchStrategy[Record]:
    """Records with a value, of any type and version or of the given ones."""
    chosen = [
        (number, version)
        for number, version in TYPES_AND_VERSIONS
        if record_type in (None, number) and value_version in (None, version)
    ]
    return st.sampled_from(chosen).flatmap(lambda choice: _records(*choice))


def tombstones() -> st.SearchStrategy[Record]:
    """Records without value, of any type."""
    numbers = st.sampled_from(sorted(catalog().record_types))
    return numbers.flatmap(
        lambda number: st.builds(
            Record, st.just(number), messages(catalog().record_types[number].key.name, 0), st.none(), st.none()
        )
    )


def transaction_records() -> st.SearchStrategy[TransactionRecord]:
    """Records of `__transaction_state`, tombstones among them."""
    with_value = st.sampled_from([0, 1]).flatmap(
        lambda version: st.builds(
            TransactionRecord, messages("TransactionLogKey", 0), messages("TransactionLogValue", version), st.just(version)
        )
    )
    return with_value | st.builds(TransactionRecord, messages("TransactionLogKey", 0), st.none(), st.none())


def _records(record_type: int, version: int) -> st.SearchStrategy[Record]:
    of = catalog().record_types[record_type]
    return st.builds(Record, st.just(record_type), messages(of.key.name, 0), messages(of.value.name, version), st.just(version))


def _struct(layout: MessageLayout, version: int, flexible: bool) -> st.SearchStrategy[Any]:
    attributes = {field.attribute: _field(field, version, flexible) for field in layout.in_version(version)}
    if flexible:
        attributes["unknown_tags"] = _unknown_tags(len([field for field in layout.fields if field.tag is not None]))
    return st.builds(layout.dataclass, **attributes)


def _field(field: Field, version: int, flexible: bool) -> st.SearchStrategy[Any]:
    value = _element(field.type, version, flexible)
    if field.is_array:
        value = st.lists(value, max_size=2).map(tuple)
    if field.nullable:
        value |= st.none()
    return value if field.tag is None else value | st.just(field.default)


def _element(type_name: str, version: int, flexible: bool) -> st.SearchStrategy[Any]:
    match type_name:
        case "string":
            return texts
        case "bytes":
            return blobs
        case "uuid":
            return st.uuids() | st.just(ZERO_UUID)
        case integer if integer in INT_RANGES:
            lowest, highest = INT_RANGES[integer]
            return st.integers(lowest, highest)
        case struct:
            return _struct(catalog().layouts[struct], version, flexible)


def _unknown_tags(lowest: int) -> st.SearchStrategy[tuple[tuple[int, bytes], ...]]:
    tags = st.dictionaries(st.integers(lowest, 2**31 - 2), st.binary(max_size=4), max_size=2)
    return st.just(()) | tags.map(lambda chosen: tuple(sorted(chosen.items())))
