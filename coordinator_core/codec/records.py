"""Codec of the records of `__consumer_offsets` (`CoordinatorRecordSerde`, KIP-915)."""

from typing import NamedTuple

from coordinator_core.codec.envelope import open_envelope, record_codecs, seal_envelope
from coordinator_core.codec.messages.classic import GroupMetadataKey, GroupMetadataValue
from coordinator_core.codec.messages.consumer import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
)
from coordinator_core.codec.messages.modern import (
    GroupKey,
    MemberKey,
    PartitionMetadataValue,
    TargetAssignmentMemberValue,
    TargetAssignmentMetadataValue,
)
from coordinator_core.codec.messages.offsets import OffsetCommitKey, OffsetCommitValue
from coordinator_core.codec.messages.share import (
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataValue,
)
from coordinator_core.codec.messages.streams import (
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTopologyValue,
)
from coordinator_core.codec.offset_commit_writer import offset_commit_bytes
from coordinator_core.codec.outcomes import Undecodable
from coordinator_core.codec.schema import catalog
from coordinator_core.codec.wrapped_keys import unwrapped_key

Key = OffsetCommitKey | GroupMetadataKey | GroupKey | MemberKey | ConsumerGroupRegularExpressionKey

Value = (
    OffsetCommitValue
    | GroupMetadataValue
    | ConsumerGroupMetadataValue
    | PartitionMetadataValue
    | ConsumerGroupMemberMetadataValue
    | TargetAssignmentMetadataValue
    | TargetAssignmentMemberValue
    | ConsumerGroupCurrentMemberAssignmentValue
    | ConsumerGroupRegularExpressionValue
    | ShareGroupMemberMetadataValue
    | ShareGroupMetadataValue
    | ShareGroupCurrentMemberAssignmentValue
    | ShareGroupStatePartitionMetadataValue
    | StreamsGroupMetadataValue
    | StreamsGroupMemberMetadataValue
    | StreamsGroupTargetAssignmentMemberValue
    | StreamsGroupCurrentMemberAssignmentValue
    | StreamsGroupTopologyValue
)


class Record(NamedTuple):
    """A record with its type number; `value` and `value_version` are None for a tombstone."""

    record_type: int
    key: Key
    value: Value | None
    value_version: int | None


#: Both types have the same layouts.
_OFFSET_COMMITS = (0, 1)
_CODECS = record_codecs((number, of.key, of.value, of.dialect) for number, of in catalog().record_types.items())


def decode(key: bytes | None, value: bytes | None) -> Record | Undecodable:
    """Decode any bytes to a record, or to the reason why they are not one; never raises.

    Every type and value version of released brokers is read; layouts of early-access releases (KIP-848 before 3.8, KIP-932
    before 4.1) are not. The era decides which versions a particular broker accepts, not the codec: type 0 is read with any
    value version, as by Scala brokers. Text that is not UTF-8 is malformed.

    What Redpanda writes is chosen by the bytes: the wrapped keys of some tombstones, and groups whose members have a version of
    their own (`group_metadata.cc`). The record is the one that Kafka would write for the same group.
    """
    return open_envelope(_CODECS, key if key is None else unwrapped_key(key), value, Record)


def encode(record: Record) -> tuple[bytes, bytes | None]:
    """Encode key and value. Fields that the value version lacks are dropped, as Kafka drops its ignorable fields.

    Raises ValueError if the record cannot be written: unknown type or version, number out of range, null in a field that is
    not nullable, string above 32767 bytes.
    """
    if record.record_type in _OFFSET_COMMITS and isinstance(record.key, OffsetCommitKey):
        value = record.value
        if value is None or isinstance(value, OffsetCommitValue):
            written = offset_commit_bytes(record.record_type, record.key, value, record.value_version)
            if written is not None:
                return written
    return seal_envelope(_CODECS, record.record_type, record.key, record.value, record.value_version)
