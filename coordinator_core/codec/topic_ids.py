"""Record types that have topic ids without topic names, derived from the schemas."""

from collections.abc import Iterable

from coordinator_core.codec.schema import Catalog, MessageLayout, RecordType

#: Prefix of fields with a topic id (`topicId`, `topicIds`), and fields with the topic's name beside it.
_ID_PREFIX = "topicId"
_NAMES = frozenset({"topic", "topicName"})


def types_with_ids_only(catalog: Catalog) -> frozenset[int]:
    """Return the record types that have a topic id without the topic's name in the same struct or in the key of the record."""
    return frozenset(number for number, kind in catalog.record_types.items() if _has_id_only(kind, catalog))


def _has_id_only(kind: RecordType, catalog: Catalog) -> bool:
    if _names_topic(kind.key):
        return False
    return any(_has_topic_id(layout) and not _names_topic(layout) for layout in _structs(kind, catalog))


def _structs(kind: RecordType, catalog: Catalog) -> Iterable[MessageLayout]:
    """Yield key and value, and every struct inside them."""
    found: dict[str, MessageLayout] = {}
    waiting = [kind.key, kind.value]
    while waiting:
        layout = waiting.pop()
        if layout.name not in found:
            found[layout.name] = layout
            waiting += (catalog.layouts[field.type] for field in layout.fields if field.is_struct)
    return found.values()


def _has_topic_id(layout: MessageLayout) -> bool:
    return any(field.type == "uuid" and field.name.startswith(_ID_PREFIX) for field in layout.fields)


def _names_topic(layout: MessageLayout) -> bool:
    return any(field.type == "string" and field.name in _NAMES for field in layout.fields)
