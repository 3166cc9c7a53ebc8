"""One member of a classic group (`MemberMetadata`, `ClassicGroupMember`)."""

from collections.abc import Collection
from dataclasses import dataclass

from coordinator_core.coordinator_common.results import ReplyHandle
from coordinator_core.protocol.membership import Protocol


@dataclass(slots=True)
class Member:
    """One member. `awaiting_join` and `awaiting_sync` are the reply handles of its parked requests, or None. `is_new` is True
    until its first generation begins. Timeouts are in ms."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: tuple[Protocol, ...]
    assignment: bytes = b""
    awaiting_join: ReplyHandle | None = None
    awaiting_sync: ReplyHandle | None = None
    is_new: bool = False

    @property
    def is_static(self) -> bool:
        """True if the member has an instance id, and so keeps its membership over restarts (KIP-345)."""
        return self.group_instance_id is not None

    @property
    def keeps_session_by_waiting(self) -> bool:
        """True if a parked request keeps the session alive; not for a member that has never been in a generation, since its
        client may have disconnected."""
        return not self.is_new and (self.awaiting_join is not None or self.awaiting_sync is not None)

    @property
    def protocol_names(self) -> frozenset[str]:
        """Distinct protocol names: a protocol that the member lists twice counts once."""
        return frozenset(name for name, _ in self.protocols)

    def metadata(self, protocol: str) -> bytes:
        """Returns the subscription bytes for a protocol. ValueError if the member does not support it."""
        for name, metadata in self.protocols:
            if name == protocol:
                return metadata
        raise ValueError(f"member {self.member_id!r} does not support protocol {protocol!r}")

    def vote(self, candidates: Collection[str]) -> str:
        """Returns the first candidate in the member's order of preference. ValueError if it supports no candidate."""
        for name, _ in self.protocols:
            if name in candidates:
                return name
        raise ValueError(f"member {self.member_id!r} supports no candidate protocol: {', '.join(sorted(candidates))}")
