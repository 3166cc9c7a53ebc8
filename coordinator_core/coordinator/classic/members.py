"""One member of a classic group (`MemberMetadata`, `ClassicGroupMember`)."""

from collections.abc import Collection
from dataclasses import dataclass

from coordinator_core.coordinator.messages.membership import Protocol
from coordinator_core.coordinator.reply_handle import ReplyHandle


@dataclass(slots=True)
class Member:
    """`awaiting_join` and `awaiting_sync` are the requests that are parked here, None for none. `is_new` until the first
    generation that the member is part of. Timeouts in ms."""

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
        """Does it keep its place over restarts (KIP-345)?"""
        return self.group_instance_id is not None

    @property
    def keeps_session_by_waiting(self) -> bool:
        """A parked request is proof of life, except for a member that has never been in a generation: it may be gone, and
        nobody would know."""
        return not self.is_new and (self.awaiting_join is not None or self.awaiting_sync is not None)

    @property
    def protocol_names(self) -> frozenset[str]:
        """Each protocol once, however often the member lists it: it has one vote."""
        return frozenset(name for name, _ in self.protocols)

    def metadata(self, protocol: str) -> bytes:
        """Subscription bytes for a protocol. ValueError if the member cannot follow it."""
        for name, metadata in self.protocols:
            if name == protocol:
                return metadata
        raise ValueError(f"member {self.member_id!r} does not support protocol {protocol!r}")

    def vote(self, candidates: Collection[str]) -> str:
        """The first candidate in the member's own order. ValueError if it supports none of them."""
        for name, _ in self.protocols:
            if name in candidates:
                return name
        raise ValueError(f"member {self.member_id!r} supports none of {', '.join(sorted(candidates))}")
