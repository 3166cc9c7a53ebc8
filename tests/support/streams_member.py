"""A member of a streams group (KIP-1071) that heartbeats and owns its tasks, but processes nothing."""

from collections.abc import Sequence
from typing import Any

import heartbeats
from kafka.protocol.api_message import ApiMessage
from protocol_connection import ProtocolConnection

_TASK_KINDS = ("active_tasks", "standby_tasks", "warmup_tasks")
_JOIN, _LEAVE = 0, -1


class StreamsGroupHeartbeatRequest(ApiMessage, load_json=heartbeats):  # type: ignore[misc, call-arg]  # untyped library
    """Request of KIP-1071."""


class StreamsGroupHeartbeatResponse(ApiMessage, load_json=heartbeats):  # type: ignore[misc, call-arg]  # untyped library
    """Response of KIP-1071."""


class StreamsMember:
    """A member with one subtopology, "0", that reads one topic. Use it in a `with`; it leaves at the end."""

    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self._connection = ProtocolConnection(bootstrap, "streams-client")
        self._group, self._topic, self._epoch = group, topic, _JOIN
        self._owned: dict[str, Sequence[Any]] = dict.fromkeys(_TASK_KINDS, ())

    def __enter__(self) -> "StreamsMember":
        return self

    def __exit__(self, *_: object) -> None:
        if self._epoch > _JOIN:
            self._send(_LEAVE)
        self._connection.close()

    @property
    def tasks(self) -> list[int]:
        """The partitions of its active tasks."""
        return sorted(number for task in self._owned["active_tasks"] for number in task.partitions)

    def heartbeat(self) -> int:
        """Join, or acknowledge the tasks that the last answer gave. Returns the error code."""
        answer = self._send(self._epoch)
        if not answer.error_code:
            self._epoch = answer.member_epoch
            self._owned |= {kind: getattr(answer, kind) for kind in _TASK_KINDS if getattr(answer, kind) is not None}
        return int(answer.error_code)

    def _send(self, epoch: int) -> Any:
        request: Any = StreamsGroupHeartbeatRequest
        joined = {} if epoch != _JOIN else self._joining(request)
        tasks = {
            kind: [request.TaskIds(subtopology_id=each.subtopology_id, partitions=each.partitions) for each in self._owned[kind]]
            for kind in _TASK_KINDS
        }
        body = request(
            group_id=self._group, member_id="member-1", member_epoch=epoch, endpoint_information_epoch=0, **tasks, **joined
        )
        return self._connection.request(body, StreamsGroupHeartbeatResponse, 0)

    def _joining(self, request: Any) -> dict[str, Any]:
        """The fields of the first heartbeat."""
        nothing: dict[str, Any] = dict.fromkeys(
            (
                "source_topic_regex",
                "state_changelog_topics",
                "repartition_sink_topics",
                "repartition_source_topics",
                "copartition_groups",
            ),
            (),
        )
        part = request.Topology.Subtopology(subtopology_id="0", source_topics=[self._topic], **nothing)
        topology = request.Topology(epoch=1, subtopologies=[part])
        return {"topology": topology, "process_id": "process-1", "rebalance_timeout_ms": 10_000, "client_tags": []}
