"""Keys and values of `__consumer_offsets` as Redpanda's brokers write them, without the codec under test.

Each function follows the `encode` of the same name in `src/v/kafka/server/group_metadata.cc` (commit 1c6cff3).
"""

from struct import pack
from typing import NamedTuple


class GroupMember(NamedTuple):
    """Fields of `member_state`, in its order; `version` precedes them."""

    id: str
    instance_id: str | None = None
    client_id: str = "c1"
    client_host: str = "127.0.0.1"
    rebalance_timeout: int = 300_000
    session_timeout: int = 45_000
    subscription: bytes = b""
    assignment: bytes = b""
    version: int = 3


def group_metadata_key(group: str) -> bytes:
    return pack(">h", 2) + _string(group)


def group_metadata_value(
    members: tuple[GroupMember, ...],
    *,
    protocol_type: str = "consumer",
    generation: int = 1,
    protocol: str | None = "range",
    leader: str | None = None,
    state_timestamp: int = 1_700_000_000_000,
) -> bytes:
    head = pack(">h", 3) + _string(protocol_type) + pack(">i", generation) + _nullable(protocol) + _nullable(leader)
    return head + pack(">qi", state_timestamp, len(members)) + b"".join(map(member_state, members))


def member_state(member: GroupMember) -> bytes:
    """A member; versions below 3 as `member_state::decode` reads them, no release has written one."""
    return b"".join(
        (
            pack(">h", member.version),
            _string(member.id),
            _nullable(member.instance_id) if member.version >= 3 else b"",
            _string(member.client_id),
            _string(member.client_host),
            pack(">i", member.rebalance_timeout) if member.version >= 1 else b"",
            pack(">i", member.session_timeout),
            _bytes(member.subscription),
            _bytes(member.assignment),
        )
    )


def offset_metadata_key(group: str, topic: str, partition: int) -> bytes:
    return pack(">h", 1) + _string(group) + _string(topic) + pack(">i", partition)


def offset_metadata_value(
    offset: int, *, leader_epoch: int = -1, metadata: str = "", commit_timestamp: int = 0, expiry_timestamp: int = -1
) -> bytes:
    if expiry_timestamp != -1:
        return pack(">hq", 1, offset) + _string(metadata) + pack(">qq", commit_timestamp, expiry_timestamp)
    return pack(">hqi", 3, offset, leader_epoch) + _string(metadata) + pack(">q", commit_timestamp)


def wrapped(key: bytes) -> bytes:
    """The key of a tombstone of the releases that wrapped it (`reflection::to_iobuf`)."""
    return pack("<i", len(key)) + key


def _string(text: str) -> bytes:
    data = text.encode()
    return pack(">h", len(data)) + data


def _nullable(text: str | None) -> bytes:
    return pack(">h", -1) if text is None else _string(text)


def _bytes(data: bytes) -> bytes:
    return pack(">i", len(data)) + data
