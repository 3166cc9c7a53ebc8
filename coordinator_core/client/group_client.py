"""The brokers of a cluster as members of groups need them: any of them to be asked about the cluster, coordinators by address."""

import asyncio
from collections.abc import Collection, Sequence
from typing import cast

from coordinator_core.assignors import ClusterMetadata, PartitionInfo
from coordinator_core.client.connection import BrokerConnection, connect
from coordinator_core.client.errors import ClientError, Disconnected
from coordinator_core.client.settings import ConnectionSettings
from coordinator_core.coordinator.errors import ErrorCode
from coordinator_core.coordinator.messages.groups import FindCoordinatorRequest, FindCoordinatorResponse
from coordinator_core.coordinator.messages.versions import ApiKey, means
from coordinator_core.wire import ClusterApiKey
from coordinator_core.wire.cluster_messages import MetadataRequest, MetadataResponse, RequestedTopic

Address = tuple[str, int]


class Connections:
    """One connection per address, made when it is first asked for and again when it broke."""

    def __init__(self, settings: ConnectionSettings) -> None:
        self.settings = settings
        self._connections: dict[Address, BrokerConnection] = {}
        self._locks: dict[Address, asyncio.Lock] = {}

    async def to(self, host: str, port: int) -> BrokerConnection:
        """Raises ClientError."""
        address = host, port
        async with self._locks.setdefault(address, asyncio.Lock()):
            known = self._connections.get(address)
            if known is None or known.closed:
                known = self._connections[address] = await connect(host, port, self.settings)
            return known

    def close(self) -> None:
        """Hangs up at once, without a word."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()


class Cluster:
    """Asks any broker. It has connections of its own: on that of a coordinator, a JoinGroup may be waiting."""

    def __init__(self, servers: Sequence[Address], settings: ConnectionSettings) -> None:
        self._servers = tuple(servers)
        self._connections = Connections(settings)

    async def find(self, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
        """The coordinator of one group. Raises ClientError."""
        connection = await self._any()
        found = cast(FindCoordinatorResponse, await connection.ask(ApiKey.FIND_COORDINATOR, request))
        if means(ApiKey.FIND_COORDINATOR, connection.version_of(ApiKey.FIND_COORDINATOR), "keys"):
            return found
        # before v4 the answer does not repeat the key
        return FindCoordinatorResponse(
            tuple(each._replace(key=key) for key, each in zip(request.keys, found.coordinators, strict=True))
        )

    async def metadata(self, topics: Collection[str]) -> ClusterMetadata:
        """Partitions of these topics with the racks of their replicas, without topics that are not there. Raises ClientError."""
        request = MetadataRequest(tuple(RequestedTopic(topic) for topic in sorted(topics)), allow_auto_topic_creation=False)
        told = cast(MetadataResponse, await (await self._any()).ask(ClusterApiKey.METADATA, request))
        racks = {broker.node_id: broker.rack for broker in told.brokers}
        return ClusterMetadata(
            {
                topic.name or "": tuple(
                    PartitionInfo(
                        each.partition,
                        racks.get(each.leader),
                        frozenset(rack for node in each.replicas if (rack := racks.get(node)) is not None),
                    )
                    for each in sorted(topic.partitions)
                )
                for topic in told.topics
                if topic.error is ErrorCode.NONE
            }
        )

    def close(self) -> None:
        """Hangs up."""
        self._connections.close()

    async def _any(self) -> BrokerConnection:
        failures = []
        for host, port in self._servers:
            try:
                return await self._connections.to(host, port)
            except ClientError as error:
                failures.append(str(error))
        raise Disconnected(f"no broker answers: {'; '.join(failures)}")
