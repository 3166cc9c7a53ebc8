"""Members of share and streams groups by their heartbeats alone, with Kafka's own messages: no client of Python has them."""

import struct
from collections.abc import Callable
from typing import Any

from eventually import equal_to, eventually
from java_clients import JavaClients
from protocol_connection import ProtocolConnection

_MEMBER, _CLIENT = "member-1", b"heartbeats"
_JOIN, _LEAVE = 0, -1


class GroupHeartbeats:
    """Heartbeats to one broker, written by the messages of a Java client."""

    def __init__(self, java: JavaClients, bootstrap: str) -> None:
        self._java = java
        self._bootstrap = bootstrap
        #: Type of a group → its API, the version of it, and its request (`ShareGroupHeartbeat`, `StreamsGroupHeartbeat`).
        self._requests: dict[str, tuple[int, int, Callable[[str, str, int], Any]]] = {
            "share": (76, 1, self._share),
            "streams": (88, 0, self._streams),
        }

    def join_and_leave(self, kind: str, group: str, topic: str) -> None:
        """A member joins a group of a type, subscribes to the topic, and leaves."""
        api, version, request = self._requests[kind]
        with ProtocolConnection(self._bootstrap, "heartbeats") as connection:
            for epoch in (_JOIN, _LEAVE):
                frame = _header(api, version) + self._java.message_bytes(request(group, topic, epoch), version)

                def error(frame: bytes = frame) -> int:
                    connection.send_bytes(frame)
                    # the correlation id, no tagged fields, and the throttle time precede it
                    return int(struct.unpack(">h", connection.receive_bytes()[9:11])[0])

                eventually(f"the answer to {group}, epoch {epoch}", error, equal_to(0))

    def _share(self, group: str, topic: str, epoch: int) -> Any:
        request = self._java.message("ShareGroupHeartbeatRequestData")
        request.setGroupId(group).setMemberId(_MEMBER).setMemberEpoch(epoch)
        return request.setSubscribedTopicNames(self._java.list_of(topic)) if epoch == _JOIN else request

    def _streams(self, group: str, topic: str, epoch: int) -> Any:
        request = self._java.message("StreamsGroupHeartbeatRequestData")
        request.setGroupId(group).setMemberId(_MEMBER).setMemberEpoch(epoch)
        if epoch == _LEAVE:
            return request
        part = self._java.message("StreamsGroupHeartbeatRequestData.Subtopology")
        part.setSubtopologyId("0").setSourceTopics(self._java.list_of(topic))
        topology = self._java.message("StreamsGroupHeartbeatRequestData.Topology").setEpoch(0)
        request.setTopology(topology.setSubtopologies(self._java.list_of(part)))
        for tasks in (request.setActiveTasks, request.setStandbyTasks, request.setWarmupTasks, request.setClientTags):
            tasks(self._java.list_of())
        return request.setProcessId("process-1").setRebalanceTimeoutMs(10_000)


def _header(api: int, version: int) -> bytes:
    """A request header of version 2, with correlation id 1 and no tagged fields."""
    return struct.pack(">hhih", api, version, 1, len(_CLIENT)) + _CLIENT + b"\0"
