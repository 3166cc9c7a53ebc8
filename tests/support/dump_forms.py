"""Records as `kafka-dump-log.sh --offsets-decoder` of Kafka 4.x prints them (KAFKA-16470)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from coordinator_core.codec.consumer_protocol import (
    HIGHEST_VERSION,
    NoAssignment,
    decode_assignment,
    decode_subscription,
    protocol_version,
)
from coordinator_core.codec.messages.classic import GroupMetadataValue
from coordinator_core.codec.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    ProtocolTopicPartitions,
)
from coordinator_core.codec.outcomes import Malformed
from coordinator_core.codec.records import Record
from coordinator_core.codec.text import json_form
from coordinator_core.codec.text.json_converter import converter

JsonObject = dict[str, Any]

#: The dump tool's payload of a tombstone.
DELETE = "<DELETE>"

_CONSUMER = "consumer"


@dataclass(frozen=True, slots=True)
class DumpForm:
    """The dump tool's texts after `key:` and `payload:`."""

    key: JsonObject
    payload: JsonObject | str


def dump_form(record: Record) -> DumpForm:
    """Return the output of Kafka 4.x's dump tool.

    Type and version are text. Subscription and assignment of groups of type "consumer" are decoded independently; bytes that
    cannot be decoded are base64. Versions above 3 are not decoded if they have partitions, unlike in clients.
    """
    form = json_form(record)
    key = {"type": str(record.record_type), "data": form["key"]["data"]}
    if record.value is None:
        return DumpForm(key, DELETE)
    data = form["value"]["data"]
    if isinstance(record.value, GroupMetadataValue) and record.value.protocol_type == _CONSUMER:
        for member, shown in zip(record.value.members, data["members"], strict=True):
            _show_decoded(shown, "subscription", "ConsumerProtocolSubscription", member.subscription, decode_subscription)
            _show_decoded(shown, "assignment", "ConsumerProtocolAssignment", member.assignment, decode_assignment)
    return DumpForm(key, {"version": str(record.value_version), "data": data})


def _show_decoded(
    shown: JsonObject,
    name: str,
    layout_name: str,
    data: bytes,
    decode: Callable[[bytes], ConsumerProtocolSubscription | ConsumerProtocolAssignment | NoAssignment | Malformed],
) -> None:
    """Decode as the tool's generated readers do: unknown versions are errors only in nested structs, negative ones are 0."""
    version = protocol_version(data)
    if version is None:
        return
    known_version = min(max(version, 0), HIGHEST_VERSION)
    message = decode(known_version.to_bytes(2, "big") + data[2:])
    if isinstance(message, Malformed | NoAssignment) or (version > HIGHEST_VERSION and _partitions(message)):
        return
    shown[name] = converter(layout_name, known_version)(message)


def _partitions(message: ConsumerProtocolSubscription | ConsumerProtocolAssignment) -> tuple[ProtocolTopicPartitions, ...]:
    return message.assigned_partitions if isinstance(message, ConsumerProtocolAssignment) else message.owned_partitions
