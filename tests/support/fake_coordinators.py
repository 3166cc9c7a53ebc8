"""Brokers in memory that answer the requests of polls, in the place of `KafkaConnection`."""

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace as Part
from typing import Any

from kafka.errors import IncompatibleBrokerVersion
from kafka.protocol.broker_version_data import BrokerVersionData

from coordinator_core.log.errors import LogUnreachable, RequestRejected
from coordinator_core.protocol.error_code import ErrorCode

SILENT = LogUnreachable("connection refused")


class FakeCoordinators:
    """Brokers that answer by the name of a request. `groups`: name → its node, and its offsets by topic (partition 0).

    `releases`: node → release whose API versions it has, other than 4.1.
    """

    def __init__(
        self,
        groups: Mapping[str, tuple[int, dict[str, int]]],
        nodes: Sequence[int] = (1, 2),
        releases: Mapping[int, tuple[int, ...]] | None = None,
    ) -> None:
        self.groups = dict(groups)
        self.nodes = nodes
        self.versions = {node: BrokerVersionData((releases or {}).get(node, (4, 1))) for node in nodes}
        self.silent: set[int] = set()
        self.unlisted: set[str] = set()
        #: Groups that DescribeGroups reports as Dead although they have offsets.
        self.undescribed: set[str] = set()
        #: Group → its type in lists, other than Classic.
        self.types: dict[str, str] = {}
        #: Group → ids of its members.
        self.members: dict[str, set[str]] = {}
        #: Topics that the user may not describe: left out of all offsets, and an error by name.
        self.hidden: set[str] = set()
        #: Node that a list names → only the node in `groups` answers.
        self.stale: dict[str, int] = {}
        #: Group → node of its former coordinator, which the next lookup names.
        self.moved: dict[str, int] = {}
        #: Name of a request, and the number of groups in it.
        self.sent: list[tuple[str, int]] = []

    def metadata(self, _topics: object) -> Any:
        brokers = [Part(node_id=node, host=f"broker{node}", port=9092) for node in self.nodes]
        return Part(brokers=brokers, topics=[], API_VERSION=12)

    def send_any(self, request_for: Callable[[Any], Any]) -> Any:
        return self._answer(self.nodes[0], request_for)

    def send_all(self, requests: Mapping[int, Callable[[Any], Any]]) -> dict[int, Any]:
        return {node: self._answer(node, request_for) for node, request_for in requests.items()}

    def send_in_order(self, rounds: Sequence[Mapping[int, Callable[[Any], Any]]], received: Callable[[int, Any], None]) -> None:
        assert len(rounds) <= 4, "requests in flight"
        for number, requests in enumerate(rounds):
            received(number, self.send_all(requests))

    def _found(self, key: str) -> Any:
        node = self.groups[key][0] if key in self.groups else self.nodes[0]
        return Part(key=key, node_id=self.moved.pop(key, node), error_code=0)

    def _answer(self, node: int, request_for: Callable[[Any], Any]) -> Any:
        if node in self.silent:
            return SILENT
        request = request_for(self.versions[node])
        try:
            version = self.versions[node].api_version(request)
        except IncompatibleBrokerVersion as error:
            return RequestRejected(str(error))
        match request.name:
            case "ListGroupsRequest":
                listed = [name for name, (home, _) in self.groups.items() if self.stale.get(name, home) == node]
                names = [name for name in listed if name not in self.unlisted]
                return Part(
                    error_code=0, groups=[Part(group_id=name, group_type=self.types.get(name, "Classic")) for name in names]
                )
            case "DescribeGroupsRequest":
                self.sent.append((request.name, len(request.groups)))
                return Part(groups=[self._described(node, name) for name in request.groups])
            case "ConsumerGroupDescribeRequest":
                missing = ErrorCode.GROUP_ID_NOT_FOUND
                return Part(groups=[Part(group_id=name, error_code=missing) for name in request.group_ids])
            case "ShareGroupDescribeRequest":
                return Part(groups=[self._share_group(name) for name in request.group_ids])
            case "DescribeShareGroupOffsetsRequest":
                self.sent.append((request.name, len(request.groups)))
                return Part(groups=[self._share_offsets(node, each.group_id) for each in request.groups])
            case "FindCoordinatorRequest" if version < 4:
                self.sent.append((request.name, 1))
                return Part(API_VERSION=version, **vars(self._found(request.key)))
            case "FindCoordinatorRequest":
                self.sent.append((request.name, len(request.coordinator_keys)))
                return Part(API_VERSION=version, coordinators=[self._found(key) for key in request.coordinator_keys])
            case _ if version < 8:
                self.sent.append((request.name, 1))
                return Part(API_VERSION=version, **vars(self._fetched(node, request)))
            case _:
                self.sent.append((request.name, len(request.groups)))
                return Part(API_VERSION=version, groups=[self._fetched(node, each) for each in request.groups])

    def _described(self, node: int, name: str) -> Any:
        home = self.groups.get(name, (node, {}))[0]
        code = ErrorCode.NOT_COORDINATOR if home != node else 0
        if name in self.members:
            return self._with_members(name, code)
        state = "Empty" if name in self.groups and name not in self.undescribed else "Dead"
        return Part(group_id=name, error_code=code, group_state=state, protocol_type="", protocol_data="", members=[])

    def _with_members(self, name: str, code: int) -> Any:
        members = [
            Part(
                member_id=each,
                group_instance_id=None,
                client_id="client",
                client_host="/0.0.0.0",
                member_metadata=b"",
                member_assignment=b"",
            )
            for each in sorted(self.members[name])
        ]
        return Part(
            group_id=name, error_code=code, group_state="Stable", protocol_type="consumer", protocol_data="range", members=members
        )

    def _share_group(self, name: str) -> Any:
        """The answer of a broker that has the request, but whose cluster has not enabled share groups unless it has one."""
        if self.types.get(name) == "Share":
            return Part(group_id=name, error_code=0, group_state="Empty", group_epoch=3, assignment_epoch=3, members=[])
        code = ErrorCode.GROUP_ID_NOT_FOUND if "Share" in self.types.values() else ErrorCode.UNSUPPORTED_VERSION
        return Part(group_id=name, error_code=code)

    def _share_offsets(self, node: int, name: str) -> Any:
        """Start offsets of a share group, as version 1 has them; a lag of 5 for each that is known."""
        home, offsets = self.groups.get(name, (node, {}))
        code = ErrorCode.GROUP_ID_NOT_FOUND if name not in self.groups else ErrorCode.NOT_COORDINATOR if home != node else 0
        denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        topics = [
            Part(
                topic_name=topic,
                partitions=[
                    Part(
                        partition_index=0,
                        start_offset=offset,
                        lag=-1 if offset < 0 else 5,
                        leader_epoch=0,
                        error_code=denied if topic in self.hidden else 0,
                    )
                ],
            )
            for topic, offset in offsets.items()
        ]
        return Part(group_id=name, error_code=code, topics=topics)

    def _fetched(self, _node: int, wanted: Any) -> Any:
        offsets = self.groups.get(wanted.group_id, (0, {}))[1]
        listed = [name for name in offsets if name not in self.hidden]
        names = listed if wanted.topics is None else [topic.name for topic in wanted.topics]
        denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        topics = [
            Part(
                name=name,
                partitions=[
                    Part(
                        partition_index=0,
                        committed_offset=offsets.get(name, -1),
                        committed_leader_epoch=-1,
                        metadata="",
                        error_code=denied if name in self.hidden else 0,
                    )
                ],
            )
            for name in names
        ]
        return Part(group_id=wanted.group_id, error_code=0, topics=topics)
