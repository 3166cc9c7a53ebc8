"""Records of classic groups: type 2."""

from dataclasses import dataclass

from coordinator_core.codec.messages.offsets import Tags


@dataclass(frozen=True, slots=True)
class GroupMetadataKey:
    group: str


@dataclass(frozen=True, slots=True)
class MemberMetadata:
    """One member as stored after SyncGroup. Timeouts in ms; `rebalance_timeout` is -1 if the version has none."""

    member_id: str
    group_instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout: int = -1
    session_timeout: int = 0
    subscription: bytes = b""
    assignment: bytes = b""
    unknown_tags: Tags = ()


@dataclass(frozen=True, slots=True)
class GroupMetadataValue:
    """A classic group (versions 0–4). `current_state_timestamp` in ms, -1 when unknown (versions below 2)."""

    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    current_state_timestamp: int = -1
    members: tuple[MemberMetadata, ...] = ()
    unknown_tags: Tags = ()
