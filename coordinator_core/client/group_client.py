"""Connections of group members to a cluster: to any broker for metadata, and to coordinators by address."""

import asyncio
from collections.abc import Collection, Sequence
from typing import cast

from coordinator_core.assignors import Cluster, PartitionInfo
from coordinator_core.client.connection import BrokerConnection, connect
from coordinator_core.client.errors import ClientError, Disconnected
from coordinator_core.client.settings import ConnectionSettings
from coordinator_core.protocol import apis
from coordinator_core.protocol.cluster import MetadataRequest, MetadataResponse, RequestedTopic
from coordinator_core.protocol.error_code import ErrorCode
from coordinator_core.protocol.groups import FindCoordinatorRequest, FindCoordinatorResponse

Server = tuple[str, int]


class Connections:
    """One connection per address, opened on first use and again after it was closed."""

    def __init__(self, settings: ConnectionSettings) -> None:
        self.settings = settings
        self._connections: dict[Server, BrokerConnection] = {}
        self._locks: dict[Server, asyncio.Lock] = {}

    async def to(self, host: str, port: int) -> BrokerConnection:
        """Returns an open connection to the address. Raises ClientError."""
        address = host, port
        async with self._locks.setdefault(address, asyncio.Lock()):
            known = self._connections.get(address)
            if known is None or known.closed:
                known = self._connections[address] = await connect(host, port, self.settings)
            return known

    def close(self) -> None:
        """Closes all connections without waiting for responses."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()


class ClusterClient:
    """Requests to any broker, on separate connections: on a coordinator's connection, a JoinGroup may be parked."""

    def __init__(self, servers: Sequence[Server], settings: ConnectionSettings) -> None:
        self._servers = tuple(servers)
        self._connections = Connections(settings)

    async def find(self, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
        """Finds the coordinator of a group. Raises ClientError."""
        connection = await self._any()
        found = cast(FindCoordinatorResponse, await connection.request(apis.FIND_COORDINATOR, request))
        if apis.FIND_COORDINATOR.has_field(connection.version_of(apis.FIND_COORDINATOR), "keys"):
            return found
        # before v4 the response has no key
        return FindCoordinatorResponse(
            tuple(each._replace(key=key) for key, each in zip(request.keys, found.coordinators, strict=True))
        )

    async def metadata(self, topics: Collection[str]) -> Cluster:
        """Fetches the partitions of these topics with the racks of their replicas; missing topics are left out.

        Raises ClientError.
        """
        request = MetadataRequest(tuple(RequestedTopic(topic) for topic in sorted(topics)), allow_auto_topic_creation=False)
        response = cast(MetadataResponse, await (await self._any()).request(apis.METADATA, request))
        racks = {broker.node_id: broker.rack for broker in response.brokers}
        return Cluster(
            {
                topic.name or "": tuple(
                    PartitionInfo(
                        each.partition,
                        racks.get(each.leader),
                        frozenset(rack for node in each.replicas if (rack := racks.get(node)) is not None),
                    )
                    for each in sorted(topic.partitions)
                )
                for topic in response.topics
                if topic.error is ErrorCode.NONE
            }
        )

    def close(self) -> None:
        """Closes the connections."""
        self._connections.close()

    async def _any(self) -> BrokerConnection:
        failures = []
        for host, port in self._servers:
            try:
                return await self._connections.to(host, port)
            except ClientError as error:
                failures.append(str(error))
        raise Disconnected(f"no broker answers: {'; '.join(failures)}")
